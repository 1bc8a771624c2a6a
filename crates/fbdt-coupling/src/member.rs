//! What coupling knows of one path.

use core::time::Duration;

use fbdt_units::{Instant, PathId, SubflowSample};

use crate::series::Series;

/// A queue below this (ms) is none.
const LEAST_QUEUE: f64 = 1.5;
/// And from this on it is long.
const LONG_QUEUE: f64 = 3.0;
/// A path of which nothing was seen for so long is idle.
const IDLE: Duration = Duration::from_millis(500);
/// Time constant (s) of what a path usually has in flight and of its queue.
const USUAL: f64 = 1.0;
/// Shortest time over which the most that a path had in flight is remembered.
const LEAST_PEAK_TIME: Duration = Duration::from_millis(50);

/// What a sample tells of one path.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The path.
    pub path: PathId,
    /// What TCP says.
    pub sample: SubflowSample,
    /// Bytes on their way: sent and not at the peer's TCP. What waits in the
    /// socket fills no queue.
    pub in_flight: u64,
    /// Most bytes that it may hold by the other rules (F7).
    pub limit: u64,
    /// Whether its congestion control has a window that falls by loss.
    pub window_based: bool,
}

/// What of a queue a path that carries bytes meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    None,
    Short,
    Long,
}

/// One path as coupling sees it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) path: PathId,
    pub(crate) series: Series,
    last: Option<Observation>,
    seen: Instant,
    usual_flight: f64,
    usual_delay: f64,
    /// The queueing delay of what was acknowledged since the last sample, ms.
    fresh_delay: Option<f64>,
    /// The most that it had in flight lately: in this span and in the one before.
    peak: [u64; 2],
    peak_since: Instant,
}

/// What has happened on a path since its last sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Bytes acknowledged.
    pub(crate) acked: u64,
    /// Whether something was lost.
    pub(crate) lost: bool,
}

impl Member {
    pub(crate) fn new(path: PathId) -> Self {
        Self {
            path,
            series: Series::default(),
            last: None,
            seen: Instant::ZERO,
            usual_flight: 0.0,
            usual_delay: 0.0,
            fresh_delay: None,
            peak: [0; 2],
            peak_since: Instant::ZERO,
        }
    }

    /// A new TCP connection: its counters begin at zero.
    pub(crate) fn restart(&mut self) {
        self.last = None;
        self.peak = [0; 2];
    }

    /// Takes in a sample.
    pub(crate) fn update(&mut self, now: Instant, seen: &Observation) -> News {
        let news = self.last.map_or_else(News::default, |last| news(&last.sample, &seen.sample));
        let elapsed = now.saturating_since(self.seen).as_secs_f64();
        self.fresh_delay = self.last.and_then(|last| fresh_delay(&last.sample, &seen.sample));
        self.last = Some(*seen);
        self.seen = now;
        let delay = self.delay_ms();
        if self.is_busy(now) {
            if let Some(delay) = self.fresh_delay {
                self.series.push(now, delay);
            }
            let weight = (elapsed / USUAL).min(1.0);
            self.usual_flight += weight * (seen.in_flight as f64 - self.usual_flight);
            self.usual_delay += weight * (delay - self.usual_delay);
        }
        if now.saturating_since(self.peak_since) > self.srtt().max(LEAST_PEAK_TIME) {
            self.peak = [seen.in_flight, self.peak[0]];
            self.peak_since = now;
        }
        self.peak[0] = self.peak[0].max(seen.in_flight);
        news
    }

    /// The queueing delay that the RTT shows, in milliseconds.
    pub(crate) fn delay_ms(&self) -> f64 {
        let over = |s: &SubflowSample| s.srtt.saturating_sub(s.base_rtt()).as_secs_f64() * 1e3;
        self.last.as_ref().map_or(0.0, |seen| over(&seen.sample))
    }

    /// The queueing delay of what has just been acknowledged, in milliseconds.
    pub(crate) const fn fresh_delay(&self) -> Option<f64> {
        self.fresh_delay
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.last.map_or(0, |seen| seen.in_flight)
    }

    pub(crate) const fn usual_flight(&self) -> f64 {
        self.usual_flight
    }

    pub(crate) const fn usual_delay_ms(&self) -> f64 {
        self.usual_delay
    }

