//! MuSher's hill climbing for the ratio.

use core::time::Duration;

use crate::time::Instant;

/// Percent of the first probe, and of the last.
const STEP: i16 = 10;
/// Samples that make the reference.
const REFERENCE: u32 = 4;
/// The rate differs from the reference by this share of it in so many
/// consecutive samples: a search begins.
const CHANGE: (f64, u32) = (0.1, 3);
/// The backlog fell by more than this many bytes in so many samples: likewise.
const DRAIN: (u64, u32) = (75_000, 5);
/// Least time between two searches.
const PAUSE: Duration = Duration::from_secs(3);
/// A rate counts as better from 5 Mbit/s on, or 1 % on slower links.
const BETTER: (f64, f64) = (625_000.0, 0.01);
/// Growth between samples of a path in slow start that means that it goes on.
const RAMP: f64 = 1.25;

/// The probe under way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Which way: index into [`STEPS`].
    way: usize,
    /// Whether this way has been better once.
    moving: bool,
}

/// The ways that are tried, one after the other.
const STEPS: [i16; 4] = [STEP, -STEP, STEP / 2, -STEP / 2];

/// The ratio and the search for it.
#[derive(Debug)]
pub(super) struct Search {
    ratio: i16,
    best: (i16, f64),
    probe: Option<Probe>,
    reference: (f64, u32),
    strange: u32,
    drained: u32,
    backlog: u64,
    last: f64,
    samples: u32,
    /// When the last search ended; the first one is mandatory.
    searched: Option<Instant>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            ratio: 50,
            best: (50, 0.0),
            probe: None,
            reference: (0.0, 0),
            strange: 0,
            drained: 0,
            backlog: 0,
            last: 0.0,
            samples: 0,
            searched: None,
        }
    }
}

impl Search {
    /// Percent of a burst that the first path sends.
    pub(super) const fn ratio(&self) -> i16 {
        self.ratio
    }

    /// Whether a probe is under way.
    pub(super) const fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    /// Samples taken so far.
    #[cfg(test)]
    pub(super) const fn samples(&self) -> u32 {
        self.samples
    }

    /// The last sample, bytes per second.
    #[cfg(test)]
    pub(super) const fn last(&self) -> f64 {
        self.last
    }

    /// A path came or went: what was being tried says nothing any more.
    pub(super) fn restart(&mut self) {
        self.ratio = self.best.0;
        self.probe = None;
        self.reset_reference();
    }

    const fn reset_reference(&mut self) {
        self.reference = (0.0, 0);
        self.strange = 0;
        self.drained = 0;
    }

    /// Takes in the rate of the last sample, bytes per second, and whether a TCP window is below its
    /// slow-start threshold. Without a loss it may stay below it for ever: slow start is over then
    /// when the rate no longer grows. After one, rates that jump are no slow start.
    pub(super) fn sample(&mut self, now: Instant, rate: f64, backlog: u64, slow_start: bool) {
        self.samples += 1;
        let ramping = slow_start && rate > self.last * RAMP;
        let fell = self.backlog > backlog + DRAIN.0;
        self.last = rate;
        self.backlog = backlog;
        if let Some(probe) = self.probe {
            self.judge(now, probe, rate);
        } else if self.reference.1 < REFERENCE {
            self.reference.0 += rate;
            self.reference.1 += 1;
            if ramping {
                self.reset_reference();
            }
        } else {
            let reference = self.reference.0 / f64::from(REFERENCE);
            let strange = (rate - reference).abs() > CHANGE.0 * reference;
            self.strange = if strange { self.strange + 1 } else { 0 };
            self.drained = if fell { self.drained + 1 } else { 0 };
            let wanted = self.strange >= CHANGE.1 || self.drained >= DRAIN.1;
            let due = match self.searched {
                None => true,
                Some(at) => wanted && now.saturating_since(at) >= PAUSE,
            };
            if due && !ramping {
                self.best = (self.ratio, rate);
                self.go(now, 0);
            }
        }
    }

