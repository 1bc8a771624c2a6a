//! The goals, and how many draws reach each.

use serde::{Deserialize, Serialize};

use crate::draw::{Bottleneck, Control, Draw, PathDraw};
use crate::measure::Outcome;

/// Bulk transfers reach this share of the best path alone: in nearly all draws, and in all.
const BULK: f64 = 0.98;
const BULK_IN_ALL: f64 = 0.90;
/// And this share of the best scheduler.
const BULK_OF_BEST: f64 = 0.95;
/// Short transfers take at most this many times as long as over the best path alone.
const SHORT: f64 = 1.02;
/// The median of the share of copies.
const COPIES: f64 = 0.01;
/// Runs of the best path alone besides the first: what its worst luck is.
pub const LUCK: usize = 3;
/// Two stalls or delays that differ by less are equal, in milliseconds and as a share.
const EQUAL_MS: f64 = 1.0;
const EQUAL_SHARE: f64 = 0.02;

/// One scheduler's outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub scheduler: String,
    /// What came out.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// All outcomes of a draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The conditions.
    pub draw: Draw,
    /// A plain TCP over each path alone.
    pub alone: Vec<Outcome>,
    /// The best path alone [`LUCK`] times more with other losses and jitter, and once more to compare
    /// with these.
    pub again: Vec<Outcome>,
    /// The judged session over the best path alone: what a session costs without a choice of paths.
    pub single: Outcome,
    /// The session with each scheduler; the first one is judged.
    pub runs: Vec<Run>,
    /// Time that all of it took, in seconds.
    pub wall_s: f64,
}

/// The path that is best for the draw's work: the fastest for a bulk transfer, the soonest otherwise.
#[must_use]
pub fn best_path(draw: &Draw, alone: &[Outcome]) -> usize {
    let least = |value: &dyn Fn(&Outcome) -> f64| {
        let order = |a: &usize, b: &usize| value(&alone[*a]).total_cmp(&value(&alone[*b]));
        (0..alone.len()).min_by(order).unwrap_or(0)
    };
    match draw.work {
        work if work.is_bulk() => least(&|outcome| -outcome.goodput_mbps),
        crate::draw::Work::Short { .. } => least(&|outcome| outcome.transfer_ms),
        _ => least(&|outcome| outcome.latency_p99_ms),
    }
}

impl Verdict {
    /// The best path alone.
    #[must_use]
    pub fn best_alone(&self) -> &Outcome {
        &self.alone[best_path(&self.draw, &self.alone)]
    }

    /// How good an outcome is beside the best path alone: 1 is as good, less is worse. By goodput, by
    /// time of short transfers, or by the 99th percentile of latency.
    #[must_use]
    pub fn ratio(&self, outcome: &Outcome) -> f64 {
        self.beside(outcome, self.best_alone())
    }

    /// The same beside the best path alone where it had the worst luck of four runs: losses, jitter and
    /// outages make a plain TCP as much slower than itself.
    #[must_use]
    pub fn fair_ratio(&self, outcome: &Outcome) -> f64 {
        let lucks = self.again.iter().take(LUCK).map(|alone| self.beside(outcome, alone));
        lucks.fold(self.ratio(outcome), f64::max)
    }

    /// One more run of the best path alone, to compare with [`Self::fair_ratio`].
    #[must_use]
    pub fn control(&self) -> &Outcome {
        self.again.last().unwrap_or_else(|| self.best_alone())
    }

    fn beside(&self, outcome: &Outcome, best: &Outcome) -> f64 {
        let of = |own: f64, other: f64| if other <= 0.0 { 1.0 } else { own / other };
        match self.draw.work {
            work if work.is_bulk() => of(outcome.goodput_mbps, best.goodput_mbps),
            _ if !outcome.violation.is_empty() => 0.0,
            crate::draw::Work::Short { .. } => of(best.transfer_ms, outcome.transfer_ms),
            _ => of(best.latency_p99_ms, outcome.latency_p99_ms),
        }
    }

    /// The judged scheduler's outcome.
    #[must_use]
    pub fn judged(&self) -> &Outcome {
        &self.runs[0].outcome
    }

    /// Whether the judged scheduler is the best or second best by a value of which less is better.
    fn is_second(&self, value: impl Fn(&Outcome) -> f64) -> bool {
        let own = value(self.judged());
        let equal = |other: f64| own - other <= EQUAL_MS.max(EQUAL_SHARE * own);
        let valid = self.runs[1..].iter().filter(|run| run.outcome.violation.is_empty());
        valid.filter(|run| !equal(value(&run.outcome))).count() <= 1
    }
}

