//! Many seeds, on as many threads as wanted; each seed is one thread's affair.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fbdt_proto::SchedulerKind;
use serde::Serialize;

use super::fault::Fault;
use super::plan::{Plan, PlanError};
use super::trial::{Outcome, run_plan};
use crate::coverage::Mark;
use crate::violation::Violation;

/// Failures that are kept; more are only counted.
const MOST_FAILURES: usize = 20;

/// Which seeds to run.
#[derive(Clone, Debug)]
pub struct Soak {
    /// First seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// On how many threads.
    pub threads: usize,
}

/// One seed that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What was broken.
    pub violation: String,
}

/// All seeds that injected one fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultTotals {
    /// Seeds that did.
    pub seeds: u64,
    /// Times it was injected.
    pub injected: u64,
    /// Bytes that applications read in those seeds.
    pub bytes: u64,
    /// Bytes that were wrong or missing in those seeds. A seed ends with the
    /// first invariant that it breaks: 0 means none, more means at least so
    /// many.
    pub bytes_lost: u64,
    /// Of those, seeds in which any invariant was broken.
    pub failed_seeds: u64,
    /// Longest time from the end of the faults to the next byte, ms.
    pub longest_recovery_ms: u64,
}

/// All seeds that saw one part of a rule at work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MarkTotals {
    /// Seeds that did.
    pub seeds: u64,
    /// The first of them.
    pub first: u64,
}

/// All seeds in which one scheduler served an end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SchedulerTotals {
    /// Seeds that drew it.
    pub seeds: u64,
    /// Of those, seeds in which it spread new bytes over two or more paths.
    pub placed_seeds: u64,
    /// Bytes that applications read in those seeds, whichever end sent them.
    pub bytes: u64,
    /// Bytes that were wrong or missing in those seeds, as in [`FaultTotals`].
    pub bytes_lost: u64,
    /// Of those, seeds in which any invariant was broken.
    pub failed_seeds: u64,
}

/// What came of a soak.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Seeds run.
    pub seeds: u64,
    /// Seeds that failed.
    pub failed: u64,
    /// The first of them.
    pub failures: Vec<Failure>,
    /// Sessions opened.
    pub sessions: u64,
    /// Bytes that applications read; each was compared.
    pub bytes: u64,
    /// Virtual time, ms.
    pub virtual_ms: u64,
    /// By fault.
    pub faults: BTreeMap<Fault, FaultTotals>,
    /// By rule, and what was seen of it.
    pub rules: BTreeMap<String, BTreeMap<String, MarkTotals>>,
    /// By scheduler.
    pub schedulers: BTreeMap<String, SchedulerTotals>,
}

impl Report {
    fn empty() -> Self {
        let mut report = Self::default();
        for mark in Mark::ALL {
            let rule = report.rules.entry(mark.rule().to_owned()).or_default();
            rule.insert(mark.words().to_owned(), MarkTotals::default());
        }
        for fault in Fault::ALL {
            report.faults.insert(*fault, FaultTotals::default());
        }
        for kind in SchedulerKind::ALL {
            report.schedulers.insert(kind.name().to_owned(), SchedulerTotals::default());
        }
        report
    }

    fn add(&mut self, plan: &Plan, outcome: &Outcome) {
        let seed = plan.seed;
        self.seeds += 1;
        self.sessions += outcome.sessions;
        self.bytes += outcome.delivered;
        self.virtual_ms += millis(outcome.elapsed);
        for (fault, count) in &outcome.faults {
            let totals = self.faults.entry(*fault).or_default();
            totals.seeds += 1;
            totals.injected += count;
            totals.bytes += outcome.delivered;
            totals.bytes_lost += outcome.violation.as_ref().map_or(0, Violation::bytes_lost);
            totals.failed_seeds += u64::from(outcome.violation.is_some());
            totals.longest_recovery_ms = totals.longest_recovery_ms.max(millis(outcome.recovery));
        }
        for mark in outcome.coverage.marks() {
            let rule = self.rules.entry(mark.rule().to_owned()).or_default();
            let totals = rule.entry(mark.words().to_owned()).or_default();
            totals.first = if totals.seeds == 0 { seed } else { totals.first.min(seed) };
            totals.seeds += 1;
        }
        self.add_schedulers(plan, outcome);
        if let Some(violation) = &outcome.violation {
            self.failed += 1;
            self.failures.push(Failure { seed, violation: violation.to_string() });
            self.failures.sort_by_key(|failure| failure.seed);
            self.failures.truncate(MOST_FAILURES);
        }
    }

    fn add_schedulers(&mut self, plan: &Plan, outcome: &Outcome) {
        let lost = outcome.violation.as_ref().map_or(0, Violation::bytes_lost);
        for name in plan.setup.placement.iter().collect::<BTreeSet<_>>() {
            let totals = self.schedulers.entry(name.clone()).or_default();
            totals.seeds += 1;
            totals.placed_seeds += u64::from(outcome.placed.contains(name.as_str()));
            totals.bytes += outcome.delivered;
            totals.bytes_lost += lost;
            totals.failed_seeds += u64::from(outcome.violation.is_some());
        }
    }

    /// Schedulers that spread bytes over several paths in no seed.
    pub fn idle_schedulers(&self) -> impl Iterator<Item = &str> {
        let idle = self.schedulers.iter().filter(|(_, totals)| totals.placed_seeds == 0);
        idle.map(|(name, _)| name.as_str())
    }

    /// Parts of rules that no seed has seen at work.
    pub fn unseen(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rules.iter().flat_map(|(rule, marks)| {
            let unseen = marks.iter().filter(|(_, totals)| totals.seeds == 0);
            unseen.map(|(words, _)| (rule.as_str(), words.as_str()))
        })
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Soak {
    /// Runs all seeds; `go_on` is told how many are done and have failed, and
    /// says whether to begin another one.
    ///
    /// # Errors
    /// Never for seeds of this program; kept for plans that name what does not
    /// exist.
    pub fn run(&self, go_on: impl Fn(u64, u64) -> bool + Sync) -> Result<Report, PlanError> {
        let next = AtomicU64::new(0);
        let shared = Mutex::new(Ok(Report::empty()));
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.seeds {
                            return;
                        }
                        let seed = self.first.wrapping_add(index);
                        let plan = Plan::of_seed(seed);
                        let result = run_plan(&plan, false);
                        let Ok(mut report) = shared.lock() else { return };
                        match (&mut *report, result) {
                            (Ok(report), Ok(outcome)) => {
                                report.add(&plan, &outcome);
                                if !go_on(report.seeds, report.failed) {
                                    next.store(self.seeds, Ordering::Relaxed);
                                }
                            }
                            (_, Err(error)) => *report = Err(error),
                            (Err(_), _) => return,
                        }
                    }
                });
            }
        });
        shared.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
