//! A trial: one path holds less for a while; do the other paths' queues
//! shrink with its own?
//!
//! Correlation alone cannot tell two paths over one queue from two queues
//! that are filled alike (same rates, same start, one application that feeds
//! both). What this end does to one path only can show on another only
//! through a queue that they share.

use alloc::vec::Vec;
use core::time::Duration;

use super::mix;
use crate::time::Instant;
use crate::units::PathId;

/// Length of a slot in RTTs: two until the queue has followed, two to look.
const SLOT_RTTS: u32 = 4;
/// Shortest and longest slot.
const SLOT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Share of its queue that the path keeps in a low slot. Nothing is taken off
/// what the link itself holds: a path with a queue of its own loses nothing.
const KEPT: f64 = 0.2;
/// Pairs of slots before the answer can be that paths share, that they do
/// not, and after which there is no answer.
const PAIRS: (u32, u32, u32) = (6, 4, 32);
/// How many standard errors the answers need: shared, disjoint.
const SIGNIFICANT: (f64, f64) = (3.5, 3.0);
/// The path's own RTT falls by at least this, or nothing was tried (ms).
const LEAST_EFFECT: f64 = 0.4;
/// Pairs in which the path had not held more in its high slot than in its
/// low one, after which the trial ends: the path is not busy.
const MOST_IDLE_PAIRS: u32 = 6;

/// What a trial found out about one other path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Its queue shrinks with the tried path's.
    Shared,
    /// It does not.
    Disjoint,
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
}

/// Another path under observation.
#[derive(Clone, Debug)]
struct Observer {
    path: PathId,
    /// Queueing delay in the low and the high slot of this pair, ms.
    slots: [Slot; 2],
    /// Its fall less half of the tried path's own fall: positive if the
    /// queue is the same one, negative if not.
    excess: Differences,
    answer: Option<Answer>,
}

/// A trial of one path against others.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) path: PathId,
    slot: Duration,
    /// When the present slot began, and which of the pair's two it is.
    since: Instant,
    second: bool,
    /// Whether the pair's first slot is the low one.
    low_first: bool,
    cap: u64,
    seed: u64,
    pairs: u32,
    idle_pairs: u32,
    /// The tried path's queueing delay (ms) and what it held (bytes).
    delay: [Slot; 2],
    held: [Slot; 2],
    own: Differences,
    observers: Vec<Observer>,
}

/// What the tried path is like before the trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Baseline {
    /// Bytes that it holds.
    pub(super) held: f64,
    /// Its smallest RTT and its queueing delay, in milliseconds.
    pub(super) base_ms: f64,
    pub(super) delay_ms: f64,
    /// The longest RTT of all that take part.
    pub(super) rtt: Duration,
}

impl Baseline {
    /// What the path holds in a low slot.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn low(&self) -> u64 {
        let kept = self.base_ms + KEPT * self.delay_ms;
        (self.held * kept / (self.base_ms + self.delay_ms).max(1e-3)) as u64
    }
}

impl Trial {
    /// Begins to try `path` while `others` are observed.
    pub(super) fn new(
        now: Instant,
        path: PathId,
        others: impl Iterator<Item = PathId>,
        baseline: &Baseline,
    ) -> Self {
        let seed = mix(now.as_nanos() ^ u64::from(path.0));
        let observer = |path| Observer {
            path,
            slots: [Slot::default(); 2],
            excess: Differences::default(),
            answer: None,
        };
        Self {
            path,
            slot: (baseline.rtt * SLOT_RTTS).clamp(SLOT.0, SLOT.1),
            since: now,
            second: false,
            low_first: seed & 1 == 1,
            cap: baseline.low(),
            seed,
            pairs: 0,
            idle_pairs: 0,
            delay: [Slot::default(); 2],
            held: [Slot::default(); 2],
            own: Differences::default(),
            observers: others.map(observer).collect(),
        }
    }

    const fn is_low(&self) -> bool {
        self.second != self.low_first
    }

    /// What the tried path may hold now, if less than otherwise.
    pub(super) fn cap(&self) -> Option<u64> {
        self.is_low().then_some(self.cap)
    }

    /// A path's queueing delay is `delay_ms`, and it holds `held` bytes.
    pub(super) fn see(&mut self, now: Instant, path: PathId, delay_ms: f64, held: u64) {
        if now.saturating_since(self.since) < self.slot / 2 {
            return;
        }
        let which = usize::from(!self.is_low());
        let add = |slot: &mut Slot, value: f64| {
            slot.sum += value;
            slot.count += 1;
        };
        if path == self.path {
            add(&mut self.delay[which], delay_ms);
            #[allow(clippy::cast_precision_loss)]
            add(&mut self.held[which], held as f64);
        } else if let Some(observer) = self.observers.iter_mut().find(|o| o.path == path) {
            add(&mut observer.slots[which], delay_ms);
        }
    }

