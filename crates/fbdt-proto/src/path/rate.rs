//! A path's delivery rate.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::scale::NOISE;
use fbdt_units::{Instant, SubflowSample, rate_of};

const BUCKETS: usize = 8;
/// Least time of a bucket: short paths' rates vary from one RTT to the next.
const SPAN: Duration = Duration::from_millis(100);
/// A rate that grows by this factor within a few RTTs is not known yet.
const GROWTH: f64 = 1.25;

/// The rate that a path can deliver, in bytes per second.
///
/// `link` is a windowed maximum of TCP's delivery-rate samples: a sample that
/// was limited by what this end chose to send says nothing about the link, so
/// it never lowers the estimate unless the RTT shows a queue (F7, first trap).
/// `acked` is what was acknowledged lately, whoever limited it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateEstimate {
    buckets: VecDeque<(Instant, f64)>,
    link: f64,
    acked: f64,
    acked_mark: Option<(Instant, u64)>,
    grown: Option<(Instant, f64)>,
    saturated: bool,
}

impl RateEstimate {
    /// Takes in a sample of the subflow, whose RTT shows a queue or not.
    pub(crate) fn update(&mut self, now: Instant, sample: &SubflowSample, queue: bool) {
        let base = sample.base_rtt();
        let rate = sample.delivery_rate as f64;
        if rate > 0.0 && (!sample.app_limited || rate > self.link || queue) {
            let span = (base * 2).max(SPAN);
            match self.buckets.back_mut() {
                Some((start, best)) if now.saturating_since(*start) < span => {
                    *best = best.max(rate);
                }
                _ => self.buckets.push_back((now, rate)),
            }
            if self.buckets.len() > BUCKETS {
                self.buckets.pop_front();
            }
            self.link = self.buckets.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
            // The commit limit leaves a full link's window open: a queue tells that it is full.
            self.saturated |= !sample.app_limited || queue;
            if self.grown.is_none_or(|(_, from)| self.link > from * GROWTH) {
                self.grown = Some((now, self.link));
            }
        }
        self.update_acked(now, sample);
    }

    fn update_acked(&mut self, now: Instant, sample: &SubflowSample) {
        let Some((since, acked)) = self.acked_mark else {
            self.acked_mark = Some((now, sample.acked_total));
            return;
        };
        let span = now.saturating_since(since);
        if span <= sample.srtt.max(Duration::from_millis(50)) {
            return;
        }
        let rate = rate_of(sample.acked_total.saturating_sub(acked), span);
        self.acked = if self.acked == 0.0 { rate } else { 0.5 * (self.acked + rate) };
        self.acked_mark = Some((now, sample.acked_total));
    }

    /// The link's rate; before the first sample, ten segments per `base_rtt`.
    pub(crate) fn link(&self, base_rtt: Duration) -> f64 {
        if self.link > 0.0 {
            self.link
        } else {
            14_600.0 / base_rtt.max(Duration::from_micros(100)).as_secs_f64()
        }
    }

    /// What the path has delivered lately, at most the link's rate.
    pub(crate) fn delivered(&self, base_rtt: Duration) -> f64 {
        let link = self.link(base_rtt);
        if self.acked > 0.0 { self.acked.min(link) } else { link }
    }

    /// Whether the rate was found to be larger lately, or was never tried:
    /// slow start goes on.
    pub(crate) fn is_ramping(&self, now: Instant, base_rtt: Duration) -> bool {
        let span = base_rtt * 8 + NOISE * 2;
        !self.saturated || self.grown.is_none_or(|(at, _)| now.saturating_since(at) < span)
    }

    /// A new subflow starts to count acknowledgements anew; the link is the
    /// same one.
    pub(crate) fn restart(&mut self) {
        self.acked = 0.0;
        self.acked_mark = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rate: u64, app_limited: bool, srtt_ms: u64) -> SubflowSample {
        SubflowSample {
            srtt: Duration::from_millis(srtt_ms),
            min_rtt: Duration::from_millis(4),
            delivery_rate: rate,
            app_limited,
            ..SubflowSample::default()
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_app_limited_sample_never_lowers_the_rate() {
        let mut rate = RateEstimate::default();
        rate.update(at(0), &sample(1000, false, 4), false);
        for ms in 1..5000 {
            rate.update(at(ms), &sample(10, true, 4), false);
        }
        assert!((rate.link(Duration::ZERO) - 1000.0).abs() < 1e-9);
        rate.update(at(5000), &sample(2000, true, 4), false);
        assert!((rate.link(Duration::ZERO) - 2000.0).abs() < 1e-9, "but it can raise it");
    }

    #[test]
    fn a_queue_tells_that_a_link_is_full_whoever_limits_what_is_sent() {
        let ramping = |queue| {
            let mut rate = RateEstimate::default();
            for ms in 0..100 {
                rate.update(at(ms), &sample(1000, true, 4), queue);
            }
            rate.is_ramping(at(100), Duration::from_millis(4))
        };
        assert!(ramping(false), "nothing tried it");
        assert!(!ramping(true));
    }

    #[test]
    fn a_slower_link_shows_within_the_window() {
        let mut rate = RateEstimate::default();
        rate.update(at(0), &sample(1000, false, 4), false);
        for ms in 1..2000 {
            rate.update(at(ms), &sample(100, false, 4), false);
        }
        assert!((rate.link(Duration::ZERO) - 100.0).abs() < 1e-9);
    }
}
