//! Which pairs of paths share a bottleneck.

use alloc::vec::Vec;
use core::time::Duration;

use fbdt_units::{Instant, PathId, nanos};

use crate::member::{Member, Queue};
use crate::series::{BIN, bin_of, correlation};
use crate::trial::{Answer, Baseline, Trial};

/// How often correlations are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// From this correlation on, two paths are suspected to share a bottleneck;
/// below the other one, a shared bottleneck is doubted.
const SUSPECT: f64 = 0.5;
const DOUBT: f64 = 0.2;
/// A trial that says no more than `likely` needs this correlation meanwhile.
const CONVINCED: f64 = 0.7;
/// A shared bottleneck is doubted for so long before it is tried again.
const PATIENCE: Duration = Duration::from_secs(5);
/// First and longest pause between two trials of a pair.
const PAUSE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
/// Trials without an answer, while doubted, that end a coupling.
const MOST_UNCLEAR: u32 = 2;
/// What is known of a pair of which one has carried nothing for so long is
/// forgotten.
const MEMORY: Duration = Duration::from_secs(60);

/// What is known of two paths.
#[derive(Clone, Debug)]
struct Pair {
    paths: [PathId; 2],
    shared: bool,
    correlation: Option<f64>,
    /// Since when the correlation has been too low for a shared queue.
    doubted: Option<Instant>,
    /// Since when one of them has met no queue and the other one has.
    apart: Option<Instant>,
    /// Trials without an answer since it was last sure.
    unclear: u32,
    next_trial: Instant,
    pause: Duration,
    seen: Instant,
}

impl Pair {
    const fn new(now: Instant, paths: [PathId; 2]) -> Self {
        Self {
            paths,
            shared: false,
            correlation: None,
            doubted: None,
            apart: None,
            unclear: 0,
            next_trial: now,
            pause: PAUSE.0,
            seen: now,
        }
    }

    fn look(&mut self, now: Instant, correlation: Option<f64>) {
        self.correlation = correlation;
        match correlation {
            Some(value) if value < DOUBT => {
                self.doubted.get_or_insert(now);
            }
            Some(_) => self.doubted = None,
            None => {}
        }
    }

    /// A queue that they shared, both would meet.
    fn compare_queues(&mut self, now: Instant, a: Queue, b: Queue) {
        if !matches!((a, b), (Queue::None, Queue::Long) | (Queue::Long, Queue::None)) {
            self.apart = None;
        } else if now.saturating_since(*self.apart.get_or_insert(now)) >= PATIENCE {
            self.apart = None;
            if self.shared {
                self.learn(now, Answer::Disjoint);
            }
        }
    }

    fn is_doubted(&self, now: Instant) -> bool {
        self.doubted.is_some_and(|since| now.saturating_since(since) >= PATIENCE)
    }

    /// Whether a trial would tell something new.
    fn is_due(&self, now: Instant) -> bool {
        let asked = if self.shared {
            self.is_doubted(now) || now.saturating_since(self.next_trial) >= PAUSE.1
        } else {
            self.correlation.is_some_and(|value| value >= SUSPECT)
        };
        asked && now >= self.next_trial
    }

    fn learn(&mut self, now: Instant, answer: Answer) {
        let alike = self.correlation.is_some_and(|value| value >= CONVINCED);
        let answer = if answer == Answer::Likely && alike { Answer::Shared } else { answer };
        match answer {
            Answer::Shared => {
                self.shared = true;
                self.unclear = 0;
                self.doubted = None;
                self.pause = PAUSE.0;
            }
            Answer::Disjoint => {
                self.shared = false;
                // An answer lasts longer than none: each trial costs the path some of its rate.
                self.pause = (self.pause * 4).min(PAUSE.1);
            }
            Answer::Likely | Answer::Unclear => {
                self.unclear += u32::from(self.is_doubted(now));
                if self.unclear >= MOST_UNCLEAR {
                    self.shared = false;
                }
                self.pause = (self.pause * 2).min(PAUSE.1);
            }
        }
        self.next_trial = now + self.pause;
    }
}

/// Watches all paths of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detector {
    pairs: Vec<Pair>,
    trial: Option<Trial>,
    last_look: Instant,
}

impl Detector {
    /// What `path` may hold now because it is being tried.
    pub(crate) fn cap(&self, now: Instant, path: PathId) -> Option<u64> {
        self.trial.as_ref().filter(|t| t.path == path).and_then(|t| t.cap(now))
    }

    /// Whether a trial is going on.
    #[cfg(test)]
    pub(crate) const fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Whether the path was ever compared with another.
    pub(crate) fn knows(&self, path: PathId) -> bool {
        self.pairs.iter().any(|pair| pair.paths.contains(&path))
    }

