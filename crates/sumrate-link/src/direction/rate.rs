//! How fast a direction's transmitter is: when will bits that start now be through?

use std::sync::Arc;

use crate::time::{Nanos, SECOND};
use crate::trace::Trace;

/// A rate, possibly changing over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// No serialisation at all.
    Unlimited,
    /// Bits per second, above 0.
    Constant(u64),
    /// A trace that began at `origin`.
    Trace {
        /// The steps.
        trace: Arc<Trace>,
        /// When the first one began.
        origin: Nanos,
    },
    /// Nothing leaves (`hold=true`).
    Stopped,
}

impl Rate {
    /// When `bits` that start at `start` have been sent; `None`: not before the rate is changed.
    pub fn finish(&self, start: Nanos, bits: u64) -> Option<Nanos> {
        match self {
            Rate::Unlimited => Some(start),
            Rate::Stopped => None,
            Rate::Constant(rate) => {
                let spent = u128::from(bits) * u128::from(SECOND) / u128::from((*rate).max(1));
                start.checked_add(u64::try_from(spent).ok()?)
            }
            Rate::Trace { trace, origin } => {
                let begun = trace.work_until(start.saturating_sub(*origin));
                let goal = begun + u128::from(bits) * u128::from(SECOND);
                origin.checked_add(trace.position_of(goal))
            }
        }
    }

    /// Bits that can be sent from `from` until `to`.
    pub fn bits_between(&self, from: Nanos, to: Nanos) -> u64 {
        let work = match self {
            Rate::Unlimited => return u64::MAX,
            Rate::Stopped => return 0,
            Rate::Constant(rate) => u128::from(*rate) * u128::from(to.saturating_sub(from)),
            Rate::Trace { trace, origin } => {
                let until = |time: Nanos| trace.work_until(time.saturating_sub(*origin));
                until(to.max(from)) - until(from)
            }
        };
        u64::try_from(work / u128::from(SECOND)).unwrap_or(u64::MAX)
    }

    /// Rate for sizing a queue given in time, bits per second: a trace counts with its mean. `None`: unlimited.
    pub fn nominal(&self) -> Option<u64> {
        match self {
            Rate::Unlimited | Rate::Stopped => None,
            Rate::Constant(rate) => Some(*rate),
            Rate::Trace { trace, .. } => Some(trace.mean_rate()),
        }
    }

    /// Rate right now, bits per second. `None`: unlimited.
    pub fn at(&self, now: Nanos) -> Option<u64> {
        match self {
            Rate::Unlimited => None,
            Rate::Constant(rate) => Some(*rate),
            Rate::Trace { trace, origin } => Some(trace.rate_at(now.saturating_sub(*origin))),
            Rate::Stopped => Some(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn constant_rate() {
        // 1500 bytes at 12 Mbit/s take 1 ms.
        assert_eq!(Rate::Constant(12_000_000).finish(5, 12_000), Some(1_000_005));
        assert_eq!(Rate::Unlimited.finish(5, 12_000), Some(5));
        assert_eq!(Rate::Stopped.finish(5, 1), None);
    }

    proptest! {
        #[test]
        fn what_was_sent_by_the_finish_is_what_was_asked(rate in 1_000_u64..10_000_000_000, start in 0..SECOND, bits in 1_u64..1_000_000) {
            let rate = Rate::Constant(rate);
            let finish = rate.finish(start, bits).unwrap();
            let sent = rate.bits_between(start, finish);
            // Times are whole nanoseconds: at 10 Gbit/s that is 10 bits.
            prop_assert!(sent <= bits && bits - sent <= 11, "{sent} of {bits}");
        }
    }
}
