//! A path's delivery rate.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::SubflowSample;
use crate::time::Instant;
use crate::units::rate_of;

const BUCKETS: usize = 8;
/// A rate that grows by this factor within a few RTTs is not known yet.
const GROWTH: f64 = 1.25;
/// What is this many times the rate of a full link is no rate of it any more. Less may be what
/// competitors left for a moment.
const PAST: f64 = 3.0;
/// A queue that shows for so long is no accident.
const FULL: Duration = Duration::from_millis(20);

/// What was sampled within a span of time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    since: Instant,
    /// Largest rate, in bytes per second.
    best: f64,
    /// When the RTT first and last showed a queue.
    queue: Option<(Instant, Instant)>,
}

impl Bucket {
    fn put(&mut self, now: Instant, rate: f64, queue: bool) {
        self.best = self.best.max(rate);
        if queue {
            self.queue = Some((self.queue.map_or(now, |(first, _)| first), now));
        }
    }

    /// Whether the link was full for more than a moment.
    fn was_full(&self) -> bool {
        self.queue.is_some_and(|(first, last)| last.saturating_since(first) >= FULL)
    }
}

/// The rate that a path can deliver, in bytes per second.
///
/// `link` is a windowed maximum of TCP's delivery-rate samples: a sample that
/// was limited by what this end chose to send says nothing about the link, so
/// it never lowers the estimate unless the RTT shows a queue (F7, first trap).
/// Where a queue showed in a bucket, the most that was delivered then is what the
/// link gives: much more, such as the burst of a token bucket, is past.
/// `acked` is what was acknowledged lately, whoever limited it.
#[derive(Clone, Debug, Default)]
pub struct RateEstimate {
    buckets: VecDeque<Bucket>,
    link: f64,
    acked: f64,
    acked_mark: Option<(Instant, u64)>,
    grown: Option<(Instant, f64)>,
    saturated: bool,
}

impl RateEstimate {
    /// Takes in a sample of the subflow, whose acknowledgements are held back
    /// for `hold`.
    #[allow(clippy::cast_precision_loss)]
    pub fn update(&mut self, now: Instant, sample: &SubflowSample, hold: Duration) {
        let base = sample.base_rtt();
        let rate = sample.delivery_rate as f64;
        let queue = sample.srtt > (base + hold) * 3 / 2 + Duration::from_millis(2);
        if rate > 0.0 && (!sample.app_limited || rate > self.link || queue) {
            self.put(now, (base * 2).max(Duration::from_millis(100)), rate, queue);
            self.link = self.buckets.iter().map(|bucket| bucket.best).fold(0.0, f64::max);
            self.saturated |= !sample.app_limited;
            if self.grown.is_none_or(|(_, from)| self.link > from * GROWTH) {
                self.grown = Some((now, self.link));
            }
        }
        self.update_acked(now, sample);
    }

    /// Puts a rate into the bucket of `now`, which is open for `span`.
    fn put(&mut self, now: Instant, span: Duration, rate: f64, queue: bool) {
        match self.buckets.back_mut() {
            Some(bucket) if now.saturating_since(bucket.since) < span => {
                return bucket.put(now, rate, queue);
            }
            Some(bucket) if bucket.was_full() => {
                let most = bucket.best * PAST;
                self.buckets.retain(|bucket| bucket.best <= most);
            }
            _ => {}
        }
        let mut bucket = Bucket { since: now, best: 0.0, queue: None };
        bucket.put(now, rate, queue);
        self.buckets.push_back(bucket);
        if self.buckets.len() > BUCKETS {
            self.buckets.pop_front();
        }
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
    #[must_use]
    pub fn link(&self, base_rtt: Duration) -> f64 {
        if self.link > 0.0 {
            self.link
        } else {
            14_600.0 / base_rtt.max(Duration::from_micros(100)).as_secs_f64()
        }
    }

    /// What the path has delivered lately, at most the link's rate.
    #[must_use]
    pub fn delivered(&self, base_rtt: Duration) -> f64 {
        let link = self.link(base_rtt);
        if self.acked > 0.0 { self.acked.min(link) } else { link }
    }

    /// Whether the rate was found to be larger lately, or was never tried:
    /// slow start goes on.
    #[must_use]
    pub fn is_ramping(&self, now: Instant, base_rtt: Duration) -> bool {
        let span = base_rtt * 8 + Duration::from_millis(20);
        !self.saturated || self.grown.is_none_or(|(at, _)| now.saturating_since(at) < span)
    }

    /// A new subflow starts to count acknowledgements anew; the link is the
    /// same one.
    pub fn restart(&mut self) {
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
        rate.update(at(0), &sample(1000, false, 4), Duration::ZERO);
        for ms in 1..5000 {
            rate.update(at(ms), &sample(10, true, 4), Duration::ZERO);
        }
        assert!((rate.link(Duration::ZERO) - 1000.0).abs() < 1e-9);
        rate.update(at(5000), &sample(2000, true, 4), Duration::ZERO);
        assert!((rate.link(Duration::ZERO) - 2000.0).abs() < 1e-9, "but it can raise it");
    }

    #[test]
    fn a_slower_link_shows_within_the_window() {
        let mut rate = RateEstimate::default();
        rate.update(at(0), &sample(1000, false, 4), Duration::ZERO);
        for ms in 1..2000 {
            rate.update(at(ms), &sample(100, false, 4), Duration::ZERO);
        }
        assert!((rate.link(Duration::ZERO) - 100.0).abs() < 1e-9);
    }

    /// A token bucket lets a burst through ten times as fast as what follows.
    fn after_a_burst(srtt_ms: u64, until_ms: u64) -> f64 {
        let mut rate = RateEstimate::default();
        for ms in 0..until_ms {
            let (now, srtt) = if ms < 10 { (1000, 4) } else { (100, srtt_ms) };
            rate.update(at(ms), &sample(now, false, srtt), Duration::ZERO);
        }
        rate.link(Duration::ZERO)
    }

    #[test]
    fn a_burst_is_past_once_a_bucket_has_shown_a_queue() {
        assert!((after_a_burst(20, 90) - 1000.0).abs() < 1e-9, "it may have been a pause");
        assert!((after_a_burst(20, 230) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_much_more_is_kept_for_its_window() {
        let mut rate = RateEstimate::default();
        for ms in 0..600 {
            let now = if ms < 10 { 290 } else { 100 };
            rate.update(at(ms), &sample(now, false, 20), Duration::ZERO);
        }
        assert!((rate.link(Duration::ZERO) - 290.0).abs() < 1e-9);
    }

    #[test]
    fn a_queue_that_was_seen_once_says_nothing() {
        let mut rate = RateEstimate::default();
        rate.update(at(0), &sample(1000, false, 4), Duration::ZERO);
        for ms in [101, 402, 703] {
            rate.update(at(ms), &sample(100, false, 20), Duration::ZERO);
        }
        assert!((rate.link(Duration::ZERO) - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_queue_the_largest_rate_is_kept_for_its_window() {
        assert!((after_a_burst(4, 700) - 1000.0).abs() < 1e-9);
        assert!((after_a_burst(4, 1000) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn the_tops_of_a_sawtooth_are_enough() {
        let mut rate = RateEstimate::default();
        for ms in 0..400 {
            let srtt = if ms % 300 < 150 { 4 } else { 20 };
            let now = if ms < 10 { 1000 } else { 100 };
            rate.update(at(ms), &sample(now, false, srtt), Duration::ZERO);
        }
        assert!((rate.link(Duration::ZERO) - 100.0).abs() < 1e-9);
    }
}
