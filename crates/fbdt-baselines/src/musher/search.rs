//! MuSher's hill climbing for the ratio.

use core::time::Duration;

use fbdt_proto::Instant;

/// Percent of a step; of the last ones half of it.
const STEP: i16 = 10;
/// Samples that make the reference.
const REFERENCE: u32 = 4;
/// The rate differs from the reference by this share of it in so many
/// consecutive samples: a search begins.
const CHANGE: (f64, u32) = (0.1, 3);
/// The rate does not, but the paths hold so many bytes less than with the reference in so many
/// consecutive samples: likewise.
const DRAIN: (u64, u32) = (75_000, 5);
/// Not before this time after the last one began.
const PAUSE: Duration = Duration::from_secs(3);
/// A rate counts as better from 5 Mbit/s on, or 1 % on slower links.
const BETTER: (f64, f64) = (625_000.0, 0.01);
/// Growth between samples of a path in slow start that means that it goes on.
const RAMP: f64 = 1.25;

/// The probe under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// A step up from where the search began.
    Up,
    /// A step down from there.
    Down,
    /// One more step in a direction that was better.
    Onward(i16),
    /// Half a step up from the best, at the end.
    HalfUp,
    /// Half a step down from it.
    HalfDown,
}

/// What samples are compared with.
#[derive(Clone, Copy, Debug, Default)]
struct Reference {
    /// Sums over the samples.
    rate: f64,
    held: u64,
    samples: u32,
}

/// The ratio and the search for it.
#[derive(Debug)]
pub(super) struct Search {
    ratio: i16,
    best: (i16, f64),
    probe: Option<Probe>,
    reference: Reference,
    strange: u32,
    drained: u32,
    last: f64,
    samples: u32,
    /// When the last search began; the first one is mandatory.
    searched: Option<Instant>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            ratio: 50,
            best: (50, 0.0),
            probe: None,
            reference: Reference::default(),
            strange: 0,
            drained: 0,
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

    fn reset_reference(&mut self) {
        self.reference = Reference::default();
        self.strange = 0;
        self.drained = 0;
    }

    /// Takes in the rate of the last sample, bytes per second, what the paths held meanwhile, and
    /// whether a TCP window is below its slow-start threshold. Without a loss it may stay below it
    /// for ever: slow start is over then when the rate no longer grows. After one, rates that jump
    /// are no slow start.
    pub(super) fn sample(&mut self, now: Instant, rate: f64, held: u64, slow_start: bool) {
        self.samples += 1;
        let ramping = slow_start && rate > self.last * RAMP;
        self.last = rate;
        if let Some(probe) = self.probe {
            self.judge(probe, rate);
        } else if self.reference.samples < REFERENCE {
            self.reference.rate += rate;
            self.reference.held += held;
            self.reference.samples += 1;
            if ramping {
                self.reset_reference();
            }
        } else {
            self.compare(rate, held);
            let wanted = self.strange >= CHANGE.1 || self.drained >= DRAIN.1;
            match self.searched {
                None if !ramping => self.begin(now, rate),
                Some(at) if wanted && !ramping && now.saturating_since(at) > PAUSE => {
                    self.begin(now, rate);
                }
                // In slow start, or too early: it is the ordinary from now on.
                Some(_) if wanted => self.reset_reference(),
                _ => {}
            }
        }
    }

    /// Counts the consecutive samples that differ from the reference.
    fn compare(&mut self, rate: f64, held: u64) {
        let reference = self.reference.rate / f64::from(REFERENCE);
        if (rate - reference).abs() > CHANGE.0 * reference {
            self.strange += 1;
            self.drained = 0;
        } else {
            let drained = self.reference.held / u64::from(REFERENCE) > held + DRAIN.0;
            self.strange = 0;
            self.drained = if drained { self.drained + 1 } else { 0 };
        }
    }

    fn begin(&mut self, now: Instant, rate: f64) {
        self.searched = Some(now);
        self.best = (self.ratio, rate);
        let next = self.at(Probe::Up, STEP).or_else(|| self.at(Probe::Onward(-STEP), -STEP));
        self.go(next);
    }

    /// This probe, so far from the best ratio, if each path then sends something.
    fn at(&self, probe: Probe, step: i16) -> Option<(Probe, i16)> {
        let ratio = self.best.0 + step;
        (0 < ratio && ratio < 100).then_some((probe, ratio))
    }

    /// The next probe; without one the search is over.
    fn go(&mut self, next: Option<(Probe, i16)>) {
        self.probe = next.map(|(probe, _)| probe);
        self.ratio = next.map_or(self.best.0, |(_, ratio)| ratio);
        if next.is_none() {
            self.reset_reference();
        }
    }