/// One goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// In words.
    pub goal: String,
    /// Draws that it is about.
    pub draws: usize,
    /// The share of them that reach it; of copies their median share.
    pub reached: f64,
    /// What `reached` is to be; `None`: it is for comparison.
    pub wanted: Option<f64>,
}

impl Goal {
    /// Whether it is reached.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        let copies = self.goal.starts_with("copies");
        self.wanted.is_none_or(
            |wanted| if copies { self.reached < wanted } else { self.reached >= wanted },
        )
    }
}

fn share<'a>(
    goal: &str,
    wanted: Option<f64>,
    verdicts: impl Iterator<Item = &'a Verdict>,
    reaches: impl Fn(&Verdict) -> bool,
) -> Goal {
    let (mut draws, mut reached) = (0, 0);
    for verdict in verdicts {
        draws += 1;
        reached += usize::from(reaches(verdict));
    }
    let reached = if draws == 0 { 1.0 } else { reached as f64 / draws as f64 };
    Goal { goal: goal.to_owned(), draws, reached, wanted }
}

fn is_short(verdict: &Verdict) -> bool {
    matches!(verdict.draw.work, crate::draw::Work::Short { .. })
}

/// All goals. Those that compare schedulers are there if there are several.
#[must_use]
pub fn goals(verdicts: &[Verdict]) -> Vec<Goal> {
    let bulk = || verdicts.iter().filter(|v| v.draw.work.is_bulk());
    let short = || verdicts.iter().filter(|v| is_short(v));
    let over = |least: f64| move |v: &Verdict| v.ratio(v.judged()) >= least;
    let fair = |least: f64| move |v: &Verdict| v.fair_ratio(v.judged()) >= least;
    let control = |least: f64| move |v: &Verdict| v.ratio(v.control()) >= least;
    let fair_control = |least: f64| move |v: &Verdict| v.fair_ratio(v.control()) >= least;
    let single = |least: f64| move |v: &Verdict| v.fair_ratio(&v.single) >= least;
    let mut goals = vec![
        share("bulk: at least 0.98 of the best path alone", Some(0.99), bulk(), over(BULK)),
        share("  (the best path alone once more)", None, bulk(), control(BULK)),
        share("bulk: at least 0.90 of the best path alone", Some(1.0), bulk(), over(BULK_IN_ALL)),
        share("  (the best path alone once more)", None, bulk(), control(BULK_IN_ALL)),
        share("bulk: 0.98 of its worst luck of four", Some(0.99), bulk(), fair(BULK)),
        share("  (the best path alone once more)", None, bulk(), fair_control(BULK)),
        share("  (a session over the best path alone)", None, bulk(), single(BULK)),
        share("bulk: 0.90 of its worst luck of four", Some(1.0), bulk(), fair(BULK_IN_ALL)),
        share("  (the best path alone once more)", None, bulk(), fair_control(BULK_IN_ALL)),
        share("  (a session over the best path alone)", None, bulk(), single(BULK_IN_ALL)),
        share("short: at most 1.02 of the best path alone", Some(0.99), short(), over(1.0 / SHORT)),
        share("  (the best path alone once more)", None, short(), control(1.0 / SHORT)),
        share("short: 1.02 of its worst luck of four", Some(0.99), short(), fair(1.0 / SHORT)),
        share("  (the best path alone once more)", None, short(), fair_control(1.0 / SHORT)),
        share("  (a session over the best path alone)", None, short(), single(1.0 / SHORT)),
        share("no invariant breaks", Some(1.0), verdicts.iter(), |v| {
            v.judged().violation.is_empty()
        }),
    ];
    if verdicts.iter().any(|v| v.runs.len() > 1) {
        let order = || verdicts.iter().filter(|v| v.draw.work.is_bulk() && v.runs.len() > 2);
        goals.extend([
            share("bulk: at least 0.95 of the best scheduler", Some(0.99), bulk(), |v| {
                let best = v.runs.iter().map(|run| run.outcome.goodput_mbps).fold(0.0, f64::max);
                v.judged().goodput_mbps >= BULK_OF_BEST * best
            }),
            share("bulk: longest stall best or second", Some(0.90), order(), |v| {
                v.is_second(|outcome| outcome.stall_ms)
            }),
            share("bulk: p99 of in-order delay best or second", Some(0.90), order(), |v| {
                v.is_second(|outcome| outcome.in_order_p99_ms)
            }),
        ]);
    }
    let mut copies: Vec<f64> = verdicts.iter().map(|v| v.judged().copies).collect();
    copies.sort_by(f64::total_cmp);
    let median = copies.get(copies.len() / 2).copied().unwrap_or_default();
    goals.push(Goal {
        goal: "copies: their median share of the bytes".to_owned(),
        draws: verdicts.len(),
        reached: median,
        wanted: Some(COPIES),
    });
    goals
}