    pub(crate) fn srtt(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |seen| seen.sample.srtt)
    }

    pub(crate) fn base(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |seen| seen.sample.base_rtt())
    }

    pub(crate) fn mss(&self) -> u32 {
        self.last.map_or(1448, |seen| seen.sample.mss)
    }

    /// The most that it had in flight in the last RTT or two.
    pub(crate) fn peak(&self, now: Instant) -> u64 {
        if self.is_idle(now) { 0 } else { self.peak[0].max(self.peak[1]) }
    }

    /// What it may hold by the other rules.
    pub(crate) fn limit(&self) -> u64 {
        self.last.map_or(0, |seen| seen.limit)
    }

    fn is_idle(&self, now: Instant) -> bool {
        now.saturating_since(self.seen) > IDLE
    }

    /// Whether it carries bytes over a window that can be compared.
    fn is_busy(&self, now: Instant) -> bool {
        let carries = self.last.is_some_and(|seen| seen.window_based && seen.in_flight > 0);
        carries && !self.is_idle(now)
    }

    /// The queue that its bytes usually meet; `None` if it carries none.
    pub(crate) fn queue(&self, now: Instant) -> Option<Queue> {
        let queue = match self.usual_delay {
            delay if delay < LEAST_QUEUE => Queue::None,
            delay if delay < LONG_QUEUE => Queue::Short,
            _ => Queue::Long,
        };
        self.is_busy(now).then_some(queue)
    }

    /// Whether it carries bytes and they wait in a queue: only then is there
    /// anything to compare.
    pub(crate) fn is_queued(&self, now: Instant) -> bool {
        self.is_busy(now) && self.usual_delay >= LEAST_QUEUE
    }
}

/// The queueing delay (ms) of what was acknowledged between two samples; none
/// if nothing was. TCP smooths the RTT by 1/8 with each acknowledgement, of two
/// segments usually, and where few are in flight that lags by several RTTs: it
/// is undone.
fn fresh_delay(before: &SubflowSample, after: &SubflowSample) -> Option<f64> {
    let acked = after.acked_total.checked_sub(before.acked_total).filter(|bytes| *bytes > 0)?;
    let count = (acked as f64 / (2.0 * f64::from(after.mss.max(1)))).max(1.0);
    let weight = 1.0 - libm::pow(0.875, count);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (old, new) = (ms(before.srtt), ms(after.srtt));
    Some((old + (new - old) / weight - ms(after.base_rtt())).max(0.0))
}

/// What happened between two samples of one connection. A window that TCP
/// cut without sending anything again was told of a queue (ECN).
fn news(before: &SubflowSample, after: &SubflowSample) -> News {
    let told = after.ssthresh > 0
        && after.ssthresh < before.ssthresh
        && after.ssthresh < before.cwnd - before.cwnd / 10;
    News {
        acked: after.acked_total.saturating_sub(before.acked_total),
        lost: after.retransmitted_total > before.retransmitted_total || told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> SubflowSample {
        SubflowSample {
            srtt: Duration::from_millis(30),
            min_rtt: Duration::from_millis(20),
            cwnd: 100_000,
            ssthresh: u64::MAX,
            mss: 1448,
            acked_total: 1000,
            retransmitted_total: 10,
            ..SubflowSample::default()
        }
    }

    #[test]
    fn f17_a_retransmission_and_a_cut_are_losses_and_the_end_of_slow_start_is_not() {
        let before = sample();
        assert_eq!(news(&before, &before), News::default());
        let again = SubflowSample { retransmitted_total: 11, acked_total: 1500, ..before };
        assert_eq!(news(&before, &again), News { acked: 500, lost: true });
        let cut = SubflowSample { ssthresh: 70_000, cwnd: 70_000, ..before };
        assert!(news(&before, &cut).lost);
        let hystart = SubflowSample { ssthresh: 101_000, cwnd: 101_000, ..before };
        assert!(!news(&before, &hystart).lost);
    }

    #[test]
    fn f17_smoothing_is_undone() {
        let before = sample();
        let after = |srtt_us, acked_total| SubflowSample {
            srtt: Duration::from_micros(srtt_us),
            acked_total,
            ..before
        };
        assert_eq!(fresh_delay(&before, &before), None, "nothing was acknowledged");
        // One acknowledgement of 38 ms moved 30 ms by 1 ms.
        let once = fresh_delay(&before, &after(31_000, 1000 + 2896)).unwrap();
        assert!((once - 18.0).abs() < 1e-9, "{once}");
        let often = fresh_delay(&before, &after(31_000, 1_000_000)).unwrap();
        assert!((often - 11.0).abs() < 1e-3, "{often}");
    }

    #[test]
    fn an_idle_path_and_one_without_a_queue_are_not_compared() {
        let mut member = Member::new(PathId(0));
        let seen = Observation {
            path: PathId(0),
            sample: sample(),
            in_flight: 50_000,
            limit: 100_000,
            window_based: true,
        };
        let at = |ms: u64| Instant::from_nanos(5_000_000_000 + ms * 1_000_000);
        for ms in 0..3000 {
            member.update(at(ms), &seen);
        }
        assert!(member.is_queued(at(3000)));
        assert_eq!(member.peak(at(3000)), 50_000);
        assert!(!member.is_queued(at(4000)), "nothing was seen for a while");
        assert_eq!(member.peak(at(4000)), 0);
        let bbr = Observation { window_based: false, ..seen };
        member.update(at(4001), &bbr);
        assert!(!member.is_queued(at(4001)));
    }
}
