//! How the delivered rate responds to the bytes under way.
//!
//! Rule: F7.

use core::time::Duration;

use crate::scale::NOISE;
use fbdt_units::{Instant, nanos};

/// Share by which the bytes under a queue's limit are raised and lowered in turn, to see what that changes.
const SWING: f64 = 0.125;
/// Part of the RTT by which one measurement changes the spread, by what the response is off [`WORTH`].
const STEP: f64 = 0.5;
/// Part of an added byte that must arrive as added rate: more bytes pay above, and are a queue below.
const WORTH: f64 = 0.5;
/// Part of the evidence that each new measurement takes the place of.
const FORGOTTEN: f64 = 0.2;

/// Sums over differences from one measurement to the next: of x = ln(bytes under way), y = ln(rate).
#[derive(Clone, Copy, Debug)]
struct Evidence {
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Default for Evidence {
    /// Until something else was seen, a long RTT is the path's own: a path that is held to less than
    /// it carries would never show more.
    fn default() -> Self {
        Self { xx: SWING * SWING, xy: SWING * SWING, yy: SWING * SWING }
    }
}

impl Evidence {
    fn add(&mut self, x: f64, y: f64) {
        let kept = 1.0 - FORGOTTEN;
        // No single step outweighs a swing from low to high.
        let part = (2.0 * SWING / x.abs().max(1e-6)).min(1.0);
        let (x, y) = (x * part, y * part);
        *self = Self {
            xx: self.xx * kept + x * x,
            xy: self.xy * kept + x * y,
            yy: self.yy * kept + y * y,
        };
    }

    /// By how much the rate grows with the bytes under way (1: as much; 0: not at all), and its standard error.
    fn response(&self) -> (f64, f64) {
        let xx = self.xx.max(1e-6);
        let slope = self.xy / xx;
        let rest = (self.yy / xx - slope * slope).max(0.0);
        (slope, libm::sqrt(rest * FORGOTTEN))
    }
}

/// One measurement: logarithms of the bytes under way and of the rate an RTT later.
#[derive(Clone, Copy, Debug)]
struct Point {
    x: f64,
    y: f64,
}

/// Finds out which part of an RTT beyond the smallest one is a queue.
///
/// A long RTT alone does not say whether bytes wait in a queue or the path delays them anyway (jitter,
/// acknowledgements that are gathered, the queues of others). Fewer bytes shorten a queue and leave the rate
/// as it is. Without a queue they lower the rate. TCP's window varies the bytes, and so does a small swing
/// where this session limits them.
#[derive(Clone, Debug, Default)]
pub(super) struct Response {
    evidence: Evidence,
    /// When this measurement began, and what had been delivered then.
    begun: Option<(Instant, u64)>,
    /// Bytes x time since then.
    area: f64,
    /// Bytes under way in the measurement before.
    under_way: Option<f64>,
    last: Option<Point>,
    updated: Instant,
    raised: bool,
    spread: Duration,
    /// Whether there is evidence; until then all delay is spread.
    measured: bool,
}

impl Response {
    /// A new subflow counts its bytes from zero.
    pub(super) fn restart(&mut self) {
        *self = Self {
            spread: self.spread,
            evidence: self.evidence,
            measured: self.measured,
            ..Self::default()
        };
    }

    /// Factor of the bytes that the path may hold now: a swing while the evidence is old.
    pub(super) fn swing(&self) -> f64 {
        match self.raised {
            _ if self.evidence.xx >= SWING * SWING => 1.0,
            true => 1.0 + SWING,
            false => 1.0 - SWING,
        }
    }

    /// Delay beyond the smallest RTT that fewer bytes would not shorten.
    pub(super) const fn spread(&self) -> Duration {
        self.spread
    }