/// A property of draws, and how those do that have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kind {
    /// In words.
    pub kind: &'static str,
    /// Bulk draws with it.
    pub draws: usize,
    /// The share of them below the goal of bulk transfers, beside the worst luck of the best path alone.
    pub below: f64,
    /// The same of those without it.
    pub below_without: f64,
    /// The tenth percentile of the ratio to the best path alone.
    pub p10: f64,
}

type Property = fn(&Verdict, &PathDraw) -> bool;

/// Properties, of the best path alone or of the draw.
const KINDS: [(&str, Property); 17] = [
    ("queue over 200 ms", |_, p| matches!(p.bottleneck, Bottleneck::QueueMs(ms) if ms > 200.0)),
    ("queue under 20 ms", |_, p| matches!(p.bottleneck, Bottleneck::QueueMs(ms) if ms < 20.0)),
    ("policer", |_, p| matches!(p.bottleneck, Bottleneck::PolicerMs(_))),
    ("token bucket", |_, p| p.burst_bytes > 0),
    ("loss", |_, p| p.loss > 0.0),
    ("losses in bursts", |_, p| p.loss_run > 1.0),
    ("jitter over 0.2 RTT", |_, p| p.jitter_ms > 0.2 * p.rtt_ms),
    ("overtaking", |_, p| p.overtaking),
    ("gathered acknowledgements", |_, p| p.gathered_ms > 0.0),
    ("outages", |_, p| !p.outages.is_empty()),
    ("rate steps", |_, p| !p.steps.is_empty()),
    ("sleep", |_, p| p.sleep.is_some()),
    ("other TCPs", |_, p| p.others > 0),
    ("RTT over 200 ms", |_, p| p.rtt_ms > 200.0),
    ("buffer under rate x RTT", |v, p| {
        (v.draw.buffer_bytes as f64) < p.rate(v.draw.work.is_upload()) * p.rtt_ms / 1e3
    }),
    ("shared bottleneck", |v, _| v.draw.shared),
    ("bbr", |v, _| v.draw.control == Control::Bbr),
];

/// How bulk draws do by the properties of their best path.
#[must_use]
pub fn kinds(verdicts: &[Verdict]) -> Vec<Kind> {
    let bulk: Vec<&Verdict> = verdicts.iter().filter(|v| v.draw.work.is_bulk()).collect();
    let below = |some: &[&&Verdict]| {
        let count = some.iter().filter(|v| v.fair_ratio(v.judged()) < BULK).count();
        count as f64 / some.len().max(1) as f64
    };
    let kind = |(kind, has): &(&'static str, Property)| {
        let best = |v: &Verdict| v.draw.paths[best_path(&v.draw, &v.alone)].clone();
        let (with, without): (Vec<&&Verdict>, Vec<_>) = bulk.iter().partition(|v| has(v, &best(v)));
        let mut ratios: Vec<f64> = with.iter().map(|v| v.fair_ratio(v.judged())).collect();
        ratios.sort_by(f64::total_cmp);
        Kind {
            kind,
            draws: with.len(),
            below: below(&with),
            below_without: below(&without),
            p10: ratios.get(ratios.len() / 10).copied().unwrap_or(1.0),
        }
    };
    KINDS.iter().map(kind).collect()
}

/// Draws that fall shortest of the best path alone, worst first: bulk and short transfers.
#[must_use]
pub fn worst(verdicts: &[Verdict], count: usize) -> Vec<&Verdict> {
    let mut worst: Vec<&Verdict> =
        verdicts.iter().filter(|v| v.draw.work.is_bulk() || is_short(v)).collect();
    worst.sort_by(|a, b| a.fair_ratio(a.judged()).total_cmp(&b.fair_ratio(b.judged())));
    worst.truncate(count);
    worst
}
