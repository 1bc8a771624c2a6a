//! The RTT as Linux estimates it, and the time after which it retransmits.

use std::time::Duration;

use fbdt_proto::Instant;

pub(super) const MIN_RTO: Duration = Duration::from_millis(200);
const MAX_RTO: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(super) struct Rtt {
    pub(super) smoothed: Duration,
    /// The smallest one so far.
    pub(super) least: Duration,
    /// Mean deviation: what TCP_INFO calls rttvar.
    pub(super) deviation: Duration,
    /// The greatest deviation of this RTT, what the timer makes of it, and when the RTT began.
    greatest: Duration,
    variation: Duration,
    since: Instant,
}

impl Rtt {
    pub(super) fn new(now: Instant, rtt: Duration) -> Self {
        Self {
            smoothed: rtt,
            least: rtt,
            deviation: rtt / 2,
            greatest: MIN_RTO / 4,
            variation: (rtt / 2).max(MIN_RTO / 4),
            since: now,
        }
    }

    pub(super) fn measure(&mut self, now: Instant, rtt: Duration) {
        self.least = self.least.min(rtt);
        let gap = rtt.abs_diff(self.smoothed);
        // An RTT that falls raises the deviation by an eighth of what one that grows does.
        let gain = if rtt < self.smoothed && gap > self.deviation { 32 } else { 4 };
        self.deviation = (self.deviation * (gain - 1) + gap) / gain;
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
        self.greatest = self.greatest.max(self.deviation);
        self.variation = self.variation.max(self.greatest);
        if now.saturating_since(self.since) >= self.smoothed {
            if self.greatest < self.variation {
                self.variation -= (self.variation - self.greatest) / 4;
            }
            (self.since, self.greatest) = (now, MIN_RTO / 4);
        }
    }

    /// The timeout after so many before it.
    pub(super) fn timeout(&self, backoff: u32) -> Duration {
        let once = (self.smoothed + self.variation * 4).max(MIN_RTO);
        (once * 2u32.pow(backoff.min(10))).min(MAX_RTO)
    }

    /// Seconds in which slow start makes a window this many times as large: each RTT doubles it, or half of the
    /// smoothed RTT where that is longer, which paces it.
    pub(super) fn time_to_grow(&self, factor: f64) -> f64 {
        self.least.max(self.smoothed / 2).as_secs_f64() * factor.log2()
    }
}
