//! What keeps a path below its rate cap.
//!
//! Rule: F15.

use core::time::Duration;

use crate::scale::{LEAST_FRAME, NOISE};
use fbdt_units::{Instant, time_for};
use fbdt_wire::RateCap;

/// A token bucket: bytes may leave while it holds some, and it fills at the cap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    cap: RateCap,
    /// Bytes that may leave, at `filled`; below zero after a large frame.
    tokens: f64,
    filled: Instant,
}

impl RateLimit {
    /// A full bucket.
    pub(crate) fn new(now: Instant, cap: RateCap) -> Self {
        let mut limit = Self { cap, tokens: 0.0, filled: now };
        limit.tokens = limit.burst();
        limit
    }

    fn burst(&self) -> f64 {
        (self.cap.bytes_per_second() * (NOISE * 2).as_secs_f64()).max((4 * LEAST_FRAME) as f64)
    }

    fn tokens_at(&self, now: Instant) -> f64 {
        let since = now.saturating_since(self.filled).as_secs_f64();
        (self.tokens + since * self.cap.bytes_per_second()).min(self.burst())
    }

    /// `bytes` leave. What must leave may leave beyond the cap; later bytes wait for it.
    pub(crate) fn spend(&mut self, now: Instant, bytes: u64) {
        self.tokens = self.tokens_at(now) - bytes as f64;
        self.filled = now;
    }

    /// When a frame of `bytes` may leave.
    pub(crate) fn opens_at(&self, bytes: u64) -> Instant {
        let missing = (bytes as f64).min(self.burst()) - self.tokens;
        if missing <= 0.0 {
            return self.filled;
        }
        // A nanosecond later, so that rounding does not leave it short.
        let wait = time_for(libm::ceil(missing) as u64, self.cap.bytes_per_second());
        self.filled + wait + Duration::from_nanos(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn f15_a_burst_leaves_at_once_and_the_rest_at_the_cap() {
        // 8 Mbit/s: 1 MB/s, 20 kB at once.
        let mut limit = RateLimit::new(Instant::ZERO, RateCap::from_kilobits(8_000).unwrap());
        assert!(limit.opens_at(10_000) <= Instant::ZERO);
        limit.spend(Instant::ZERO, 20_000);
        let opens = limit.opens_at(10_000);
        assert_eq!(opens.as_nanos() / 1_000_000, 10, "10 kB are 10 ms");
        limit.spend(opens, 10_000);
        assert_eq!(limit.opens_at(10_000).as_nanos() / 1_000_000, 20);
        assert_eq!(limit.opens_at(1 << 30).as_nanos() / 1_000_000, 30, "no more than a burst");
    }

    proptest! {
        /// Whoever waits until it opens sends at most the cap and a burst, and at least the cap.
        #[test]
        fn f15_the_cap_is_kept_and_used(
            kilobits in 100..10_000_000u32,
            frames in prop::collection::vec(100..16_000u64, 50..200),
        ) {
            let cap = RateCap::from_kilobits(kilobits).unwrap();
            let mut limit = RateLimit::new(Instant::ZERO, cap);
            let burst = limit.burst();
            let (mut now, mut sent) = (Instant::ZERO, 0.0);
            for frame in frames {
                now = now.max(limit.opens_at(frame));
                limit.spend(now, frame);
                sent += frame as f64;
                let allowed = now.as_nanos() as f64 * 1e-9 * cap.bytes_per_second();
                prop_assert!(sent <= allowed + burst + 1.0, "{sent} of {allowed}");
            }
            let allowed = now.as_nanos() as f64 * 1e-9 * cap.bytes_per_second();
            prop_assert!(sent + 16_384.0 + 1.0 >= allowed, "{sent} of {allowed}");
        }
    }
}
