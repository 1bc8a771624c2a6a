//! One cell: a scheduler under a condition, and what comes out of a transfer that does not end.

use std::time::Duration;

use fbdt_proto::{Class, CommitRule, Config, Redundancy, SchedulerKind, SessionStats};
use fbdt_sim::{Scenario, Simulation, Violation};
use serde::Serialize;

use crate::condition::Condition;

/// Deliveries are looked at this often; a stall is known to this precision.
const STEP: Duration = Duration::from_millis(1);
/// Length of the intervals of which the slowest are reported.
const INTERVAL: u32 = 100;
/// Bytes that are always enough to send.
const ENDLESS: u64 = 1 << 40;

/// What came out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Bytes that arrived per second, each counted once, while it counted. Those that were held for
    /// earlier ones when it began to count are not among them, as they are in what is delivered. Of
    /// transfers their bytes over the time that they took.
    pub goodput_mbps: f64,
    /// 5th percentile of what is delivered in order within 100 ms; of transfers that of the longest.
    pub goodput_p5_mbps: f64,
    /// Longest time without delivery, while it counted; of transfers that from their beginning on.
    pub stall_ms: f64,
    /// Median time from a byte's arrival to its delivery, from the start on; of transfers the median
    /// of those.
    pub in_order_p50_ms: f64,
    /// 99th percentile of the same; of transfers the greatest of those.
    pub in_order_p99_ms: f64,
    /// Most bytes held for earlier ones.
    pub reorder_peak_bytes: u64,
    /// Bytes sent a second time over all bytes sent.
    pub redundant_share: f64,
    /// Invariant that broke; the numbers above are zero then.
    pub violation: String,
}

/// Which rules a scheduler runs with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rules {
    /// Those that it is published with.
    #[default]
    Published,
    /// The product's: early copies and the commit limit by rate.
    Product,
    /// The product's without its early copies.
    Uncopied,
    /// The product's without its commit limit.
    Unlimited,
    /// Neither of these two, for FBDT's own schedulers as for the published ones.
    Bare,
}

/// The configuration of both ends.
#[must_use]
pub fn config(kind: SchedulerKind, rules: Rules, buffer: u64) -> Config {
    let product = Config { scheduler: kind, ..Config::default() };
    let (redundancy, commit) = (Redundancy::Suspect, CommitRule::Window);
    let config = match rules {
        Rules::Published => Config::default().with_scheduler(kind),
        Rules::Product => product,
        Rules::Uncopied => Config { redundancy, ..product },
        Rules::Unlimited => Config { commit, ..product },
        Rules::Bare => Config { redundancy, commit, ..product },
    };
    if buffer > 0 { config.with_stream_buffer(buffer) } else { config }
}

/// Where a cell starts. Sockets are paced, as the product's are where the RTT is 1 ms or more
/// (docs/decisions.md, 5): in every condition, and for every scheduler alike.
#[must_use]
pub fn scenario(condition: &Condition, kind: SchedulerKind, rules: Rules, seed: u64) -> Scenario {
    let config = config(kind, rules, condition.parameters.buffer_bytes);
    Scenario {
        config: (config.clone(), config),
        tcp: condition.tcp,
        paced: true,
        log: false,
        ..Scenario::new(seed, condition.links.clone())
    }
}

/// A cell before anything is sent.
pub(crate) fn simulation(
    condition: &Condition,
    kind: SchedulerKind,
    rules: Rules,
    seed: u64,
) -> Result<Simulation, String> {
    Simulation::new(scenario(condition, kind, rules, seed)).map_err(|e| e.to_string())
}

/// Bytes sent a second time over all bytes sent.
pub(crate) fn redundant_share(sender: &SessionStats) -> f64 {
    let redundant = sender.redundant_bytes as f64;
    redundant / (redundant + sender.new_bytes as f64).max(1.0)
}

/// Runs a cell of one transfer that does not end; the server sends.
pub(crate) fn measure(
    condition: &Condition,
    kind: SchedulerKind,
    rules: Rules,
    seed: u64,
) -> Result<Outcome, String> {
    let mut simulation = simulation(condition, kind, rules, seed)?;
    let stream = simulation.open(false, Class::Background).map_err(|e| e.to_string())?;
    simulation.write(false, stream, ENDLESS);
    let (delivered, arrived) = deliver(&mut simulation, condition).map_err(|e| e.to_string())?;
    let [client, server] = simulation.stats();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let stream = client.streams.first().ok_or("the stream is gone")?;
    Ok(Outcome {
        in_order_p50_ms: milliseconds(stream.in_order_delay[0]),
        in_order_p99_ms: milliseconds(stream.in_order_delay[1]),
        reorder_peak_bytes: stream.receive_buffer_peak,
        redundant_share: redundant_share(&server),
        goodput_mbps: arrived as f64 * 8e-6 / condition.time.as_secs_f64(),
        ..summarise(&delivered)
    })
}