    /// `bytes` were under way since the last call; `delivered` have arrived in all. Of the RTT `base` is
    /// known to be no queue; `variation` is its mean deviation.
    pub(super) fn update(
        &mut self,
        now: Instant,
        bytes: u64,
        delivered: u64,
        (rtt, variation, base): (Duration, Duration, Duration),
    ) {
        let time = nanos(now.saturating_since(core::mem::replace(&mut self.updated, now)));
        let excess = rtt.saturating_sub(base);
        self.spread = if self.measured { self.spread.min(excess) } else { excess };
        let Some((since, from)) = self.begun else {
            self.begun = Some((now, delivered));
            return;
        };
        self.area += bytes as f64 * time as f64;
        let length = now.saturating_since(since);
        if length < (rtt + variation * 2).max(NOISE * 2) {
            return;
        }
        let length = nanos(length) as f64;
        let under_way = self.under_way.replace(self.area / length).filter(|bytes| *bytes > 0.0);
        let rate = delivered.saturating_sub(from) as f64 / length;
        self.begun = Some((now, delivered));
        self.area = 0.0;
        let point = under_way.filter(|_| rate > 0.0);
        let point = point.map(|bytes| Point { x: libm::log(bytes), y: libm::log(rate) });
        let before = core::mem::replace(&mut self.last, point);
        if let (Some(before), Some(point)) = (before, point)
            && excess > base.max(NOISE) / 2
        {
            self.evidence.add(point.x - before.x, point.y - before.y);
            self.measured = true;
            self.learn(rtt, excess);
        }
        self.raised = !self.raised;
    }

    /// Moves the spread towards where more bytes are just worth it, as far as that is sure.
    fn learn(&mut self, rtt: Duration, excess: Duration) {
        let (response, error) = self.evidence.response();
        let change = rtt.mul_f64(STEP * (response - WORTH).abs().min(WORTH));
        if response + error < WORTH {
            self.spread = self.spread.saturating_sub(change);
        } else if response > WORTH {
            self.spread = (self.spread + change).min(excess);
        }
    }
}

#[cfg(test)]
impl Response {
    /// It is known that the rate does not respond.
    pub(super) fn of_a_queue() -> Self {
        let evidence = Evidence { xx: 1.0, xy: 0.0, yy: 0.0 };
        Self { evidence, measured: true, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TCP's window in bytes: it grows by a half in each second, and falls back.
    fn window(ms: u64) -> f64 {
        300_000.0 + (ms % 1000) as f64 * 150.0
    }

    /// A path that carries 1 MB/s at most, `delay` of whose RTT is no queue beyond a base of 20 ms, and that
    /// holds what the response and TCP let it hold: the spread after `seconds`.
    fn learned(delay: Duration, seconds: u64) -> Duration {
        const RATE: f64 = 1e6;
        let base = Duration::from_millis(20);
        let mut response = Response::default();
        let (mut delivered, mut sent) = (0.0, std::vec::Vec::new());
        for ms in 0..seconds * 1000 {
            let time = base * 2 + response.spread();
            let held = (RATE * response.swing() * time.as_secs_f64()).min(window(ms));
            let empty = (base + delay).as_secs_f64();
            // What was sent an RTT ago is acknowledged now.
            sent.push(held);
            let then = sent.len().saturating_sub((empty * 1e3) as usize);
            let rate = (sent[then.saturating_sub(1)] / empty).min(RATE);
            delivered += rate * 1e-3;
            let rtt = Duration::from_secs_f64((held / RATE).max(empty));
            let rtts = (rtt, Duration::ZERO, base);
            response.update(
                Instant::from_nanos(ms * 1_000_000),
                held as u64,
                delivered as u64,
                rtts,
            );
        }
        response.spread()
    }

    #[test]
    fn f7_a_queue_does_not_become_spread() {
        assert_eq!(learned(Duration::ZERO, 10), Duration::ZERO);
        assert_eq!(
            learned(Duration::from_millis(10), 10),
            Duration::ZERO,
            "the allowed queue covers it"
        );
    }

    #[test]
    fn f7_delay_that_fewer_bytes_do_not_shorten_is_spread() {
        let spread = learned(Duration::from_millis(80), 10);
        let range = Duration::from_millis(40)..=Duration::from_millis(100);
        assert!(range.contains(&spread), "{spread:?}: the allowed queue covers 20 ms of it");
    }

    #[test]
    fn f7_spread_that_became_a_queue_is_forgotten() {
        let spread = Duration::from_millis(60);
        let mut response = Response { spread, measured: true, ..Response::default() };
        let base = Duration::from_millis(20);
        for ms in 0..10_000u64 {
            let time = (base * 2 + response.spread()).as_secs_f64();
            let held = (1e6 * response.swing() * time).min(window(ms));
            let rtts = (Duration::from_secs_f64(held / 1e6), Duration::ZERO, base);
            response.update(Instant::from_nanos(ms * 1_000_000), held as u64, ms * 1000, rtts);
        }
        assert_eq!(response.spread(), Duration::ZERO);
    }
}
