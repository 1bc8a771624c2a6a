//! Bytes, rates and times.

use core::time::Duration;

use crate::time::nanos;

/// Bytes that a rate of `bytes_per_second` moves in `time`.
#[must_use]
pub fn bytes_in(bytes_per_second: f64, time: Duration) -> u64 {
    let bytes = bytes_per_second * time.as_secs_f64();
    if bytes >= 0.0 { bytes as u64 } else { 0 }
}

/// Time that `bytes` take at `bytes_per_second`; an hour if it does not move.
#[must_use]
pub fn time_for(bytes: u64, bytes_per_second: f64) -> Duration {
    const NEVER: Duration = Duration::from_secs(3600);
    if bytes_per_second <= 0.0 {
        return NEVER;
    }
    Duration::try_from_secs_f64(bytes as f64 / bytes_per_second).unwrap_or(NEVER).min(NEVER)
}

/// `bytes` moved in `time`, as bytes per second; 0 for no time.
#[must_use]
pub fn rate_of(bytes: u64, time: Duration) -> f64 {
    match nanos(time) {
        0 => 0.0,
        ns => bytes as f64 * 1e9 / ns as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_times_invert() {
        let rate = 1e6;
        assert_eq!(bytes_in(rate, Duration::from_millis(5)), 5000);
        assert_eq!(time_for(5000, rate), Duration::from_millis(5));
        assert_eq!(time_for(1, 0.0), Duration::from_secs(3600));
        assert!((rate_of(5000, Duration::from_millis(5)) - rate).abs() < 1.0);
    }
}
