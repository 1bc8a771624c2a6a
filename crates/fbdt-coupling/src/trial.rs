//! A trial: one path holds less for a while; do the other paths' queues
//! shrink with its own?
//!
//! Correlation alone cannot tell two paths over one queue from two queues
//! that are filled alike (same rates, same start, one application that feeds
//! both). What this end does to one path only can show on another only
//! through a queue that they share.

use alloc::vec::Vec;
use core::time::Duration;

use fbdt_units::{Instant, PathId};

use crate::mix;

/// Shortest slot in RTTs: one until the queue has followed, one to look. Later
/// the other flows of a narrow link would have taken what was left to them.
const SLOT_RTTS: u32 = 2;
/// Bounds of that.
const SLOT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// Share of what the link itself holds, and of all that the path has in flight,
/// that it keeps in a low slot at least: a path with a queue of its own loses a
/// fifth of its rate meanwhile at most.
const KEPT: (f64, f64) = (0.8, 0.5);
/// Low slots before the answer can be that paths share, that they do not, and
/// after which there is no answer.
const FALLS: (u32, u32, u32) = (6, 4, 40);
/// How many standard errors the answers need: shared, disjoint.
const SIGNIFICANT: (f64, f64) = (3.5, 3.0);
/// The same for `likely`, and the low slots that takes.
const LIKELY: (f64, u32) = (1.0, 24);
/// The path's own RTT falls by at least this, or nothing was tried (ms).
const LEAST_EFFECT: f64 = 0.4;
/// In its high slots the path has this many times as much in flight as in the
/// low one between, or it was not tried there.
const LEAST_TAKEN: f64 = 1.05;
/// After so many such low slots it is not busy enough to be tried.
const MOST_IDLE: u32 = 6;

/// What a trial found out about one other path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its queue shrinks with the tried path's.
    Shared,
    /// It does not.
    Disjoint,
    /// It does more likely than not: two paths whose queues go on moving together
    /// although one is disturbed share it.
    Likely,
    /// The noise was larger than what could be seen.
    Unclear,
}

/// Mean of what was seen in one slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sum: f64,
    count: u32,
}

impl Slot {
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// Mean and variance of differences, one by one (Welford).
#[derive(Clone, Copy, Debug, Default)]
struct Differences {
    count: u32,
    mean: f64,
    squares: f64,
}

impl Differences {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let gap = value - self.mean;
        self.mean += gap / f64::from(self.count);
        self.squares += gap * (value - self.mean);
    }

    /// How many standard errors the mean is away from zero. Few differences
    /// may be alike by chance: their deviation is not believed to be less
    /// than `least`.
    fn significance(&self, least: f64) -> f64 {
        let count = f64::from(self.count.max(2));
        let deviation = libm::sqrt(self.squares / (count - 1.0)).max(least);
        self.mean / (deviation / libm::sqrt(count))
    }

    /// What they leave open.
    fn guess(&self) -> Answer {
        let likely = self.count >= LIKELY.1 && self.significance(0.0) >= LIKELY.0;
        if likely { Answer::Likely } else { Answer::Unclear }
    }

    /// What they say if they are excesses.
    fn answer(&self, least: f64) -> Option<Answer> {
        let sure = self.significance(least);
        if sure >= SIGNIFICANT.0 && self.count >= FALLS.0 {
            Some(Answer::Shared)
        } else if sure <= -SIGNIFICANT.1 && self.count >= FALLS.1 {
            Some(Answer::Disjoint)
        } else {
            None
        }
    }
}

/// What is measured in slots, and its means in the last high slot and in the
/// low one behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    slot: Slot,
    high: Option<f64>,
    low: Option<f64>,
}

impl Measured {
    const fn add(&mut self, value: f64) {
        self.slot.sum += value;
        self.slot.count += 1;
    }

    fn end_low(&mut self) {
        self.low = core::mem::take(&mut self.slot).mean();
    }

    /// The mean of both high slots around a low one, and that of the low one.
    fn end_high(&mut self) -> Option<(f64, f64)> {
        let after = core::mem::take(&mut self.slot).mean();
        let before = core::mem::replace(&mut self.high, after);
        let low = self.low.take()?;
        Some((f64::midpoint(before?, after?), low))
    }
}

