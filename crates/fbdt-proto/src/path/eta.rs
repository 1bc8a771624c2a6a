//! When a path delivers what it is given now.

use core::time::Duration;

use fbdt_units::{Instant, time_for};

use super::{PathState, Subflow};
use crate::scale::NOISE;

/// Segments acknowledged after a rest that make the smoothed RTT one of today.
const AFTER_REST: u64 = 16;

impl PathState {
    /// Time until a byte handed over now arrives: the queue-free delay there,
    /// the queue that the RTT shows, and what is unsent at the pace of the TCP
    /// window. Outstanding bytes over the rate would starve a path that is
    /// still in slow start.
    pub(crate) fn arrival(&self, now: Instant) -> Duration {
        let Some(subflow) = &self.subflow else {
            return Duration::from_secs(3600);
        };
        let sample = &subflow.sample;
        if !subflow.sampled || sample.srtt.is_zero() {
            return self.model.base();
        }
        let srtt = sample.srtt;
        let pace = sample.cwnd as f64 / srtt.as_secs_f64().max(1e-4);
        let rate = self.model.rate();
        let pace = pace.max(1e4).min(rate.max(pace * 0.5));
        let unsent = sample.unsent + subflow.since_sample;
        let wait = time_for(unsent, pace).min(srtt / 4 + NOISE * 2);
        let there = self.model.there();
        // A path that is silent for longer than its RTT takes at least as long as it already did.
        let rtt = srtt.max(subflow.progress.silence(now));
        // Bytes whose acknowledgements are gathered have arrived.
        let queue = rtt.saturating_sub(self.model.base() + self.model.gathered());
        there + queue.min(self.own_queue(subflow, rate)) + wait
    }

    /// The longest queue that there may be: without bound, but soon after a rest what the path itself
    /// has sent since.
    fn own_queue(&self, subflow: &Subflow, rate: f64) -> Duration {
        if !subflow.has_just_rested() {
            return Duration::MAX;
        }
        let held = subflow.sample.outstanding() + subflow.since_sample;
        time_for(held, rate).saturating_sub(self.model.base())
    }
}

impl Subflow {
    /// Whether the smoothed RTT is still that of before a rest, in which the queue has left.
    fn has_just_rested(&self) -> bool {
        let since = |mark| self.sample.acked_total.saturating_sub(mark);
        self.rested.is_some_and(|mark| since(mark) < AFTER_REST * u64::from(self.sample.mss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use fbdt_units::SubflowSample;
    use fbdt_units::{PathId, SubflowId};

    #[test]
    fn a_path_that_rests_has_no_queue_when_it_is_used_again() {
        let config = Config::default();
        let mut path = PathState::new(PathId(0), "a");
        path.attach(Instant::ZERO, SubflowId(0), config.suspect_floor);
        let mut at = 0;
        let mut arrival = |acked_total, in_flight| {
            at += 1_000_000;
            let sample = SubflowSample {
                srtt: Duration::from_millis(30),
                min_rtt: Duration::from_millis(10),
                cwnd: 100_000,
                mss: 1000,
                delivery_rate: 5_000_000,
                acked_total,
                in_flight,
                ..SubflowSample::default()
            };
            path.update(Instant::from_nanos(at), &sample, &config);
            path.arrival(Instant::from_nanos(at)).as_millis()
        };
        assert_eq!(arrival(500_000, 100_000), 25, "5 ms there, and 20 of queue");
        assert_eq!(arrival(600_000, 0), 5, "it is empty");
        assert_eq!(arrival(605_000, 75_000), 10, "75 kB take 15 ms, the way there and back 10");
        assert_eq!(arrival(620_000, 75_000), 25, "the RTT is one of today");
    }
}