    /// A probe in this way, or the next one that is possible; else the search
    /// is over.
    fn go(&mut self, now: Instant, from: usize) {
        for (way, step) in STEPS.iter().enumerate().skip(from) {
            let ratio = (self.best.0 + step).clamp(0, 100);
            if ratio != self.best.0 {
                self.ratio = ratio;
                self.probe = Some(Probe { way, moving: false });
                return;
            }
        }
        self.ratio = self.best.0;
        self.probe = None;
        self.searched = Some(now);
        self.reset_reference();
    }

    fn judge(&mut self, now: Instant, probe: Probe, rate: f64) {
        let margin = BETTER.0.min(BETTER.1 * self.best.1);
        let gain = rate - self.best.1;
        if gain > margin || (probe.moving && gain >= 0.0) {
            self.best = (self.ratio, rate);
            let next = (self.ratio + STEPS[probe.way]).clamp(0, 100);
            // The half steps are for the end: one each.
            if next != self.ratio && probe.way < 2 {
                self.ratio = next;
                self.probe = Some(Probe { way: probe.way, moving: true });
                return;
            }
        }
        // Once one way was better, the other one leads back.
        let next = if probe.moving && probe.way == 0 { 2 } else { probe.way + 1 };
        self.go(now, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of a pair whose rate has its top at `top` percent.
    fn run(search: &mut Search, from_ms: u64, to_ms: u64, top: f64) {
        for ms in (from_ms..to_ms).step_by(100) {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let rate = 1e8 - (f64::from(search.ratio()) - top).abs() * 1e6;
            search.sample(now, rate, 1 << 20, true);
        }
    }

    #[test]
    fn the_first_search_climbs_to_the_top_and_ends() {
        for (top, expected) in [(80.0, 80), (23.0, 25), (50.0, 50), (100.0, 100), (0.0, 0)] {
            let mut search = Search::default();
            run(&mut search, 0, 2500, top);
            assert_eq!((search.ratio(), search.is_probing()), (expected, false), "{top}");
        }
    }

    #[test]
    fn nothing_is_searched_in_slow_start() {
        let mut search = Search::default();
        for doubling in 0..20 {
            search.sample(Instant::ZERO, f64::from(1 << doubling), 0, true);
            assert!(!search.is_probing());
        }
    }

    #[test]
    fn rates_that_jump_after_a_loss_hold_up_no_search() {
        // Each second sample is more than 1.25 of the one before it.
        let noisy = |slow_start| {
            let mut search = Search::default();
            (0u32..6).any(|n| {
                let rate = if n % 2 == 0 { 6e7 } else { 14e7 };
                search.sample(Instant::ZERO, rate, 0, slow_start);
                search.is_probing()
            })
        };
        assert!(noisy(false));
        assert!(!noisy(true));
    }

    #[test]
    fn a_change_in_three_samples_triggers_a_search_three_seconds_after_the_last() {
        let mut search = Search::default();
        run(&mut search, 0, 2500, 50.0);
        let ended = search.searched.unwrap();
        let after = |ms: u64| ended + Duration::from_millis(ms);
        for (ms, rate) in [(2500, 5e7), (2600, 5e7), (2700, 9.5e7)] {
            search.sample(after(ms), rate, 1 << 20, false);
            assert!(!search.is_probing(), "two samples, then an ordinary one");
        }
        for ms in [2700, 2800, 2999] {
            search.sample(after(ms), 5e7, 1 << 20, false);
            assert!(!search.is_probing(), "too early");
        }
        search.sample(after(3000), 5e7, 1 << 20, false);
        assert!(search.is_probing());
    }

    #[test]
    fn a_draining_backlog_triggers_a_search() {
        let mut search = Search::default();
        run(&mut search, 0, 2500, 50.0);
        let later = search.searched.unwrap() + PAUSE;
        run(&mut search, 2500, 3400, 50.0);
        for n in 1..=5u32 {
            assert!(!search.is_probing(), "{n}");
            search.sample(later, 1e8, (1 << 20) - u64::from(n) * 75_001, false);
        }
        assert!(search.is_probing());
    }
}