/// Another path under observation.
#[derive(Clone, Debug)]
struct Observer {
    path: PathId,
    /// Queueing delay, ms.
    delay: Measured,
    /// Its fall less half of the tried path's own fall: positive if the
    /// queue is the same one, negative if not.
    excess: Differences,
    answer: Option<Answer>,
}

/// A trial of one path against others: high and low slots in turn.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) path: PathId,
    least_slot: Duration,
    /// The present slot's length, begin, and whether it is a low one.
    slot: Duration,
    since: Instant,
    low: bool,
    /// What it has in flight in high slots (bytes), and the share of it in low ones.
    full: f64,
    kept: f64,
    seed: u64,
    slots: u32,
    falls: u32,
    idle: u32,
    /// The tried path's queueing delay (ms) and bytes in flight.
    delay: Measured,
    in_flight: Measured,
    own: Differences,
    observers: Vec<Observer>,
}

/// What the tried path is like before the trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    /// Bytes that it has in flight.
    pub(crate) in_flight: f64,
    /// Its smallest RTT and its queueing delay, in milliseconds.
    pub(crate) base_ms: f64,
    pub(crate) delay_ms: f64,
    /// The longest RTT of all that take part.
    pub(crate) rtt: Duration,
}

impl Baseline {
    /// The share of what it has in flight that it keeps in a low slot.
    fn kept(&self) -> f64 {
        let link = self.base_ms / (self.base_ms + self.delay_ms).max(1e-3);
        (KEPT.0 * link).max(KEPT.1)
    }
}

impl Trial {
    /// Begins to try `path` while `others` are observed.
    pub(crate) fn new(
        now: Instant,
        path: PathId,
        others: impl Iterator<Item = PathId>,
        baseline: &Baseline,
    ) -> Self {
        let observer = |path| Observer {
            path,
            delay: Measured::default(),
            excess: Differences::default(),
            answer: None,
        };
        let least_slot = (baseline.rtt * SLOT_RTTS).clamp(SLOT.0, SLOT.1);
        Self {
            path,
            least_slot,
            slot: least_slot,
            since: now,
            low: false,
            full: baseline.in_flight,
            kept: baseline.kept(),
            seed: mix(now.as_nanos() ^ u64::from(path.0)),
            slots: 0,
            falls: 0,
            idle: 0,
            delay: Measured::default(),
            in_flight: Measured::default(),
            own: Differences::default(),
            observers: others.map(observer).collect(),
        }
    }

    /// What the tried path may hold now, if less than otherwise. Behind a low
    /// slot it comes back over an RTT: all at once would overrun a full queue.
    pub(crate) fn cap(&self, now: Instant) -> Option<u64> {
        let low = self.full * self.kept;
        if self.low {
            return Some(low as u64);
        }
        let (since, rtt) = (now.saturating_since(self.since), self.least_slot / 2);
        let part = since.as_secs_f64() / rtt.as_secs_f64();
        (self.slots > 0 && part < 1.0).then_some((low + part * (self.full - low)) as u64)
    }

    /// A path's queueing delay is `delay_ms`, with so many bytes in flight.
    pub(crate) fn see(&mut self, now: Instant, path: PathId, delay_ms: f64, in_flight: u64) {
        // Until then the queue follows.
        if now.saturating_since(self.since) < self.least_slot / 2 {
            return;
        }
        if path == self.path {
            self.delay.add(delay_ms);
            self.in_flight.add(in_flight as f64);
        } else if let Some(observer) = self.observers.iter_mut().find(|o| o.path == path) {
            observer.delay.add(delay_ms);
        }
    }

