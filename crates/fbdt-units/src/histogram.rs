//! A histogram of durations, weighted by bytes.

use alloc::boxed::Box;
use alloc::vec;
use core::time::Duration;

/// Sub-buckets per power of two: a relative resolution of 1/16.
const SUB: u64 = 16;
const BUCKETS: usize = 40 * SUB as usize;

/// Durations of 1 us to about 6 days in buckets of 1/16 of their size, each
/// weighted by the bytes that had that duration.
#[derive(Clone, Debug)]
pub struct DelayHistogram {
    counts: Box<[u64]>,
    total: u64,
    max: Duration,
}

impl Default for DelayHistogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into_boxed_slice(), total: 0, max: Duration::ZERO }
    }
}

impl DelayHistogram {
    /// Adds `bytes` that had `delay`.
    pub fn record(&mut self, delay: Duration, bytes: u64) {
        self.counts[bucket(delay)] += bytes;
        self.total += bytes;
        self.max = self.max.max(delay);
    }

    /// The smallest bucket bound that at least `quantile` (0 to 1) of the
    /// bytes do not exceed; zero if nothing was recorded.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        let wanted = quantile * self.total as f64;
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += count;
            if count > 0 && seen as f64 >= wanted {
                return upper_bound(index).min(self.max);
            }
        }
        self.max
    }

    /// The largest recorded duration.
    #[must_use]
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// Bytes recorded.
    #[must_use]
    #[cfg(test)]
    pub const fn total(&self) -> u64 {
        self.total
    }
}

fn bucket(delay: Duration) -> usize {
    let us = delay.as_micros().min(u128::from(u64::MAX >> 1)) as u64;
    if us < SUB {
        return us as usize;
    }
    let exponent = u64::from(us.ilog2()) - 3;
    let index = exponent * SUB + ((us >> (exponent - 1)) & (SUB - 1));
    (index as usize).min(BUCKETS - 1)
}

fn upper_bound(index: usize) -> Duration {
    let index = index as u64;
    if index < SUB {
        return Duration::from_micros(index + 1);
    }
    let (exponent, sub) = (index / SUB, index % SUB);
    Duration::from_micros((SUB + sub + 1) << (exponent - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_a_uniform_range() {
        let mut histogram = DelayHistogram::default();
        for ms in 1..=1000 {
            histogram.record(Duration::from_millis(ms), 10);
        }
        assert_eq!(histogram.total(), 10_000);
        let median = histogram.quantile(0.5).as_secs_f64();
        assert!((0.5..0.54).contains(&median), "{median}");
        assert_eq!(histogram.quantile(1.0), Duration::from_secs(1));
        assert_eq!(DelayHistogram::default().quantile(0.5), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn a_bucket_bounds_its_values_within_a_sixteenth(us in 0u64..1 << 38) {
            let bound = upper_bound(bucket(Duration::from_micros(us))).as_micros() as u64;
            prop_assert!(bound > us, "{bound} must lie above {us}");
            prop_assert!(bound <= us + us / 16 + 1, "{bound} is too far above {us}");
        }
    }
}
