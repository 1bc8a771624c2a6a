//! Samples of one path, and the rate of the last seconds.

use std::collections::VecDeque;

/// Samples kept: five minutes at one a second.
pub(super) const KEPT: usize = 300;
/// A rate is the mean over at least this time, in seconds, if the counter is that old.
const MEAN_S: f64 = 1.5;

/// One second of one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Received, in kbit/s.
    pub(super) down_kbps: u32,
    /// Sent, in kbit/s.
    pub(super) up_kbps: u32,
    /// Smoothed RTT in microseconds; 0 while there is none.
    pub(super) rtt_us: u32,
}

impl Sample {
    pub(super) fn new(down: u64, up: u64, rtt_us: u32, seconds: f64) -> Self {
        Self { down_kbps: kbps(down, seconds), up_kbps: kbps(up, seconds), rtt_us }
    }

    /// Adds a path's rates to those of others; the larger RTT counts.
    pub(super) fn join(&mut self, other: Self) {
        self.down_kbps = self.down_kbps.saturating_add(other.down_kbps);
        self.up_kbps = self.up_kbps.saturating_add(other.up_kbps);
        self.rtt_us = self.rtt_us.max(other.rtt_us);
    }

    pub(super) const fn moves(&self) -> bool {
        self.down_kbps > 0 || self.up_kbps > 0
    }
}

fn kbps(bytes: u64, seconds: f64) -> u32 {
    // A float that is too large becomes the largest integer.
    (bytes as f64 * 8e-3 / seconds).round() as u32
}

/// The last five minutes of one path, or of all.
#[derive(Debug, Clone, Default)]
pub(super) struct Ring(VecDeque<Sample>);

impl Ring {
    /// Appends a sample `times` times.
    pub(super) fn push(&mut self, sample: Sample, times: usize) {
        for _ in 0..times.min(KEPT) {
            if self.0.len() == KEPT {
                self.0.pop_front();
            }
            self.0.push_back(sample);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing moved in the whole time.
    pub(super) fn is_still(&self) -> bool {
        !self.0.iter().any(Sample::moves)
    }

    /// The newest `length` values; earlier than the first sample there are `none`.
    pub(super) fn values<T: Clone>(
        &self,
        length: usize,
        none: &T,
        of: impl Fn(&Sample) -> T,
    ) -> Vec<T> {
        let missing = length.saturating_sub(self.0.len());
        let padding = std::iter::repeat_n(none.clone(), missing);
        padding.chain(self.0.iter().skip(self.0.len().saturating_sub(length)).map(of)).collect()
    }
}

/// Counters of one path of one session, as they were at the last samples.
#[derive(Debug, Clone, Default)]
pub(super) struct Counter {
    before: VecDeque<(f64, u64, u64)>,
    /// Bytes of TCP since the session began.
    pub(super) carried: u64,
}

impl Counter {
    /// Notes the counters at a time; returns what they have grown by since the sample before: received
    /// and sent stream bytes, and bytes of TCP.
    pub(super) fn advance(&mut self, at_s: f64, down: u64, up: u64, carried: u64) -> [u64; 3] {
        let (_, was_down, was_up) = self.before.back().copied().unwrap_or_default();
        let grown = carried.saturating_sub(self.carried);
        self.carried = carried;
        self.before.push_back((at_s, down, up));
        while self.before.len() > 4 {
            self.before.pop_front();
        }
        [down.saturating_sub(was_down), up.saturating_sub(was_up), grown]
    }

    /// Rates in Mbit/s, from counters that are read now.
    pub(super) fn rates(&self, now_s: f64, down: u64, up: u64) -> (f64, f64) {
        let old_enough = |(at_s, ..): &&(f64, u64, u64)| now_s - at_s >= MEAN_S;
        let earlier = self.before.iter().rev().find(old_enough).or(self.before.front());
        let Some((at_s, was_down, was_up)) = earlier.copied() else { return (0.0, 0.0) };
        let seconds = now_s - at_s;
        if seconds < 0.1 {
            return (0.0, 0.0);
        }
        let rate =
            |now: u64, was: u64| (now.saturating_sub(was) as f64 * 8e-3 / seconds).round() / 1e3;
        (rate(down, was_down), rate(up, was_up))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_five_minutes_and_pads_what_it_does_not_know() {
        let mut ring = Ring::default();
        for second in 0..KEPT as u32 + 5 {
            ring.push(Sample { down_kbps: second, ..Sample::default() }, 1);
        }
        assert_eq!(ring.len(), KEPT);
        let values = ring.values(KEPT, &0, |sample| sample.down_kbps);
        assert_eq!((values[0], values[KEPT - 1]), (5, KEPT as u32 + 4));
        let mut young = Ring::default();
        young.push(Sample { down_kbps: 7, ..Sample::default() }, 2);
        assert_eq!(young.values(4, &0, |sample| sample.down_kbps), [0, 0, 7, 7]);
        young.push(Sample::default(), 10_000);
        assert!(young.len() == KEPT && young.is_still());
    }

    #[test]
    fn a_rate_is_the_mean_of_the_last_two_seconds() {
        let mut counter = Counter::default();
        assert_eq!(
            counter.rates(0.0, 5, 5),
            (0.0, 0.0),
            "nothing is known before the first sample"
        );
        // 10 Mbit/s down for 10 s, then 20 Mbit/s up.
        for second in 0..=10u64 {
            let down = second * 1_250_000;
            let grown = counter.advance(second as f64, down, 0, 2 * down);
            assert_eq!(grown[0], if second == 0 { 0 } else { 1_250_000 });
        }
        assert_eq!(counter.rates(10.5, 12_500_000 + 625_000, 0), (10.0, 0.0));
        counter.advance(11.0, 12_500_000, 2_500_000, 0);
        counter.advance(12.0, 12_500_000, 5_000_000, 0);
        assert_eq!(counter.rates(12.5, 12_500_000, 6_250_000), (0.0, 20.0));
    }

    #[test]
    fn a_sample_is_in_kilobits() {
        let sample = Sample::new(1_250_000, 125, 12_500, 1.0);
        assert_eq!(sample, Sample { down_kbps: 10_000, up_kbps: 1, rtt_us: 12_500 });
        assert_eq!(Sample::new(u64::MAX, 0, 0, 1e-3).down_kbps, u32::MAX);
    }
}