    /// Forgets all about a path.
    pub(crate) fn forget(&mut self, path: PathId) {
        self.pairs.retain(|pair| !pair.paths.contains(&path));
        self.trial = self.trial.take().filter(|trial| trial.path != path);
    }

    /// A fresh sample of `member`; says whether what is known has changed.
    pub(crate) fn see(&mut self, now: Instant, member: &Member, members: &[Member]) -> bool {
        let mut changed = false;
        if let Some(trial) = &mut self.trial {
            if let Some(delay) = member.fresh_delay() {
                trial.see(now, member.path, delay, member.in_flight());
            }
            if trial.advance(now) {
                changed = self.conclude(now);
            }
        }
        if now.saturating_since(self.last_look) >= LOOK {
            self.last_look = now;
            changed |= self.look(now, members);
            if self.trial.is_none() {
                self.begin(now, members);
            }
        }
        changed
    }

    /// Whether two paths are thought to share a bottleneck.
    pub(crate) fn shares(&self, a: PathId, b: PathId) -> bool {
        self.pairs
            .iter()
            .any(|pair| pair.shared && pair.paths.contains(&a) && pair.paths.contains(&b))
    }

    fn conclude(&mut self, now: Instant) -> bool {
        let Some(trial) = self.trial.take() else { return false };
        let before: Vec<bool> = self.pairs.iter().map(|p| p.shared).collect();
        for (path, answer) in trial.answers() {
            if let Some(pair) = self.pair_mut(trial.path, path) {
                pair.learn(now, answer);
            }
        }
        before != self.pairs.iter().map(|p| p.shared).collect::<Vec<_>>()
    }

    fn pair_mut(&mut self, a: PathId, b: PathId) -> Option<&mut Pair> {
        let paths = [a.min(b), a.max(b)];
        self.pairs.iter_mut().find(|pair| pair.paths == paths)
    }

    /// Compares all pairs anew; says whether an old pair was forgotten.
    fn look(&mut self, now: Instant, members: &[Member]) -> bool {
        let end = bin_of(now);
        let queued: Vec<_> = members
            .iter()
            .filter(|m| m.is_queued(now))
            .map(|m| (m.path, m.base(), m.series.movements(end)))
            .collect();
        for (index, (a, base_a, moves_a)) in queued.iter().enumerate() {
            for (b, base_b, moves_b) in &queued[index + 1..] {
                let lag = nanos(base_a.abs_diff(*base_b)).div_ceil(nanos(BIN)).clamp(1, 6);
                let value = correlation(moves_a, moves_b, lag as usize);
                let paths = [*a.min(b), *a.max(b)];
                if self.pair_mut(*a, *b).is_none() {
                    self.pairs.push(Pair::new(now, paths));
                }
                if let Some(pair) = self.pair_mut(*a, *b) {
                    pair.seen = now;
                    pair.look(now, value);
                }
            }
        }
        let shared = |pairs: &[Pair]| pairs.iter().filter(|p| p.shared).count();
        let before = shared(&self.pairs);
        for pair in &mut self.pairs {
            let queue = |path: PathId| members.iter().find(|m| m.path == path)?.queue(now);
            match (queue(pair.paths[0]), queue(pair.paths[1])) {
                (Some(a), Some(b)) => pair.compare_queues(now, a, b),
                _ => pair.apart = None,
            }
        }
        self.pairs.retain(|pair| now.saturating_since(pair.seen) < MEMORY);
        before != shared(&self.pairs)
    }

