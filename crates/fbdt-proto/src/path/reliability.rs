//! How far a path is trusted with the front.
//!
//! Rule: F3.

use core::time::Duration;

use super::congestion::LOSSY;
use fbdt_units::{Instant, SubflowSample, nanos};

/// Time in which a past failure loses half of its weight.
const HALF_LIFE: f64 = 10.0;
/// Weight of a share of retransmitted bytes against one failure.
const LOSS_WEIGHT: f64 = 20.0;

/// A penalty that grows with each time the path was suspect, with the share
/// of its bytes that TCP had to send again, and with its RTT.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reliability {
    failures: f64,
    failed_at: Instant,
    loss: f64,
    sent: u64,
    retransmitted: u64,
}

impl Reliability {
    /// A path that has failed so often by now.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn failing(failures: f64) -> Self {
        Self { failures, ..Self::default() }
    }

    /// The path became suspect.
    pub fn failed(&mut self, now: Instant) {
        self.failures = self.failures_at(now) + 1.0;
        self.failed_at = now;
    }

    /// Takes in a sample, at most once per RTT.
    pub fn update(&mut self, sample: &SubflowSample) {
        let sent = sample.sent_total.saturating_sub(self.sent);
        if sent < u64::from(sample.mss) * 8 {
            return;
        }
        let again = sample.retransmitted_total.saturating_sub(self.retransmitted);
        self.loss = 0.95 * self.loss + 0.05 * (again as f64 / sent as f64).min(10.0 * LOSSY);
        self.sent = sample.sent_total;
        self.retransmitted = sample.retransmitted_total;
    }

    /// A new subflow counts its bytes from zero.
    pub const fn restart(&mut self) {
        self.sent = 0;
        self.retransmitted = 0;
    }

    /// Share of bytes that TCP sends again, smoothed.
    #[must_use]
    pub const fn loss(&self) -> f64 {
        self.loss
    }

    /// Whether silence is rather TCP's timer than the path's end.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        self.loss > LOSSY
    }

    /// The penalty now; lower is more reliable.
    #[must_use]
    pub fn penalty(&self, now: Instant, base_rtt: Duration) -> f64 {
        self.failures_at(now) + LOSS_WEIGHT * self.loss + base_rtt.as_secs_f64() * 10.0
    }

    fn failures_at(&self, now: Instant) -> f64 {
        let age = nanos(now.saturating_since(self.failed_at)) as f64 / 1e9;
        self.failures * libm::exp2(-age / HALF_LIFE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f3_failures_fade_and_loss_counts() {
        let mut path = Reliability::default();
        let start = Instant::ZERO;
        path.failed(start);
        path.failed(start);
        let base = Duration::from_millis(4);
        let fresh = path.penalty(start, base);
        let faded = path.penalty(start + Duration::from_secs(20), base);
        assert!((fresh - 2.04).abs() < 1e-9);
        assert!((faded - 0.54).abs() < 1e-9);
        let mut lossy = Reliability::default();
        for i in 1..200 {
            lossy.update(&SubflowSample {
                mss: 1448,
                sent_total: i * 100_000,
                retransmitted_total: i * 5000,
                ..SubflowSample::default()
            });
        }
        assert!((lossy.loss() - 0.05).abs() < 1e-4);
        assert!(lossy.is_lossy() && !path.is_lossy());
    }
}