    /// Time has passed; says whether the trial is over.
    pub(crate) fn advance(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.since) < self.slot {
            return false;
        }
        if self.low {
            self.delay.end_low();
            self.in_flight.end_low();
            self.observers.iter_mut().for_each(|o| o.delay.end_low());
        } else {
            self.end_high();
        }
        self.low = !self.low;
        self.since = now;
        self.slots += 1;
        // A length that nobody else's load could follow.
        let part = (mix(self.seed.wrapping_add(u64::from(self.slots))) % 1024) as u32;
        self.slot = self.least_slot + self.least_slot / 2 * part / 1024;
        let answered = self.observers.iter().all(|o| o.answer.is_some());
        answered || self.falls >= FALLS.2 || self.idle >= MOST_IDLE
    }

    /// What was seen of each other path.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (PathId, Answer)> + '_ {
        self.observers.iter().map(|o| (o.path, o.answer.unwrap_or(o.excess.guess())))
    }

    /// A high slot behind a low one is over: by how much have queues fallen?
    fn end_high(&mut self) {
        let in_flight = self.in_flight.end_high();
        // Its window may have moved a good deal since.
        self.full = self.in_flight.high.unwrap_or(self.full);
        let own = self.delay.end_high();
        let Some((high, low)) = in_flight else {
            for observer in &mut self.observers {
                let _ = observer.delay.end_high();
            }
            return;
        };
        let tried = high > low * LEAST_TAKEN;
        if !tried {
            self.idle += 1;
        }
        let fall = own.filter(|_| tried).map(|(high, low)| high - low);
        if let Some(fall) = fall {
            self.falls += 1;
            self.own.add(fall);
        }
        let effect = self.own.mean;
        for observer in &mut self.observers {
            let seen = observer.delay.end_high();
            let (Some((high, low)), Some(fall)) = (seen, fall) else { continue };
            observer.excess.add(high - low - fall / 2.0);
            if effect >= LEAST_EFFECT && observer.answer.is_none() {
                observer.answer = observer.excess.answer(0.1 * effect);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIED: PathId = PathId(0);
    const OTHER: PathId = PathId(1);

    fn noise(step: u64, salt: u64) -> f64 {
        (mix(step * 77 + salt) % 1000) as f64 / 500.0 - 1.0
    }

    /// Runs a trial on two queues; `effect` is what the other path feels of
    /// the tried one's 10 ms, `common` and `own` the noise.
    fn run(effect: f64, common: f64, own: f64, busy: bool, salt: u64) -> Answer {
        let baseline = Baseline {
            in_flight: 100_000.0,
            base_ms: 10.0,
            delay_ms: 12.0,
            rtt: Duration::from_millis(25),
        };
        let start = Instant::from_nanos(1_000_000_000 + salt);
        let mut trial = Trial::new(start, TRIED, [OTHER].into_iter(), &baseline);
        for step in 1..40_000 {
            let now = start + Duration::from_millis(step);
            let low = trial.low;
            let both = 12.0 + common * noise(step / 40, salt);
            let fall = if low && busy { 10.0 } else { 0.0 };
            let in_flight = if low && busy { trial.cap(now).unwrap() } else { 100_000 };
            let own_effect = if effect > 0.0 { effect } else { 1.0 };
            trial.see(now, TRIED, both - fall * own_effect, in_flight);
            trial.see(now, OTHER, both - fall * effect + own * noise(step / 40, salt + 1), 50_000);
            if trial.advance(now) {
                break;
            }
        }
        trial.answers().next().unwrap().1
    }

    #[test]
    fn f17_a_queue_that_follows_is_shared_and_one_that_does_not_is_not() {
        for salt in 0..50 {
            assert_eq!(run(1.0, 3.0, 1.0, true, salt), Answer::Shared, "{salt}");
            assert_eq!(run(0.0, 0.0, 3.0, true, salt), Answer::Disjoint, "{salt}");
        }
    }

    #[test]
    fn f17_a_part_of_a_queue_is_found_in_the_noise_of_others() {
        // A sixth of the queue, in noise as large as that.
        let found = (0..50).filter(|salt| run(0.17, 1.7, 0.3, true, *salt) == Answer::Shared);
        assert!(found.count() >= 45);
    }

    #[test]
    fn f17_common_noise_without_an_effect_is_not_taken_for_a_shared_queue() {
        // As two paths that one application feeds: alike, but not the same.
        let wrong = (0..100).filter(|salt| run(0.0, 6.0, 0.3, true, *salt) == Answer::Shared);
        assert_eq!(wrong.count(), 0);
    }

    #[test]
    fn f17_a_path_that_does_not_send_less_gives_no_answer() {
        assert_eq!(run(1.0, 3.0, 1.0, false, 1), Answer::Unclear);
    }

    #[test]
    fn a_low_slot_takes_the_queue_and_little_of_what_the_link_holds() {
        let kept = |delay_ms| {
            let rtt = Duration::from_millis(25);
            Baseline { in_flight: 100_000.0, base_ms: 20.0, delay_ms, rtt }.kept()
        };
        assert!((kept(5.0) - 0.64).abs() < 1e-9, "four fifths of 20 of 25 ms");
        assert!((kept(60.0) - 0.5).abs() < 1e-9, "half at most");
    }
}