    /// Tries the pair that is due, if any: of the two, the path that has
    /// more in flight, because its part of a queue is seen best.
    fn begin(&mut self, now: Instant, members: &[Member]) {
        let of = |path: PathId| members.iter().find(|m| m.path == path && m.is_queued(now));
        // A pair of which one idles cannot be tried, and keeps nobody else waiting.
        let due = self.pairs.iter().filter(|pair| pair.is_due(now)).filter_map(|pair| {
            let (a, b) = (of(pair.paths[0])?, of(pair.paths[1])?);
            Some((pair.next_trial, a, b))
        });
        let Some((_, a, b)) = due.min_by_key(|(next_trial, ..)| *next_trial) else { return };
        let tried = if a.usual_flight() >= b.usual_flight() { a } else { b };
        let others: Vec<&Member> =
            members.iter().filter(|m| m.path != tried.path && m.is_queued(now)).collect();
        let baseline = Baseline {
            in_flight: tried.usual_flight(),
            base_ms: tried.base().as_secs_f64() * 1e3,
            delay_ms: tried.usual_delay_ms(),
            rtt: others.iter().map(|m| m.srtt()).max().unwrap_or_default().max(tried.srtt()),
        };
        self.trial = Some(Trial::new(now, tried.path, others.iter().map(|m| m.path), &baseline));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::Observation;
    use fbdt_units::SubflowSample;

    fn at(s: u64) -> Instant {
        Instant::from_nanos((s + 100) * 1_000_000_000)
    }

    fn pair() -> Pair {
        Pair::new(at(0), [PathId(0), PathId(1)])
    }

    #[test]
    fn f17_suspicion_alone_couples_nobody() {
        let mut pair = pair();
        pair.look(at(1), Some(0.9));
        assert!(pair.is_due(at(1)));
        assert!(!pair.shared);
        pair.learn(at(1), Answer::Disjoint);
        assert!(!pair.shared);
        assert!(!pair.is_due(at(20)), "not at once again");
        assert!(pair.is_due(at(21)));
        let mut open_one = Pair::new(at(0), [PathId(0), PathId(1)]);
        open_one.look(at(1), Some(0.9));
        open_one.learn(at(1), Answer::Unclear);
        assert!(open_one.is_due(at(11)), "no answer: sooner");
    }

    #[test]
    fn f17_a_coupling_ends_by_evidence_only() {
        let mut pair = pair();
        pair.learn(at(1), Answer::Shared);
        assert!(pair.shared);
        pair.look(at(10), Some(0.1));
        assert!(!pair.is_due(at(14)), "one low value is no doubt");
        assert!(pair.is_due(at(15)));
        pair.learn(at(16), Answer::Unclear);
        assert!(pair.shared, "no answer is no evidence");
        pair.learn(at(40), Answer::Disjoint);
        assert!(!pair.shared);
    }

    #[test]
    fn f17_doubt_that_no_trial_removes_ends_a_coupling() {
        let mut pair = pair();
        pair.learn(at(1), Answer::Shared);
        pair.look(at(10), Some(0.0));
        pair.learn(at(16), Answer::Unclear);
        pair.learn(at(30), Answer::Unclear);
        assert!(!pair.shared);
    }

    #[test]
    fn f17_paths_of_which_one_meets_a_queue_and_the_other_none_share_none() {
        let mut pair = pair();
        pair.learn(at(1), Answer::Shared);
        pair.compare_queues(at(2), Queue::Long, Queue::None);
        pair.compare_queues(at(6), Queue::Long, Queue::Short);
        pair.compare_queues(at(7), Queue::None, Queue::Long);
        assert!(pair.shared, "for a moment only");
        pair.compare_queues(at(12), Queue::None, Queue::Long);
        assert!(!pair.shared);
    }

    #[test]
    fn f17_a_coupling_is_tried_again_now_and_then() {
        let mut pair = pair();
        pair.learn(at(1), Answer::Shared);
        pair.look(at(30), Some(0.9));
        assert!(!pair.is_due(at(30)));
        assert!(pair.is_due(at(80)));
    }

    #[test]
    fn f17_trials_that_find_nothing_become_rare() {
        let mut pair = pair();
        for _ in 0..10 {
            pair.learn(at(1), Answer::Disjoint);
        }
        pair.look(at(1), Some(0.9));
        assert!(!pair.is_due(at(60)) && pair.is_due(at(61)));
    }

    /// A path whose bytes wait in a queue of 5 ms, or that carries none.
    fn member(path: u8, now: Instant, carries: bool) -> Member {
        let mut member = Member::new(PathId(path));
        let ms = Duration::from_millis;
        let sample = SubflowSample { srtt: ms(25), min_rtt: ms(20), ..SubflowSample::default() };
        let in_flight = if carries { 50_000 } else { 0 };
        let seen = Observation {
            path: member.path,
            sample,
            in_flight,
            limit: 100_000,
            window_based: true,
        };
        member.update(now, &seen);
        member
    }

    #[test]
    fn f17_a_path_that_idles_keeps_no_other_pair_from_a_trial() {
        let suspected = |first, second, since| {
            let mut pair = Pair::new(at(since), [PathId(first), PathId(second)]);
            pair.look(at(10), Some(0.9));
            pair
        };
        // The pair of the idle path has waited longest.
        let pairs = [suspected(0, 1, 1), suspected(1, 2, 2)];
        let mut detector = Detector { pairs: pairs.into(), ..Detector::default() };
        let members = [0, 1, 2].map(|path| member(path, at(10), path != 0));
        detector.begin(at(10), &members);
        assert!(detector.trial.is_some_and(|trial| trial.path != PathId(0)));
    }
}
