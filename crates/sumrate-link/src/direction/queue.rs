//! The bottleneck queue: packets that wait for the transmitter, bounded in time or in segments.

use std::collections::VecDeque;

use super::rate::Rate;
use crate::config::QueueLimit;
use crate::packet::Packet;
use crate::time::{Nanos, SECOND};

/// Bound when nothing else bounds the queue (no rate, or a held link): 64 MiB.
const SAFETY_LIMIT_BITS: u64 = 64 * 1024 * 1024 * 8;

/// Whether one more segment may join `bits` in `segments` that wait already.
fn admits(limit: QueueLimit, rate: &Rate, bits: u64, segments: u64) -> bool {
    if bits > SAFETY_LIMIT_BITS {
        return false;
    }
    match (limit, rate.nominal()) {
        (QueueLimit::Packets(limit), _) => segments < limit.max(1),
        (QueueLimit::Time(_), None) => true,
        (QueueLimit::Time(time), Some(rate)) => {
            let limit = u128::from(rate) * u128::from(time) / u128::from(SECOND);
            u128::from(bits) <= limit
        }
    }
}

/// A packet and those of its segments that still wait.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The packet.
    pub packet: Packet,
    /// First segment that has not left.
    pub next: usize,
    /// End of the segments that were admitted.
    pub end: usize,
    /// When it came.
    pub arrived: Nanos,
}

/// First in, first out.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    packets: VecDeque<Waiting>,
    bits: u64,
    segments: u64,
}

impl Queue {
    /// Bits that wait, the segments in service included.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Segments that wait, those in service included.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// The packet at the head.
    pub fn head(&self) -> Option<&Waiting> {
        self.packets.front()
    }

    /// Admits as many of the first `most` segments of `packet` as the limit allows; returns how many it admitted.
    /// `served` bits of what waits have left already.
    pub fn admit(
        &mut self,
        now: Nanos,
        packet: Packet,
        most: usize,
        limit: QueueLimit,
        rate: &Rate,
        served: u64,
    ) -> usize {
        let mut end = 0;
        while end < most {
            let waiting = self.bits.saturating_sub(served);
            if !admits(limit, rate, waiting, self.segments) {
                break;
            }
            self.bits += bits_of(&packet, end..end + 1);
            self.segments += 1;
            end += 1;
        }
        if end > 0 {
            self.packets.push_back(Waiting { packet, next: 0, end, arrived: now });
        }
        end
    }

    /// Removes the first `segments` segments of the packet at the head.
    pub fn advance(&mut self, segments: usize) {
        let Some(head) = self.packets.front_mut() else {
            return;
        };
        let until = (head.next + segments).min(head.end);
        self.bits -= bits_of(&head.packet, head.next..until);
        self.segments -= (until - head.next) as u64;
        head.next = until;
        if head.next == head.end {
            self.packets.pop_front();
        }
    }
}

/// Bits of a packet's segments on the wire.
pub fn bits_of(packet: &Packet, range: std::ops::Range<usize>) -> u64 {
    packet.wire_bytes(&range) as u64 * 8
}
