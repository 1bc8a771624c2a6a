//! What a scheduler sees of a path.

use core::time::Duration;

use fbdt_units::{Instant, PathId, bytes_in, time_for};

use super::Reliability;
use crate::scale::NOISE;

/// An immutable picture of one path; all that schedulers may look at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// Whether it can be given new bytes: it has a subflow and is not
    /// suspect.
    pub usable: bool,
    /// Rate of the link, bytes per second.
    pub rate: f64,
    /// Rate that it has delivered lately, bytes per second.
    pub delivered_rate: f64,
    /// Time until a byte handed over now arrives.
    pub arrival: Duration,
    /// Whether its rate is still being found out.
    pub ramping: bool,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// RTT variation.
    pub rttvar: Duration,
    /// Smallest RTT.
    pub base_rtt: Duration,
    /// Delay beyond that which is no queue: gathered acknowledgements, jitter, the queues of others.
    pub spread: Duration,
    /// TCP's congestion window, or what a punishment left of it, in bytes.
    pub window: u64,
    /// Slow-start threshold in bytes; `u64::MAX` before the first loss.
    pub ssthresh: u64,
    /// Bytes that the path holds and its peer's TCP has not acknowledged.
    pub held: u64,
    /// Bytes that the congestion window still takes.
    pub room: u64,
    /// Whether it takes another frame now: its commit limit (F7) and its rate cap (F15) let it.
    pub ready: bool,
    /// Payload of one frame, in bytes.
    pub frame: u64,
    /// Maximum segment size, in bytes.
    pub mss: u64,
    /// Bytes that TCP acknowledged since its connection began.
    pub acknowledged: u64,
    /// How far it is trusted with the front (F3).
    pub reliability: Reliability,
    /// Whether the user wants this path to be forward.
    pub pinned: bool,
}

impl PathView {
    /// Penalty for unreliability; lower is better (F3).
    #[must_use]
    pub fn penalty(&self, now: Instant) -> f64 {
        self.reliability.penalty(now, self.base_rtt)
    }

    /// Whether the path's link has no more to do than what is under way on it: a copy would wait for
    /// nothing else there, and nothing else for it. Not known while the rate is still being found out.
    /// What waits for an acknowledgement that is held back (F7) has left the link.
    pub(crate) fn is_drained(&self) -> bool {
        self.ramping || self.held <= bytes_in(self.rate, self.base_rtt + self.spread)
    }

    /// Time until a frame handed over now is there, to its last byte. Only to its first while the rate
    /// is still being found out: what little is known of it makes a frame seem to take far too long.
    fn frame_arrival(&self) -> Duration {
        if self.ramping || self.rate <= 0.0 {
            return self.arrival;
        }
        self.arrival + time_for(self.frame, self.rate)
    }
}

/// New bytes of path `path` arrive this many bytes behind those that the
/// faster paths deliver meanwhile (F3b): the sum over the others of
/// rate x (arrival of a frame of `path` - that of one of the other's). Without bound while a
/// much faster path does not know its rate yet: any place would be a guess,
/// and a wrong one holds up delivery for the difference.
#[must_use]
pub fn lead(paths: &[PathView], path: usize) -> u64 {
    let Some(own) = paths.get(path) else { return 0 };
    let unknown = |other: &PathView| {
        other.usable && other.ramping && own.arrival > other.arrival * 4 + NOISE * 2
    };
    if paths.iter().any(unknown) {
        return u64::MAX;
    }
    paths
        .iter()
        .enumerate()
        .filter(|(index, other)| *index != path && other.usable)
        .map(|(_, other)| {
            let ahead = own.frame_arrival().saturating_sub(other.frame_arrival());
            bytes_in(other.rate, ahead)
        })
        .sum()
}
