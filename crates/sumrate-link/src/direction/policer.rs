//! A policer: it drops the segments that its token bucket cannot pay for, and delays none.

use super::queue::bits_of;
use super::rate::Rate;
use crate::packet::Packet;
use crate::time::Nanos;

/// Credit in bits, which grows at a rate up to a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policer {
    size: u64,
    credit: u64,
    /// Credit grows from then on.
    origin: Nanos,
    /// Bits that the rate brought since `origin` and that `credit` has. Rounding therefore never adds up.
    counted: u64,
}

impl Policer {
    /// A full bucket of `bytes`.
    pub(super) fn full(now: Nanos, bytes: u64) -> Policer {
        let size = bytes.saturating_mul(8);
        Policer { size, credit: size, origin: now, counted: 0 }
    }

    /// Counts the first segments of `packet` that pass at `now`; the rest has to be dropped.
    pub(super) fn pass(&mut self, rate: &Rate, now: Nanos, packet: &Packet) -> usize {
        self.fill(rate, now);
        let mut passed = 0;
        while passed < packet.segments() {
            match self.credit.checked_sub(bits_of(packet, passed..passed + 1)) {
                Some(left) => self.credit = left,
                None => break,
            }
            passed += 1;
        }
        passed
    }

    /// Begins another size or rate at `now`; until then credit grew at `rate`.
    pub(super) fn change(&mut self, rate: &Rate, now: Nanos, bytes: u64) {
        self.fill(rate, now);
        self.size = bytes.saturating_mul(8);
        self.credit = self.credit.min(self.size);
        (self.origin, self.counted) = (self.origin.max(now), 0);
    }

    fn fill(&mut self, rate: &Rate, now: Nanos) {
        let brought = rate.bits_between(self.origin, now);
        let credit = self.credit.saturating_add(brought.saturating_sub(self.counted));
        if credit < self.size {
            (self.credit, self.counted) = (credit, self.counted.max(brought));
        } else {
            *self = Policer {
                size: self.size,
                credit: self.size,
                origin: self.origin.max(now),
                counted: 0,
            };
        }
    }
}
