//! Queueing delay of one path in bins of a grid that all paths share.

use alloc::vec::Vec;
use core::time::Duration;

use fbdt_units::{Instant, nanos};

/// Width of a bin: a queue's noise fits in, and a queue that oscillates with
/// the RTT does not blur.
pub(crate) const BIN: Duration = Duration::from_millis(50);
/// Bins that are looked at: 6 s.
pub(crate) const BINS: usize = 120;
/// Bins on either side whose mean is a bin's trend: a queue rises for seconds
/// on every link that is filled, so slow movements say nothing.
const TREND: usize = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    index: u64,
    sum: f64,
    count: u32,
}

/// The last [`BINS`] bins, means of queueing delays in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    bins: Vec<Bin>,
}

impl Default for Series {
    fn default() -> Self {
        Self { bins: alloc::vec![Bin::default(); BINS] }
    }
}

/// The number of the bin that `now` lies in; none is 0.
pub(crate) fn bin_of(now: Instant) -> u64 {
    now.as_nanos() / nanos(BIN) + 1
}

impl Series {
    /// Takes in a queueing delay in milliseconds.
    pub(crate) fn push(&mut self, now: Instant, delay_ms: f64) {
        let index = bin_of(now);
        let bin = &mut self.bins[index as usize % BINS];
        if bin.index != index {
            *bin = Bin { index, ..Bin::default() };
        }
        bin.sum += delay_ms;
        bin.count += 1;
    }

    /// The mean of a bin, if anything was seen in it.
    pub(crate) fn get(&self, index: u64) -> Option<f64> {
        let bin = &self.bins[index as usize % BINS];
        (bin.index == index && bin.count > 0).then(|| bin.sum / f64::from(bin.count))
    }

    /// The bins before `end`, oldest first.
    fn values(&self, end: u64) -> Vec<Option<f64>> {
        let first = end.saturating_sub(BINS as u64);
        // The oldest bin's place is the one that `end` itself is written to.
        (first + 1..end).map(|index| self.get(index)).collect()
    }

    /// The bins before `end`, oldest first, each less its trend.
    pub(crate) fn movements(&self, end: u64) -> Vec<Option<f64>> {
        let values = self.values(end);
        let around = |at: usize| {
            let near = &values[at.saturating_sub(TREND)..values.len().min(at + TREND + 1)];
            mean(near.iter().flatten().copied())
        };
        values.iter().enumerate().map(|(at, v)| v.map(|v| v - around(at))).collect()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), v| (sum + v, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Pairs of bins without which a correlation says nothing: 2 s.
const LEAST: usize = 40;
/// A queue that moves less than this (standard deviation, ms) is noise.
const LEAST_MOVEMENT: f64 = 0.15;

/// Pearson's correlation of two paths' movements, the largest over shifts of
/// at most `lag` bins; `None` while there is too little to see.
pub(crate) fn correlation(a: &[Option<f64>], b: &[Option<f64>], lag: usize) -> Option<f64> {
    let shifted = |left: &[Option<f64>], right: &[Option<f64>], by: usize| {
        pearson(left.iter().zip(right.iter().skip(by)).filter_map(|(l, r)| (*l).zip(*r)))
    };
    let all = (0..=lag).flat_map(|by| [shifted(a, b, by), shifted(b, a, by)]);
    all.flatten().reduce(f64::max)
}

fn pearson(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut count, mut a, mut b) = (0usize, 0.0, 0.0);
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        count += 1;
        a += x;
        b += y;
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    if count < LEAST {
        return None;
    }
    let n = count as f64;
    let (va, vb) = (aa / n - (a / n) * (a / n), bb / n - (b / n) * (b / n));
    let least = LEAST_MOVEMENT * LEAST_MOVEMENT;
    (va > least && vb > least).then(|| (ab / n - a * b / (n * n)) / libm::sqrt(va * vb))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bin: u64) -> Instant {
        Instant::from_nanos(bin * nanos(BIN) + 7)
    }

    fn series(value: impl Fn(u64) -> Option<f64>) -> Series {
        let mut series = Series::default();
        for bin in 0..300 {
            if let Some(value) = value(bin) {
                series.push(at(bin), value);
            }
        }
        series
    }

    /// Noise without a generator: the same for the same `salt`.
    fn noise(bin: u64, salt: u64) -> f64 {
        let mixed = crate::mix(bin * 1000 + salt);
        (mixed % 1000) as f64 / 1000.0
    }

    fn between(a: &Series, b: &Series) -> Option<f64> {
        let end = bin_of(at(299));
        correlation(&a.movements(end), &b.movements(end), 1)
    }

    #[test]
    fn f17_one_queue_seen_twice_correlates_also_through_noise_and_a_shift() {
        let queue = |bin: u64| 10.0 + 5.0 * noise(bin / 3, 1);
        let a = series(|bin| Some(queue(bin) + noise(bin, 2)));
        let b = series(|bin| Some(queue(bin + 1) + noise(bin, 3)));
        assert!(between(&a, &b).unwrap() > 0.8);
    }

    #[test]
    fn f17_two_queues_do_not_correlate_although_both_rise_and_fall_for_seconds() {
        // Saw teeth of 4 and 4.3 s and noise of their own.
        let a = series(|bin| Some((bin % 80) as f64 * 0.3 + 3.0 * noise(bin, 4)));
        let b = series(|bin| Some((bin % 86) as f64 * 0.3 + 3.0 * noise(bin, 5)));
        assert!(between(&a, &b).unwrap() < 0.5);
    }

    #[test]
    fn f17_an_idle_path_and_an_empty_queue_say_nothing() {
        let busy = series(|bin| Some(10.0 + 5.0 * noise(bin, 6)));
        let idle = series(|bin| (bin % 10 == 0).then(|| noise(bin, 6)));
        let flat = series(|_| Some(4.0));
        assert_eq!(between(&busy, &idle), None);
        assert_eq!(between(&busy, &flat), None);
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut series = Series::default();
        series.push(at(0), 1.0);
        assert_eq!(series.get(bin_of(at(0))), Some(1.0));
        series.push(at(BINS as u64), 2.0);
        assert_eq!(series.get(bin_of(at(0))), None);
    }
}
