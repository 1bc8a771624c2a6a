//! Compares what was measured with what was set. Pure.

use serde::Serialize;

/// Least tolerance of a rate: 2 %.
pub const RATE_SHARE: f64 = 0.02;
/// Tolerance of a round trip, milliseconds.
pub const ROUND_TRIP_MS: f64 = 0.5;
/// The same of long round trips: a machine that slept meanwhile takes a millisecond to wake up.
pub const ROUND_TRIP_SHARE: f64 = 0.005;
/// Tolerance of a delay's standard deviation, milliseconds.
pub const JITTER_MS: f64 = 0.2;
/// Tolerance of a loss share: 0.3 points.
pub const LOSS_SHARE: f64 = 0.003;
/// A tolerance below this many standard deviations of the count is widened to it.
const DEVIATIONS: f64 = 4.0;

/// One measured quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// `round_trip_ms`, `loss`, `rate_mbps`, `delay_ms` or `jitter_sd_ms`.
    pub quantity: &'static str,
    /// `a_to_b` or `b_to_a`; of a round trip, the direction of its first half.
    pub direction: String,
    /// What was set; absent: nothing (an unlimited rate) or not constant (a trace).
    pub expected: Option<f64>,
    /// What was measured.
    pub measured: f64,
    /// Largest accepted difference; absent: nothing is checked.
    pub tolerance: Option<f64>,
    /// Whether it is within the tolerance.
    pub ok: bool,
}

impl Measurement {
    /// A quantity with an expectation and a tolerance.
    pub fn checked(
        quantity: &'static str,
        direction: impl ToString,
        expected: f64,
        measured: f64,
        tolerance: f64,
    ) -> Measurement {
        Measurement {
            quantity,
            direction: direction.to_string(),
            expected: Some(expected),
            measured,
            tolerance: Some(tolerance),
            ok: (measured - expected).abs() <= tolerance,
        }
    }

    /// A quantity that is only reported.
    pub fn reported(
        quantity: &'static str,
        direction: impl ToString,
        measured: f64,
    ) -> Measurement {
        Measurement {
            quantity,
            direction: direction.to_string(),
            expected: None,
            measured,
            tolerance: None,
            ok: true,
        }
    }
}

/// Tolerances of the mean and of the standard deviation of delays, milliseconds. Both vary with the `packets` measured.
pub fn delay_tolerances(mean: f64, deviation: f64, packets: usize) -> [f64; 2] {
    let spread = DEVIATIONS * deviation / (packets.max(1) as f64).sqrt();
    let least = ROUND_TRIP_MS.max(mean * ROUND_TRIP_SHARE);
    [least + spread, JITTER_MS + spread]
}

/// Variance of a loss count per packet: bursts of mean length `burst` make it larger than the binomial one.
fn variance(loss: f64, burst: f64) -> f64 {
    loss * (1.0 - loss) * (2.0 * burst - 1.0).max(1.0)
}

/// Packets after which the tolerance of 0.3 points is four standard deviations.
pub fn packets_for(loss: f64, burst: f64) -> u64 {
    let wanted = (DEVIATIONS / LOSS_SHARE).powi(2) * variance(loss, burst);
    (wanted as u64).clamp(5_000, 1_000_000)
}

/// Tolerance of a loss share counted over `packets`.
pub fn loss_tolerance(loss: f64, burst: f64, packets: u64) -> f64 {
    let deviation = (variance(loss, burst) / (packets.max(1) as f64)).sqrt();
    LOSS_SHARE.max(DEVIATIONS * deviation)
}

/// Tolerance of a rate of which `packets` arrived: a slow link's few packets vary with what it loses.
pub fn rate_tolerance(expected: f64, loss: f64, burst: f64, packets: u64) -> f64 {
    let deviation =
        (variance(loss, burst) / (packets.max(1) as f64)).sqrt() / (1.0 - loss).max(0.01);
    expected * RATE_SHARE.max(DEVIATIONS * deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_packets_of_a_slow_lossy_link_vary() {
        assert!((rate_tolerance(2.0, 0.0, 1.0, 50) - 0.04).abs() < 1e-12, "nothing is lost");
        let slow = rate_tolerance(2.0, 0.03, 1.0, 50);
        assert!((0.19..0.21).contains(&slow), "four of sqrt(0.03 x 0.97 / 50) / 0.97: {slow}");
        assert!((rate_tolerance(2.0, 0.03, 1.0, 50_000) - 0.04).abs() < 1e-12);
    }

    #[test]
    fn few_packets_leave_the_delay_uncertain() {
        let [mean, deviation] = delay_tolerances(20.0, 5.0, 400);
        assert!((mean - 1.5).abs() < 1e-12 && (deviation - 1.2).abs() < 1e-12);
        assert_eq!(delay_tolerances(400.0, 0.0, 0), [2.0, JITTER_MS]);
    }

    #[test]
    fn beyond_the_tolerance_is_not_ok() {
        assert!(Measurement::checked("rate_mbps", "a_to_b", 100.0, 98.1, 2.0).ok);
        assert!(!Measurement::checked("rate_mbps", "a_to_b", 100.0, 97.9, 2.0).ok);
        assert!(!Measurement::checked("loss", "a_to_b", 0.05, f64::NAN, 0.003).ok);
    }

    #[test]
    fn enough_packets_keep_the_tolerance_tight() {
        let packets = packets_for(0.05, 1.0);
        assert!((80_000..90_000).contains(&packets), "{packets}");
        assert!(loss_tolerance(0.05, 1.0, packets + 1) <= LOSS_SHARE * 1.0001);
        assert!(loss_tolerance(0.05, 8.0, packets) > 2.0 * LOSS_SHARE);
        assert_eq!(packets_for(0.0, 1.0), 5_000);
    }
}