    fn judge(&mut self, probe: Probe, rate: f64) {
        let margin = BETTER.0.min(BETTER.1 * self.best.1);
        let better = match probe {
            Probe::Onward(_) => rate >= self.best.1,
            _ => rate - self.best.1 > margin,
        };
        if better {
            self.best = (self.ratio, rate);
        }
        let next = match probe {
            Probe::Up if better => self.at(Probe::Onward(STEP), STEP),
            Probe::Up => self.at(Probe::Down, -STEP),
            Probe::Down if better => self.at(Probe::Onward(-STEP), -STEP),
            Probe::Onward(step) if better => self.at(probe, step),
            Probe::Onward(_) => {
                let up = self.at(Probe::HalfUp, STEP / 2);
                up.or_else(|| self.at(Probe::HalfDown, -STEP / 2))
            }
            Probe::HalfUp if !better => self.at(Probe::HalfDown, -STEP / 2),
            Probe::Down | Probe::HalfUp | Probe::HalfDown => None,
        };
        self.go(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    /// Samples of a pair whose rate has its top at `top` percent.
    fn run(search: &mut Search, from_ms: u64, to_ms: u64, top: f64) {
        for ms in (from_ms..to_ms).step_by(100) {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let rate = 1e8 - (f64::from(search.ratio()) - top).abs() * 1e6;
            search.sample(now, rate, 1 << 20, true);
        }
    }

    /// Ratios that a first search tries, and what it ends with.
    fn tried(ratio: i16, top: f64) -> (Vec<i16>, i16) {
        let mut search = Search { ratio, best: (ratio, 0.0), ..Search::default() };
        let mut tried = Vec::new();
        for ms in (0..4000).step_by(100) {
            run(&mut search, ms, ms + 1, top);
            if search.is_probing() {
                tried.push(search.ratio());
            }
        }
        assert!(!search.is_probing());
        (tried, search.ratio())
    }

    #[test]
    fn a_search_climbs_while_it_gets_better_and_then_tries_half_a_step_around_the_best() {
        assert_eq!(tried(50, 80.0), (vec![60, 70, 80, 90, 85, 75], 80));
        assert_eq!(tried(50, 66.0), (vec![60, 70, 80, 75, 65], 65));
        assert_eq!(tried(50, 23.0), (vec![60, 40, 30, 20, 10, 25], 25), "better half up: done");
    }

    #[test]
    fn a_search_that_finds_neither_side_better_is_over() {
        assert_eq!(tried(50, 50.0), (vec![60, 40], 50));
        assert_eq!(tried(50, 46.0), (vec![60, 40], 50), "a whole step only");
    }

    #[test]
    fn both_paths_send_something_whatever_is_found() {
        assert_eq!(tried(50, 100.0), (vec![60, 70, 80, 90], 90));
        assert_eq!(tried(50, 0.0), (vec![60, 40, 30, 20, 10], 10));
        assert_eq!(tried(90, 100.0), (vec![80, 95], 95));
        assert_eq!(tried(90, 85.0), (vec![80, 70, 85], 85), "as good is good enough");
        assert_eq!(tried(95, 0.0).0[..2], [85, 75]);
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

    /// After the first search, with a reference of 100 MB/s and 1 MiB; the second is when that began.
    fn settled() -> (Search, impl Fn(u64) -> Instant) {
        let mut search = Search::default();
        run(&mut search, 0, 2500, 50.0);
        assert!(!search.is_probing());
        // The first sample is more than nothing was, four are the reference, the next is compared.
        (search, |ms| Instant::ZERO + Duration::from_millis(500 + ms))
    }

    /// Whether one of these samples begins a search, and which.
    fn begun(search: &mut Search, at: Instant, samples: &[(f64, u64)]) -> Option<usize> {
        samples.iter().position(|(rate, held)| {
            search.sample(at, *rate, *held, false);
            search.is_probing()
        })
    }

    const ORDINARY: (f64, u64) = (1e8, 1 << 20);
    const SLOW: (f64, u64) = (8e7, 1 << 20);
    const DRAINED: (f64, u64) = (1e8, (1 << 20) - 75_001);

    #[test]
    fn a_change_in_three_samples_begins_a_search() {
        let (mut search, after) = settled();
        let at = after(3001);
        assert_eq!(begun(&mut search, at, &[SLOW, SLOW, ORDINARY, SLOW, SLOW]), None);
        assert_eq!(begun(&mut search, at, &[SLOW]), Some(0));
    }

    #[test]
    fn sockets_that_hold_less_in_five_samples_begin_a_search() {
        let (mut search, after) = settled();
        let at = after(3001);
        // However it fell, at once or bit by bit: it is what they hold that counts.
        assert_eq!(begun(&mut search, at, &[DRAINED; 4]), None);
        assert_eq!(begun(&mut search, at, &[ORDINARY]), None);
        assert_eq!(begun(&mut search, at, &[DRAINED; 4]), None);
        // A rate that changed says more.
        assert_eq!(begun(&mut search, at, &[(8e7, 0), DRAINED, DRAINED, DRAINED, DRAINED]), None);
        assert_eq!(begun(&mut search, at, &[DRAINED]), Some(0));
    }

    #[test]
    fn a_change_within_three_seconds_of_a_searchs_beginning_is_the_ordinary_afterwards() {
        let (mut search, after) = settled();
        assert_eq!(begun(&mut search, after(3000), &[SLOW; 3]), None, "too early");
        assert_eq!(begun(&mut search, after(3001), &[SLOW; 20]), None, "as ever");
        assert_eq!(begun(&mut search, after(3001), &[ORDINARY; 3]), Some(2));
    }

    #[test]
    fn a_change_in_slow_start_is_the_ordinary_afterwards() {
        let (mut search, after) = settled();
        let at = after(4000);
        for rate in [5e7, 5e7, 2e8] {
            search.sample(at, rate, 1 << 20, true);
            assert!(!search.is_probing());
        }
        assert_eq!(begun(&mut search, at, &[(2e8, 1 << 20); 20]), None);
        assert_eq!(begun(&mut search, at, &[ORDINARY; 3]), Some(2));
    }
}
