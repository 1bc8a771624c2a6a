//! How often a path may ask for a fresh subflow.
//!
//! Rule: F9.

use core::time::Duration;

use crate::scale::FRAME;
use fbdt_units::Instant;

/// Attempts at once: two outages that follow each other, each with a second attempt.
const BURST: u32 = 4;
/// One more attempt comes back after this time.
const PAUSE: Duration = Duration::from_secs(2);

/// A token bucket of attempts. A path that is only slow gains nothing by a fresh subflow, which begins with a
/// window that the path can't carry. A path that flaps gains much, each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redials {
    left: u32,
    refilled: Instant,
    /// Whether the current subflow has given its attempt back.
    earned: bool,
}

impl Default for Redials {
    fn default() -> Self {
        Self { left: BURST, refilled: Instant::ZERO, earned: true }
    }
}

impl Redials {
    /// Takes an attempt, if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        while self.left < BURST && now.saturating_since(self.refilled) >= PAUSE {
            self.left += 1;
            self.refilled = self.refilled + PAUSE;
        }
        if self.left == BURST {
            self.refilled = now;
        }
        let taken = self.left > 0;
        self.left = self.left.saturating_sub(1);
        taken
    }

    /// A fresh subflow is up.
    pub(super) const fn begin(&mut self) {
        self.earned = false;
    }

    /// The subflow has carried `bytes`.
    pub(super) fn carried(&mut self, bytes: u64) {
        if bytes >= FRAME && !core::mem::replace(&mut self.earned, true) {
            self.left = (self.left + 1).min(BURST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn f9_a_path_that_is_only_slow_is_redialled_four_times_and_then_every_two_seconds() {
        let mut redials = Redials::default();
        let taken = (0..100).filter(|second| {
            redials.begin();
            redials.carried(FRAME - 1);
            redials.take(at(1000 + second))
        });
        assert_eq!(taken.count(), 4 + 49);
    }

    #[test]
    fn f9_a_path_that_flaps_is_redialled_each_time() {
        let mut redials = Redials::default();
        for second in 0..100 {
            assert!(redials.take(at(second)), "{second}");
            redials.begin();
            redials.carried(FRAME);
            redials.carried(FRAME * 2);
        }
    }
}
