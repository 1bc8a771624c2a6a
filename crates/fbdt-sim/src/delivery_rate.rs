//! The delivery rate that TCP_INFO has, sampled as Linux does (draft-cheng-iccrg-delivery-rate-estimation).

use std::time::Duration;

use fbdt_proto::Instant;

/// What was known when a burst left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    sent: Instant,
    acked: u64,
    acked_at: Instant,
    first_sent: Instant,
    limited: bool,
}

impl Departure {
    /// Bytes that were acknowledged then.
    pub(crate) const fn acked(&self) -> u64 {
        self.acked
    }
}

/// The latest sample, and what the next ones are taken from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryRate {
    /// When bytes were last acknowledged.
    acked_at: Instant,
    /// When those that were acknowledged last had been sent.
    first_sent: Instant,
    /// Until so much is acknowledged, samples are limited by the application.
    limited_until: u64,
    rate: f64,
    limited: bool,
}

impl DeliveryRate {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { acked_at: now, first_sent: now, limited_until: 0, rate: 0.0, limited: false }
    }

    /// Bytes per second.
    pub(crate) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether the application, not the window, limited the sample.
    pub(crate) const fn is_limited(&self) -> bool {
        self.limited
    }

    /// Something is written where there was nothing unsent and room in the window.
    pub(crate) fn limit(&mut self, acked: u64, in_flight: usize) {
        self.limited_until = (acked + in_flight as u64).max(1);
    }

    /// A burst leaves; `acked` is all that was acknowledged, `idle` that nothing is in flight.
    pub(crate) const fn depart(&mut self, now: Instant, acked: u64, idle: bool) -> Departure {
        if idle {
            (self.first_sent, self.acked_at) = (now, now);
        }
        Departure {
            sent: now,
            acked,
            acked_at: self.acked_at,
            first_sent: self.first_sent,
            limited: self.limited_until > 0,
        }
    }

    /// The acknowledgement of bursts is there, of which `last` left last; `acked` has them.
    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        acked: u64,
        last: Departure,
        min_rtt: Duration,
    ) {
        self.acked_at = now;
        self.first_sent = last.sent;
        if acked > self.limited_until {
            self.limited_until = 0;
        }
        // Acknowledgements that come all at once had time to leave, and the other way round.
        let sending = last.sent.saturating_since(last.first_sent);
        let interval = sending.max(now.saturating_since(last.acked_at));
        if interval < min_rtt || interval.is_zero() {
            return;
        }
        let rate = (acked - last.acked) as f64 / interval.as_secs_f64();
        if !last.limited || rate >= self.rate {
            (self.rate, self.limited) = (rate, last.limited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// 1000 bytes a millisecond leave, and each is acknowledged after the RTT.
    fn steady(until: u64) -> (DeliveryRate, Vec<Departure>) {
        let mut rate = DeliveryRate::new(at(0));
        let mut sent = Vec::new();
        for ms in 0..until {
            if ms >= 10 {
                let acked = (ms - 9) * 1000;
                rate.acknowledge(at(ms), acked, sent[ms as usize - 10], RTT);
            }
            sent.push(rate.depart(at(ms), ms.saturating_sub(9) * 1000, ms == 0));
        }
        (rate, sent)
    }

    #[test]
    fn a_steady_stream_has_its_rate() {
        let (rate, _) = steady(50);
        assert!((rate.rate() - 1e6).abs() < 1.0, "{}", rate.rate());
        assert!(!rate.is_limited());
    }

    #[test]
    fn acknowledgements_that_come_together_are_no_faster_link() {
        let (mut rate, sent) = steady(50);
        // Nothing for 10 ms, then all that was sent meanwhile.
        rate.acknowledge(at(60), 50_000, sent[49], RTT);
        assert!(rate.rate() <= 1e6, "{}", rate.rate());
    }

    #[test]
    fn what_the_application_limits_raises_the_rate_only() {
        let (mut rate, _) = steady(50);
        rate.limit(41_000, 0);
        let one = rate.depart(at(60), 41_000, true);
        rate.acknowledge(at(70), 41_500, one, RTT);
        assert!((rate.rate() - 1e6).abs() < 1.0, "500 bytes in an RTT say nothing");
        let many = rate.depart(at(70), 41_500, true);
        rate.acknowledge(at(80), 61_500, many, RTT);
        assert!((rate.rate() - 2e6).abs() < 1.0);
        assert!(!rate.is_limited(), "what limited it is acknowledged");
    }
}