/// Bytes delivered by each millisecond of the time that counts, and how many arrived in it.
fn deliver(
    simulation: &mut Simulation,
    condition: &Condition,
) -> Result<(Vec<u64>, u64), Violation> {
    let arrived = |simulation: &Simulation| simulation.stats()[0].received_bytes;
    let mut changes = condition.changes.iter().peekable();
    let end = condition.warmup + condition.time;
    let (mut delivered, mut before) = (Vec::new(), 0);
    while simulation.elapsed() < end {
        let now = simulation.elapsed();
        while let Some((_, path, change)) = changes.next_if(|(at, _, _)| *at <= now) {
            simulation.change(*path, change, true, true);
        }
        if now >= condition.warmup {
            if delivered.is_empty() {
                before = arrived(simulation);
            }
            delivered.push(simulation.delivered()[0]);
            simulation.run(STEP)?;
        } else {
            simulation.run((condition.warmup - now).min(STEP * INTERVAL))?;
        }
    }
    delivered.push(simulation.delivered()[0]);
    Ok((delivered, arrived(simulation).saturating_sub(before)))
}

/// Slow intervals and stalls from the bytes delivered by each step.
fn summarise(delivered: &[u64]) -> Outcome {
    let mbps =
        |bytes: u64, steps: usize| bytes as f64 * 8e-6 / (STEP.as_secs_f64() * steps.max(1) as f64);
    let (mut longest, mut since) = (0, 0);
    for (index, pair) in delivered.windows(2).enumerate() {
        if pair[1] > pair[0] {
            since = index + 1;
        }
        longest = longest.max(index + 1 - since);
    }
    let interval = INTERVAL as usize;
    let mut intervals: Vec<f64> = delivered
        .windows(interval + 1)
        .step_by(interval)
        .map(|part| mbps(part[interval] - part[0], interval))
        .collect();
    intervals.sort_by(f64::total_cmp);
    Outcome {
        goodput_p5_mbps: intervals.get(intervals.len() / 20).copied().unwrap_or(0.0),
        stall_ms: STEP.as_secs_f64() * 1e3 * longest as f64,
        ..Outcome::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Parameters;
    use crate::matrix::{GROUPS, conditions};

    #[test]
    fn stall_and_slow_intervals() {
        // 1000 bytes a millisecond, none from 250 to 330 ms.
        let bytes = |ms: u64| 1000 * (ms.min(250) + ms.saturating_sub(330));
        let delivered: Vec<u64> = (0..=1000).map(bytes).collect();
        let outcome = summarise(&delivered);
        assert!((outcome.stall_ms - 80.0).abs() < 1e-9);
        assert!((outcome.goodput_p5_mbps - 8.0 * 0.5).abs() < 1e-9, "200 to 300 ms");
    }

    #[test]
    fn a_cell_is_reproducible_and_depends_on_its_scheduler() {
        let mut condition = Condition::new(Parameters::plain("test"), 4.0);
        condition.time = Duration::from_millis(500);
        let run = |kind| measure(&condition, kind, Rules::Published, 1).unwrap();
        let once = run(SchedulerKind::JustInTime);
        assert_eq!(once, run(SchedulerKind::JustInTime));
        assert!(once.goodput_mbps > 50.0, "{once:?}");
        let redundant = run(SchedulerKind::Redundant);
        assert!(redundant.goodput_mbps < 35.0, "one path's worth: {redundant:?}");
        assert!(redundant.redundant_share > 0.4, "{redundant:?}");
    }

    #[test]
    fn every_scheduler_has_paced_sockets_in_every_condition() {
        for condition in GROUPS.iter().flat_map(|group| conditions(group, &[])) {
            let rtts = condition.links.iter().map(|link| link.delay * 2);
            assert!(rtts.min() >= Some(Duration::from_millis(1)), "{:?}", condition.parameters);
            for kind in SchedulerKind::ALL {
                assert!(scenario(&condition, kind, Rules::Published, 1).paced, "{kind:?}");
            }
        }
    }

    #[test]
    fn rules_are_of_copies_and_commit_limits_only() {
        let kinds = [SchedulerKind::JustInTime, SchedulerKind::TwoEnded, SchedulerKind::Blest];
        for kind in kinds {
            let [own, product, bare] =
                [Rules::Published, Rules::Product, Rules::Bare].map(|rules| config(kind, rules, 0));
            assert_eq!(product.redundancy, Config::default().redundancy);
            assert_eq!(bare.redundancy, Redundancy::Suspect, "{kind:?}");
            let like = Config { commit: own.commit, redundancy: own.redundancy, ..product.clone() };
            assert_eq!(like, own);
            let like =
                Config { commit: bare.commit, redundancy: bare.redundancy, ..product.clone() };
            assert_eq!(like, bare);
            let published = kind == SchedulerKind::Blest;
            assert_eq!(own == bare, published, "{kind:?}");
            let lrf = Config::default().with_scheduler(SchedulerKind::LowestRttFirst);
            assert_eq!(Config { scheduler: kind, ..lrf }, bare, "what the published ones have");
            let [uncopied, unlimited] =
                [Rules::Uncopied, Rules::Unlimited].map(|rules| config(kind, rules, 0));
            let like = Config { redundancy: product.redundancy, ..uncopied };
            assert_eq!(like, product);
            assert_ne!(like, bare);
            let like = Config { commit: product.commit, ..unlimited };
            assert_eq!(like, product);
        }
    }

    #[test]
    fn a_buffer_bounds_both_ends() {
        for bytes in [64 << 10, 1 << 20] {
            let config = config(SchedulerKind::MinRtt, Rules::Published, bytes);
            assert_eq!(config.validate(), Ok(()));
            assert_eq!(config.max_stream_window, bytes);
        }
    }
}