    /// Time has passed; says whether the trial is over.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.since) < self.slot {
            return false;
        }
        self.since = now;
        if !self.second {
            self.second = true;
            return false;
        }
        self.second = false;
        self.end_pair();
        // The order is not one that anybody else's load could follow.
        self.low_first = mix(self.seed.wrapping_add(u64::from(self.pairs))) & 1 == 1;
        self.observers.iter().all(|o| o.answer.is_some())
            || self.pairs >= PAIRS.2
            || self.idle_pairs >= MOST_IDLE_PAIRS
    }

    /// What was seen of each other path.
    pub(super) fn answers(&self) -> impl Iterator<Item = (PathId, Answer)> + '_ {
        self.observers.iter().map(|o| (o.path, o.answer.unwrap_or(Answer::Unclear)))
    }

    fn end_pair(&mut self) {
        let [low, high] = core::mem::take(&mut self.delay).map(Slot::mean);
        let [low_held, high_held] = core::mem::take(&mut self.held).map(Slot::mean);
        let took = |low: f64, high: f64| high > low * 1.02;
        let tried = low_held.zip(high_held).is_some_and(|(low, high)| took(low, high));
        let Some(fall) = low.zip(high).map(|(low, high)| high - low).filter(|_| tried) else {
            self.idle_pairs += 1;
            self.observers.iter_mut().for_each(|o| o.slots = [Slot::default(); 2]);
            return;
        };
        self.pairs += 1;
        self.own.add(fall);
        let effective = self.own.mean >= LEAST_EFFECT;
        for observer in &mut self.observers {
            let [low, high] = core::mem::take(&mut observer.slots).map(Slot::mean);
            let Some((low, high)) = low.zip(high) else { continue };
            observer.excess.add(high - low - fall / 2.0);
            let pairs = observer.excess.count;
            let sure = observer.excess.significance(0.1 * self.own.mean.max(LEAST_EFFECT));
            if !effective || observer.answer.is_some() {
                continue;
            }
            if sure >= SIGNIFICANT.0 && pairs >= PAIRS.0 {
                observer.answer = Some(Answer::Shared);
            } else if sure <= -SIGNIFICANT.1 && pairs >= PAIRS.1 {
                observer.answer = Some(Answer::Disjoint);
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
            held: 100_000.0,
            base_ms: 10.0,
            delay_ms: 12.0,
            rtt: Duration::from_millis(25),
        };
        let start = Instant::from_nanos(1_000_000_000 + salt);
        let mut trial = Trial::new(start, TRIED, [OTHER].into_iter(), &baseline);
        for step in 1..40_000 {
            let now = start + Duration::from_millis(step);
            let low = trial.cap().is_some();
            let both = 12.0 + common * noise(step / 40, salt);
            let fall = if low && busy { 10.0 } else { 0.0 };
            let held = if low && busy { trial.cap().unwrap() } else { 100_000 };
            let own_effect = if effect > 0.0 { effect } else { 1.0 };
            trial.see(now, TRIED, both - fall * own_effect, held);
            trial.see(now, OTHER, both - fall * effect + own * noise(step / 40, salt + 1), 50_000);
            if trial.advance(now) {
                break;
            }
        }
        trial.answers().next().unwrap().1
    }

    #[test]
    fn f15_a_queue_that_follows_is_shared_and_one_that_does_not_is_not() {
        for salt in 0..50 {
            assert_eq!(run(1.0, 3.0, 1.0, true, salt), Answer::Shared, "{salt}");
            assert_eq!(run(0.0, 0.0, 3.0, true, salt), Answer::Disjoint, "{salt}");
        }
    }

    #[test]
    fn f15_a_part_of_a_queue_is_found_in_the_noise_of_others() {
        // A sixth of the queue, in noise as large as that.
        let found = (0..50).filter(|salt| run(0.17, 1.7, 0.3, true, *salt) == Answer::Shared);
        assert!(found.count() >= 45);
    }

    #[test]
    fn f15_common_noise_without_an_effect_is_not_taken_for_a_shared_queue() {
        // As two paths that one application feeds: alike, but not the same.
        let wrong = (0..100).filter(|salt| run(0.0, 6.0, 0.3, true, *salt) == Answer::Shared);
        assert_eq!(wrong.count(), 0);
    }

    #[test]
    fn f15_a_path_that_does_not_hold_less_gives_no_answer() {
        assert_eq!(run(1.0, 3.0, 1.0, false, 1), Answer::Unclear);
    }

    #[test]
    fn a_low_slot_takes_nothing_off_what_the_link_holds() {
        let baseline = Baseline {
            held: 220_000.0,
            base_ms: 10.0,
            delay_ms: 12.0,
            rtt: Duration::from_millis(25),
        };
        assert!(baseline.low() > 100_000, "10 of 22 ms");
        assert!(baseline.low() < 130_000);
    }
}
