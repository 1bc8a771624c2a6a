//! A token bucket: credit that a line saves up while it is idle, and that lets packets out without spacing.

use super::rate::Rate;
use crate::time::Nanos;

/// Credit in bits. It fills at the line's rate while nothing is sent; of size 0 there never is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    size: u64,
    credit: u64,
    /// What the rate brought until then is counted.
    since: Nanos,
}

impl Bucket {
    /// A full bucket of `bytes`.
    pub(super) fn full(now: Nanos, bytes: u64) -> Bucket {
        let size = bytes.saturating_mul(8);
        Bucket { size, credit: size, since: now }
    }

    /// Another size: credit beyond it is lost, and a larger one has to fill.
    pub(super) fn resize(&mut self, bytes: u64) {
        self.size = bytes.saturating_mul(8);
        self.credit = self.credit.min(self.size);
    }

    /// Takes in what the rate brought by `now`, while nothing was sent.
    pub(super) fn fill(&mut self, rate: &Rate, now: Nanos) {
        if self.credit < self.size {
            let brought = rate.bits_between(self.since, now);
            self.credit = self.credit.saturating_add(brought).min(self.size);
        }
        self.spent_until(now);
    }

    /// Pays for as many of `bits` as it can; the rest has to be sent at the rate.
    pub(super) fn pay(&mut self, bits: u64) -> u64 {
        let paid = self.credit.min(bits);
        self.credit -= paid;
        bits - paid
    }

    /// What the rate brought until `now` was sent.
    pub(super) fn spent_until(&mut self, now: Nanos) {
        self.since = self.since.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    #[test]
    fn it_pays_what_it_has_and_fills_at_the_rate_up_to_its_size() {
        let rate = Rate::Constant(8_000);
        let mut bucket = Bucket::full(0, 1_000);
        assert_eq!((bucket.pay(6_000), bucket.pay(6_000)), (0, 4_000));
        bucket.spent_until(SECOND / 2);
        bucket.fill(&rate, SECOND);
        assert_eq!(bucket.pay(5_000), 1_000, "half a second brought 4000 bits");
        bucket.fill(&rate, 100 * SECOND);
        assert_eq!(bucket.pay(9_000), 1_000, "it never holds more than its size");
    }

    #[test]
    fn a_smaller_one_loses_credit_and_none_never_pays() {
        let mut bucket = Bucket::full(0, 1_000);
        bucket.resize(100);
        assert_eq!(bucket.pay(1_000), 200);
        bucket.resize(0);
        bucket.fill(&Rate::Constant(8_000), SECOND);
        assert_eq!(bucket.pay(1_000), 1_000);
        let mut held = Bucket::full(0, 1_000);
        held.pay(8_000);
        held.fill(&Rate::Stopped, SECOND);
        assert_eq!(held.pay(10), 10);
        held.fill(&Rate::Unlimited, SECOND);
        assert_eq!(held.pay(10), 0);
    }
}
