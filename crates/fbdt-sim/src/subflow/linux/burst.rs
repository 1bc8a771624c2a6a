//! Segments that were sent together, and share their fate.

use std::ops::Range;
use std::time::Duration;

use fbdt_proto::Instant;

use crate::delivery_rate::Departure;
use crate::growth::MSS;
use crate::link::Crossing;

/// Bytes of a burst that arrive together at most, where they take longer than [`MOMENT`].
const PART: usize = 4 * MSS;
const MOMENT: Duration = Duration::from_millis(1);

/// Bytes of one transmission that all arrive or are all lost.
#[derive(Debug)]
pub(super) struct Burst {
    pub(super) bytes: Vec<u8>,
    /// When it was last sent.
    pub(super) sent: Instant,
    pub(super) departure: Departure,
    /// When its first and its last byte reach the peer.
    pub(super) arrival: Arrival,
    /// Bytes that the peer's program has.
    pub(super) given: usize,
    /// Whether it counts as in flight: neither acknowledged nor known to be lost.
    pub(super) flying: bool,
    pub(super) acked: bool,
    pub(super) again: bool,
}

impl Burst {
    /// Bytes that reach the peer by `now`, in whole segments.
    pub(super) fn due(&self, now: Instant) -> usize {
        match self.arrival {
            Some((_, last)) if last <= now => self.bytes.len(),
            Some((first, last)) if first < now => {
                let all = last.saturating_since(first).as_secs_f64();
                let part = now.saturating_since(first).as_secs_f64() / all;
                let bytes = (self.bytes.len() as f64 * part) as usize;
                (bytes / MSS * MSS).max(self.given)
            }
            _ => self.given,
        }
    }

    /// When its first segment has arrived.
    pub(super) fn first_segment(&self) -> Option<Instant> {
        let (first, last) = self.arrival?;
        let part = MSS.min(self.bytes.len()) as f64 / self.bytes.len().max(1) as f64;
        Some(first + last.saturating_since(first).mul_f64(part))
    }

    /// When its next [`PART`] arrives.
    pub(super) fn next_part(&self) -> Option<Instant> {
        let (first, last) = self.arrival?;
        let all = last.saturating_since(first);
        let next = self.given + PART;
        if all <= MOMENT || next >= self.bytes.len() {
            return Some(last);
        }
        // A nanosecond later, so that rounding does not leave it short.
        let wait = all.mul_f64(next as f64 / self.bytes.len() as f64) + Duration::from_nanos(1);
        Some((first + wait).min(last))
    }
}

/// When the first and the last byte arrive of something that does.
pub(super) type Arrival = Option<(Instant, Instant)>;

/// The parts of `size` bytes that arrive or are lost, in order, with when they arrive.
pub(super) fn parts(size: usize, crossing: Option<&Crossing>) -> Vec<(Range<usize>, Arrival)> {
    let Some(crossing) = crossing else { return vec![(0..size, None)] };
    let all = crossing.last.saturating_since(crossing.first);
    let at = |byte: usize| crossing.first + all.mul_f64(byte as f64 / size as f64);
    let arrives = |part: Range<usize>| (part.clone(), Some((at(part.start), at(part.end))));
    let (mut parts, mut begin) = (Vec::new(), 0);
    for lost in &crossing.lost {
        if lost.start > begin {
            parts.push(arrives(begin..lost.start));
        }
        parts.push((lost.clone(), None));
        begin = lost.end;
    }
    if begin < size {
        parts.push(arrives(begin..size));
    }
    parts
}
