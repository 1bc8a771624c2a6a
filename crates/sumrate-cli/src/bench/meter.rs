//! Counts what a receiving application gets, by interval, and finds the longest silence.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::run::INTERVALS_MAX;

/// Counts bytes from the first one on. Bytes of the warm-up and after the end are not counted.
#[derive(Debug)]
pub(super) struct Meter {
    warmup: Duration,
    length: Option<Duration>,
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the bytes were asked for, where this end knows it.
    asked: Option<Instant>,
    start: Option<Instant>,
    last: Option<Instant>,
    total: u64,
    bins: Vec<u64>,
    stall: Duration,
}

/// What was received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Bytes counted.
    pub bytes: u64,
    /// All bytes, with those of the warm-up and after the end.
    pub total_bytes: u64,
    /// Counted time in seconds.
    pub duration_s: f64,
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Bytes of each interval; the last may be short.
    pub bins: Vec<u64>,
    /// Longest time without a byte.
    pub longest_stall_ms: f64,
}

impl Meter {
    pub(super) fn new(warmup: Duration, length: Option<Duration>, interval: Duration) -> Self {
        Self { warmup, length, interval, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of all streams are asked for `now`: until one of a busy machine's programs gets to
    /// read, what came meanwhile would else have taken no time.
    pub(super) fn ask(&self, now: Instant) {
        self.lock().asked.get_or_insert(now);
    }

    /// `bytes` arrived `now`; says whether they count.
    pub(super) fn record(&self, now: Instant, bytes: u64) -> bool {
        let mut state = self.lock();
        let start = *state.start.get_or_insert(now);
        state.total += bytes;
        let elapsed = now.saturating_duration_since(start);
        if elapsed < self.warmup {
            return false;
        }
        let window_start = start + self.warmup;
        let counted_until = self.length.map_or(now, |length| now.min(window_start + length));
        let silent_since = state.last.map_or(window_start, |last| last.max(window_start));
        state.stall = state.stall.max(counted_until.saturating_duration_since(silent_since));
        state.last = Some(now);
        let into = elapsed - self.warmup;
        if self.length.is_some_and(|length| into >= length) {
            return false;
        }
        let bin = (into.as_nanos() / self.interval.as_nanos().max(1)) as usize;
        let bin = bin.min(INTERVALS_MAX - 1);
        if state.bins.len() <= bin {
            state.bins.resize(bin + 1, 0);
        }
        state.bins[bin] += bytes;
        true
    }

    /// Goodput of one stream that got `bytes` that count, the last of them at `last`.
    pub(super) fn stream_goodput_mbps(&self, bytes: u64, last: Option<Instant>) -> f64 {
        let until_last = || {
            let state = self.lock();
            let begin = state.asked.or(state.start)? + self.warmup;
            Some(last?.saturating_duration_since(begin))
        };
        match self.length.or_else(until_last) {
            Some(time) => mbps(bytes, time.as_secs_f64()),
            None => 0.0,
        }
    }

    /// The result, once nothing more will arrive.
    pub(super) fn finish(&self) -> Received {
        let state = self.lock();
        let since_start = |instant: Option<Instant>| match (state.start, instant) {
            (Some(start), Some(instant)) => {
                instant.saturating_duration_since(start).saturating_sub(self.warmup)
            }
            _ => Duration::ZERO,
        };
        let last = since_start(state.last);
        let duration = self.length.unwrap_or(last);
        // Silence up to the end of the counted time.
        let stall = state.stall.max(duration.saturating_sub(last));
        let mut bins = state.bins.clone();
        let intervals = duration.as_nanos().div_ceil(self.interval.as_nanos().max(1)) as usize;
        bins.resize(intervals.clamp(bins.len(), INTERVALS_MAX), 0);
        Received {
            bytes: bins.iter().sum(),
            total_bytes: state.total,
            duration_s: duration.as_secs_f64(),
            interval_s: self.interval.as_secs_f64(),
            bins,
            longest_stall_ms: stall.as_secs_f64() * 1e3,
        }
    }
}

/// Megabits per second; 0 for no time.
pub(super) fn mbps(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn warmup_and_tail_are_not_counted() {
        let meter = Meter::new(100 * MS, Some(300 * MS), 100 * MS);
        let start = Instant::now();
        for (at, bytes) in [(0, 1), (99, 2), (100, 10), (199, 20), (350, 40), (400, 80), (900, 160)]
        {
            meter.record(start + at * MS, bytes);
        }
        let received = meter.finish();
        assert_eq!(received.bins, [30, 0, 40]);
        assert_eq!((received.bytes, received.total_bytes), (70, 313));
        assert!((received.duration_s - 0.3).abs() < 1e-9);
        assert!((received.longest_stall_ms - 151.0).abs() < 1e-6);
    }

    #[test]
    fn a_streams_bytes_took_the_time_since_they_were_asked_for() {
        let meter = Meter::new(Duration::ZERO, None, 100 * MS);
        let start = Instant::now();
        meter.ask(start);
        // It lay there when this program got to read.
        meter.record(start + 80 * MS, 1_000_000);
        let goodput = meter.stream_goodput_mbps(1_000_000, Some(start + 80 * MS));
        assert!((goodput - 100.0).abs() < 1e-6, "{goodput}");
    }

    #[test]
    fn silence_at_both_ends_of_the_counted_time_is_a_stall() {
        let meter = Meter::new(Duration::ZERO, Some(1000 * MS), 500 * MS);
        let start = Instant::now();
        meter.record(start, 1);
        meter.record(start + 100 * MS, 1);
        assert!((meter.finish().longest_stall_ms - 900.0).abs() < 1e-6);
        let meter = Meter::new(100 * MS, Some(1000 * MS), 500 * MS);
        meter.record(start, 1);
        meter.record(start + 800 * MS, 1);
        assert!((meter.finish().longest_stall_ms - 700.0).abs() < 1e-6);
    }

    #[test]
    fn a_transfer_of_bytes_lasts_to_its_last_byte() {
        let meter = Meter::new(Duration::ZERO, None, 100 * MS);
        let start = Instant::now();
        meter.record(start, 5);
        meter.record(start + 250 * MS, 5);
        let received = meter.finish();
        assert_eq!(received.bins, [5, 0, 5]);
        assert!((received.duration_s - 0.25).abs() < 1e-9);
        let nothing = Meter::new(Duration::ZERO, None, 100 * MS).finish();
        assert_eq!((nothing.bytes, nothing.bins.len()), (0, 0));
    }
}
