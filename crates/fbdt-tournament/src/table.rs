//! The table of all cells.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use fbdt_proto::SchedulerKind;
use serde::Serialize;

use crate::condition::{Condition, Parameters};
use crate::measure::{Outcome, Rules, measure};
use crate::transfers;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The conditions; each is run once with each of its seeds, from 1 on.
    pub conditions: Vec<Condition>,
    /// The schedulers.
    pub schedulers: Vec<SchedulerKind>,
    /// The rules that they run with.
    pub rules: Rules,
    /// Threads.
    pub threads: usize,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Number of the condition within this table.
    pub condition: usize,
    /// Its parameters.
    #[serde(flatten)]
    pub parameters: Parameters,
    /// Seed of the links' losses and of what their delays differ by.
    pub seed: u64,
    /// The scheduler.
    pub scheduler: &'static str,
    /// Its rules.
    pub rules: Rules,
    /// Goodput of each path alone under the same condition, as a plain TCP has it, Mbit/s.
    pub alone_mbps: [f64; 2],
    /// Goodput over the sum of these.
    pub sum_ratio: f64,
    /// What came out.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Runs a plan; `progress` is told after each of the runs that there are in
/// all.
#[must_use]
pub fn play(plan: &Plan, progress: impl Fn(usize, usize) + Sync) -> Vec<Row> {
    let jobs: Vec<(usize, u64)> = (0..plan.conditions.len())
        .flat_map(|index| (1..=plan.conditions[index].seeds).map(move |seed| (index, seed)))
        .collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let rows: Mutex<Vec<(usize, Vec<Row>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(condition, seed)) = jobs.get(index) else { return };
                    let part = contest(plan, condition, seed);
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push((index, part));
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(index, _)| *index);
    rows.into_iter().flat_map(|(_, part)| part).collect()
}

/// Runs one cell.
#[must_use]
pub fn run(condition: &Condition, kind: SchedulerKind, rules: Rules, seed: u64) -> Outcome {
    let measured = if condition.parameters.transfer_bytes > 0 {
        transfers::measure(condition, kind, rules, seed)
    } else {
        measure(condition, kind, rules, seed)
    };
    measured.unwrap_or_else(|violation| Outcome { violation, ..Outcome::default() })
}

/// All schedulers under one condition.
fn contest(plan: &Plan, index: usize, seed: u64) -> Vec<Row> {
    let condition = &plan.conditions[index].drawn(seed);
    let alone_mbps = [0, 1].map(|path| {
        // With one path this scheduler sends what its window takes, as a plain TCP does, whose buffer
        // grows as it likes: on real sockets that is what stands for a link alone.
        let mut alone = condition.alone(path);
        alone.parameters.buffer_bytes = 0;
        run(&alone, SchedulerKind::LowestRttFirst, Rules::Published, seed).goodput_mbps
    });
    let sum: f64 = alone_mbps.iter().sum();
    let row = |kind: &SchedulerKind| {
        let outcome = run(condition, *kind, plan.rules, seed);
        Row {
            condition: index,
            parameters: condition.parameters.clone(),
            seed,
            scheduler: kind.name(),
            rules: plan.rules,
            alone_mbps,
            sum_ratio: outcome.goodput_mbps / sum.max(1e-9),
            outcome,
        }
    };
    plan.schedulers.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::GROUPS;
    use std::time::Duration;

    #[test]
    fn rows_are_in_order_whatever_the_threads_do() {
        let mut condition = Condition::new(Parameters::plain("test"), 4.0);
        condition.warmup = Duration::from_millis(300);
        condition.time = Duration::from_millis(200);
        condition.seeds = 2;
        let single = Condition { seeds: 1, ..condition.clone() };
        let plan = |threads| Plan {
            conditions: vec![condition.clone(), single.clone()],
            schedulers: vec![SchedulerKind::JustInTime, SchedulerKind::MinRtt],
            rules: Rules::Published,
            threads,
        };
        let rows = play(&plan(1), |_, _| {});
        assert_eq!(rows, play(&plan(3), |_, _| {}));
        let keys: Vec<_> = rows.iter().map(|r| (r.condition, r.seed, r.scheduler)).collect();
        assert_eq!(keys.len(), 6, "two seeds of the first one, one of the second");
        assert_eq!(keys[..3], [(0, 1, "just-in-time"), (0, 1, "minrtt"), (0, 2, "just-in-time")]);
        assert_eq!(keys[4..], [(1, 1, "just-in-time"), (1, 1, "minrtt")]);
        assert!(rows.iter().all(|r| r.sum_ratio > 0.8 && r.sum_ratio < 1.2), "{rows:?}");
    }

    #[test]
    fn a_small_buffer_is_the_sessions_and_not_a_link_alones() {
        let parameters = Parameters { buffer_bytes: 64 << 10, ..Parameters::plain("test") };
        let mut condition = Condition::new(parameters, 20.0);
        condition.time = Duration::from_secs(1);
        let plan = Plan {
            conditions: vec![condition],
            schedulers: vec![SchedulerKind::RoundRobin],
            rules: Rules::Published,
            threads: 1,
        };
        let rows = play(&plan, |_, _| {});
        // 64 KiB in 20 ms are 26 Mbit/s.
        assert!(rows.iter().all(|r| r.alone_mbps.iter().all(|mbps| *mbps > 28.0)), "{rows:?}");
        assert!(rows.iter().all(|r| r.outcome.goodput_mbps < 27.0), "{rows:?}");
    }

    #[test]
    fn rows_follow_the_schema() {
        let schema = include_str!("../../../docs/schemas/tournament.v1.json");
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        let row = Row {
            condition: 0,
            parameters: Parameters::plain("loss"),
            seed: 1,
            scheduler: SchedulerKind::Ecf.name(),
            rules: Rules::Product,
            alone_mbps: [30.0, 30.0],
            sum_ratio: 1.0,
            outcome: Outcome::default(),
        };
        let row = serde_json::to_value(&row).unwrap();
        let mut fields: Vec<&String> = row.as_object().unwrap().keys().collect();
        let described = &schema["$defs"]["row"];
        let mut known: Vec<&String> = described["properties"].as_object().unwrap().keys().collect();
        fields.sort();
        known.sort();
        assert_eq!(fields, known);
        assert_eq!(described["required"].as_array().unwrap().len(), known.len());
        let names = described["properties"]["scheduler"]["enum"].as_array().unwrap();
        assert!(SchedulerKind::ALL.iter().all(|kind| names.contains(&kind.name().into())));
        let groups = described["properties"]["group"]["enum"].as_array().unwrap();
        assert!(GROUPS.iter().all(|group| groups.contains(&(*group).into())), "{groups:?}");
    }
}
