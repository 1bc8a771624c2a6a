//! Runs many draws on all cores.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use fbdt_proto::{Config, SchedulerKind};
use serde::Serialize;

use crate::draw::Draw;
use crate::goals::{LUCK, Run, Verdict, best_path};
use crate::measure::{Outcome, run_alone, run_session};
use crate::stage::rules;

/// The product's default, by this name.
pub const DEFAULT: &str = "default";

/// A scheduler with its rules.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Configuration of both ends.
    pub config: Config,
}

impl Setting {
    /// The product's default.
    #[must_use]
    pub fn product() -> Self {
        Self { name: DEFAULT.to_owned(), config: Config::default() }
    }

    /// A scheduler by its name, with the rules that it is published with.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name == DEFAULT {
            return Some(Self::product());
        }
        let kind = SchedulerKind::ALL.into_iter().find(|kind| kind.name() == name)?;
        Some(Self { name: name.to_owned(), config: rules(kind) })
    }

    /// The default, and all others.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let own = SchedulerKind::default();
        let others = SchedulerKind::ALL.into_iter().filter(|kind| *kind != own);
        let named = others.filter_map(|kind| Self::named(kind.name()));
        std::iter::once(Self::product()).chain(named).collect()
    }
}

/// Which draws, and which schedulers; the first one is judged.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub draws: u64,
    /// The schedulers.
    pub settings: Vec<Setting>,
    /// Threads.
    pub threads: usize,
}

impl Judge {
    /// All verdicts by seed; fewer if `stop` is set. `progress` gets the number of finished draws.
    #[must_use]
    pub fn run(&self, stop: &AtomicBool, progress: impl Fn(u64) + Sync) -> Vec<Verdict> {
        self.each_draw(stop, progress, |draw| verdict(draw, &self.settings))
    }

    /// Outcomes of the judged scheduler alone, by seed: no plain TCP and no other scheduler is run.
    #[must_use]
    pub fn outcomes(&self, stop: &AtomicBool, progress: impl Fn(u64) + Sync) -> Vec<Judged> {
        let judged = self.settings.first().cloned().unwrap_or_else(Setting::product);
        self.each_draw(stop, progress, |draw| Judged {
            outcome: guarded(&draw, &judged),
            seed: draw.seed,
        })
    }

    /// Runs all draws on all threads; the results are in the order of the seeds.
    fn each_draw<T: Send>(
        &self,
        stop: &AtomicBool,
        progress: impl Fn(u64) + Sync,
        run: impl Fn(Draw) -> T + Sync,
    ) -> Vec<T> {
        let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let results: Mutex<Vec<(u64, T)>> = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.draws {
                            return;
                        }
                        let result = run(Draw::from_seed(self.first + index));
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        results.push((index, result));
                        drop(results);
                        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

/// The judged scheduler's outcome of one draw.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// Seed of the draw.
    pub seed: u64,
    /// What came out.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Runs one draw.
#[must_use]
pub fn verdict(draw: Draw, settings: &[Setting]) -> Verdict {
    let started = Instant::now();
    let alone: Vec<Outcome> = (0..draw.paths.len()).map(|path| run_alone(&draw, path, 0)).collect();
    let best = best_path(&draw, &alone);
    let again = (1..=LUCK as u64 + 1).map(|chance| run_alone(&draw, best, chance)).collect();
    let single = settings.first().map(|judged| guarded(&draw.only(best), judged));
    let run = |setting: &Setting| {
        let outcome = guarded(&draw, setting);
        Run { scheduler: setting.name.clone(), outcome }
    };
    let runs = settings.iter().map(run).collect();
    let wall_s = started.elapsed().as_secs_f64();
    let single = single.unwrap_or_default();
    Verdict { draw, alone, again, single, runs, wall_s }
}

/// Runs a session. A panic is a finding, and not the end of other draws.
fn guarded(draw: &Draw, setting: &Setting) -> Outcome {
    let once = || run_session(draw, &setting.config);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(once));
    outcome
        .unwrap_or_else(|_| Outcome { violation: "it panicked".to_owned(), ..Outcome::default() })
}
