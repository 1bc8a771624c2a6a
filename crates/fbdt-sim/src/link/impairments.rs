//! Jitter, token buckets, bursts of losses, rate steps and radio sleep: conditions of a link that are off
//! unless asked for.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use fbdt_proto::Instant;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::growth::MSS;

/// What one direction of a link does besides rate, delay, queue and loss. The default is nothing.
///
/// Not modelled: a jitter that is correlated from one segment to the next, acknowledgements that wait in
/// the queue of their own direction, and a line speed after a token bucket (a burst passes at once).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Standard deviation of the one-way delay of each segment and each acknowledgement. Delays are normal
    /// around the link's delay and never negative, as netem's are.
    pub jitter: Duration,
    /// Whether segments overtake each other. Otherwise a segment arrives with the one before it or later.
    /// Only [`crate::TcpGrowth::Linux`] and [`crate::TcpGrowth::Bbr`] know about it.
    pub overtaking: bool,
    /// Bytes that pass at once after a rest: the depth of a token bucket that fills at the link's rate.
    pub burst: u64,
    /// Whether the bottleneck drops what exceeds the bucket. Otherwise it queues it.
    pub policer: bool,
    /// Mean number of segments that are lost in a row (Gilbert's model); up to 1: losses are independent.
    pub loss_run: f64,
    /// Rates in bytes per second, each from a time after the start on. Before the first it is the
    /// link's rate. A queue is as long in bytes as the link's rate makes it.
    pub rates: Vec<(Duration, f64)>,
    /// A radio's sleep, which both directions of a path share.
    pub sleep: Option<Sleep>,
}

/// A radio that sleeps after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// It falls asleep after so long without a segment.
    pub rest: Duration,
    /// The next segment then waits for this long.
    pub wake: Duration,
}

/// When a radio last carried something, and from when on it is awake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Radio {
    used: Instant,
    awake: Instant,
}

/// Wakes the radio for a segment at `now`; when it can leave.
pub(super) fn wake(radio: &Rc<Cell<Radio>>, sleep: Sleep, now: Instant) -> Instant {
    let mut state = radio.get();
    if now.saturating_since(state.used) > sleep.rest {
        state.awake = now + sleep.wake;
    }
    state.used = state.used.max(now).max(state.awake);
    radio.set(state);
    state.awake.max(now)
}

/// Keeps the radio awake until a segment has left.
pub(super) fn keep_awake(radio: &Rc<Cell<Radio>>, until: Instant) {
    let mut state = radio.get();
    state.used = state.used.max(until);
    radio.set(state);
}

impl Impairments {
    /// The delay of the greatest of `segments` draws of a jitter around `delay`.
    pub(super) fn delay(&self, delay: Duration, segments: f64, rng: &mut ChaCha8Rng) -> Duration {
        if self.jitter.is_zero() {
            return delay;
        }
        let below: f64 = rng.random::<f64>().powf(1.0 / segments.max(1.0));
        let seconds = delay.as_secs_f64() + self.jitter.as_secs_f64() * normal_quantile(below);
        Duration::from_secs_f64(seconds.max(0.0))
    }

    /// Segments of a burst whose jitter decides when its last byte arrives: those that leave within
    /// a standard deviation of its end.
    pub(super) fn segments_at_the_end(&self, size: usize, rate: f64) -> f64 {
        let close = 1.0 + self.jitter.as_secs_f64() * rate / MSS as f64;
        close.min(size.div_ceil(MSS) as f64)
    }

    /// The rate at a time after the start, and when it ends, if it does.
    fn rate_after(&self, rate: f64, time: Duration) -> (f64, Option<Duration>) {
        let next = self.rates.partition_point(|(from, _)| *from <= time);
        let rate = next.checked_sub(1).map_or(rate, |index| self.rates[index].1);
        (rate, self.rates.get(next).map(|(from, _)| *from))
    }

    /// The rate at a time after the start, of a link with this rate otherwise.
    pub(super) fn rate_at(&self, rate: f64, time: Duration) -> f64 {
        self.rate_after(rate, time).0
    }

    /// When `bytes` are through that begin at a time after the start.
    pub(super) fn drained(&self, rate: f64, from: Duration, bytes: f64) -> Duration {
        let (mut at, mut left) = (from, bytes);
        loop {
            let (rate, until) = self.rate_after(rate, at);
            let time = if rate > 0.0 { left / rate } else { f64::MAX };
            match until {
                Some(until) if (until - at).as_secs_f64() < time => {
                    left -= rate * (until - at).as_secs_f64();
                    at = until;
                }
                _ => return at + Duration::from_secs_f64(time.min(3600.0)),
            }
        }
    }

    /// Bytes that pass between two times after the start.
    pub(super) fn volume(&self, rate: f64, from: Duration, to: Duration) -> f64 {
        let (mut at, mut bytes) = (from, 0.0);
        while at < to {
            let (rate, until) = self.rate_after(rate, at);
            let end = until.map_or(to, |until| until.min(to));
            bytes += rate * (end - at).as_secs_f64();
            at = end;
        }
        bytes
    }
}

/// Which segments a link loses: the number of segments until the next loss, and how many follow it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    /// Segments that pass before the next run; `None` before the first draw.
    passing: Option<u64>,
    /// Segments of the present run that are still to be lost.
    run: u64,
}

impl Losses {
    /// The segments out of the next `count` that are lost, as ranges in order.
    pub(super) fn next(
        &mut self,
        count: u64,
        (loss, run): (f64, f64),
        rng: &mut ChaCha8Rng,
    ) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        if loss <= 0.0 {
            return ranges;
        }
        let bursty = run > 1.0;
        let begins = if bursty { loss / (1.0 - loss).max(1e-9) / run } else { loss };
        let mut at = 0;
        while at < count {
            if self.run > 0 {
                let end = (at + self.run).min(count);
                self.run -= end - at;
                ranges.push(at..end);
                at = end;
                continue;
            }
            let passing = match self.passing {
                Some(passing) => passing,
                // At least one segment passes between two runs.
                None => geometric(begins, rng) + u64::from(bursty),
            };
            let end = (at + passing).min(count);
            self.passing = Some(passing - (end - at));
            if self.passing == Some(0) {
                self.passing = None;
                self.run = if bursty { 1 + geometric(1.0 / run, rng) } else { 1 };
            }
            at = end;
        }
        ranges
    }
}

/// Failures before the first success of this probability.
fn geometric(success: f64, rng: &mut ChaCha8Rng) -> u64 {
    if success >= 1.0 {
        return 0;
    }
    let uniform = 1.0 - rng.random::<f64>();
    (uniform.ln() / (1.0 - success).ln()) as u64
}

/// The standard normal value that this share of draws is below; right to 0.0005 (Abramowitz and
/// Stegun, 26.2.23).
fn normal_quantile(below: f64) -> f64 {
    let tail = below.min(1.0 - below).max(1e-12);
    let t = (-2.0 * tail.ln()).sqrt();
    let over = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let under = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let value = t - over / under;
    if below < 0.5 { -value } else { value }
}

#[cfg(test)]
#[path = "impairments_tests.rs"]
mod tests;
