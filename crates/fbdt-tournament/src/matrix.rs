//! The matrix of conditions.

use std::time::Duration;

use fbdt_sim::{LinkChange, LinkParameters};

use crate::condition::{Condition, Parameters, Side};
use crate::traces::TracePair;

/// The groups, in the order of the table.
pub const GROUPS: [&str; 6] = ["rate-rtt", "loss", "buffer", "outage", "short", "trace"];

/// Draws of a condition with losses, so that a single one is no result.
const LOSS_SEEDS: u64 = 5;
/// Draws of one in which only delays differ between them.
const SEEDS: u64 = 3;

/// Smallest buffer in the matrix, in bytes.
const LEAST_BUFFER: u64 = 64 << 10;

/// All conditions of a group; `traces` are for the group of that name.
#[must_use]
pub fn conditions(group: &str, traces: &[TracePair]) -> Vec<Condition> {
    let mut all = match group {
        "rate-rtt" => rates_and_rtts(),
        "loss" => losses(),
        "buffer" => buffers(),
        "outage" => outages(),
        "short" => short_transfers(),
        "trace" => traces.iter().map(trace).collect(),
        _ => Vec::new(),
    };
    for condition in &mut all {
        condition.seeds = if condition.parameters.loss > 0.0 { LOSS_SEEDS } else { SEEDS };
    }
    all
}

/// Rate ratio 1 to 30 by RTT ratio 1 to 250 (2 to 500 ms), the late path
/// being the faster or the slower one.
fn rates_and_rtts() -> Vec<Condition> {
    let mut all = Vec::new();
    for rate_ratio in [1.0, 3.0, 10.0, 30.0] {
        for rtt_ratio in [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0] {
            let sides: &[Side] = match (rate_ratio, rtt_ratio) {
                (_, 1.0) => &[Side::None],
                (1.0, _) => &[Side::Slow],
                _ => &[Side::Fast, Side::Slow],
            };
            for &late in sides {
                let plain = Parameters::plain("rate-rtt");
                all.push(Condition::new(Parameters { rate_ratio, rtt_ratio, late, ..plain }, 2.0));
            }
        }
    }
    all
}

/// Loss of 0.01 to 5 % on either path or both.
fn losses() -> Vec<Condition> {
    let mut all = Vec::new();
    for loss in [0.0001, 0.001, 0.005, 0.01, 0.02, 0.05] {
        for lossy in [Side::Fast, Side::Slow, Side::Both] {
            for rate_ratio in [1.0, 3.0, 10.0] {
                for rtt_ratio in [1.0, 10.0] {
                    if rate_ratio == 1.0 && rtt_ratio == 1.0 && lossy == Side::Slow {
                        continue;
                    }
                    let late = if rtt_ratio > 1.0 { Side::Slow } else { Side::None };
                    let plain = Parameters::plain("loss");
                    let parameters =
                        Parameters { rate_ratio, rtt_ratio, late, loss, lossy, ..plain };
                    all.push(Condition::new(parameters, 4.0));
                }
            }
        }
    }
    all
}

/// Buffers of 64 KiB to twice sum of rates x largest RTT.
fn buffers() -> Vec<Condition> {
    let mut all = Vec::new();
    for rate_ratio in [1.0, 3.0, 10.0] {
        for rtt_ratio in [1.0, 3.0, 10.0, 50.0] {
            let late = if rtt_ratio > 1.0 { Side::Slow } else { Side::None };
            let plain = Parameters::plain("buffer");
            let parameters = Parameters { rate_ratio, rtt_ratio, late, ..plain };
            let condition = Condition::new(parameters, 10.0);
            let product = condition.product();
            let mut sizes: Vec<u64> = [0.0, 0.125, 0.25, 0.5, 1.0, 2.0]
                .iter()
                .map(|factor| ((product * factor) as u64).max(LEAST_BUFFER))
                .collect();
            sizes.dedup();
            for bytes in sizes {
                let mut condition = condition.clone();
                condition.parameters.buffer_bytes = bytes;
                condition.parameters.buffer_factor = bytes as f64 / product;
                all.push(condition);
            }
        }
    }
    all
}

/// One outage of 0.1 to 3 s, or 0.3 s in every 2 s, of either path.
fn outages() -> Vec<Condition> {
    let mut all = Vec::new();
    for (outage_s, flapping) in
        [(0.1, false), (0.3, false), (1.0, false), (3.0, false), (0.3, true)]
    {
        for dark in [Side::Fast, Side::Slow] {
            for rate_ratio in [1.0, 3.0, 10.0] {
                for rtt_ratio in [1.0, 10.0] {
                    if rate_ratio == 1.0 && rtt_ratio == 1.0 && dark == Side::Slow {
                        continue;
                    }
                    let late = if rtt_ratio > 1.0 { Side::Slow } else { Side::None };
                    let parameters = Parameters {
                        rate_ratio,
                        rtt_ratio,
                        late,
                        outage_s,
                        dark,
                        flapping,
                        ..Parameters::plain("outage")
                    };
                    all.push(with_outages(Condition::new(parameters, 4.0)));
                }
            }
        }
    }
    all
}

fn with_outages(mut condition: Condition) -> Condition {
    let path = usize::from(condition.parameters.dark == Side::Slow);
    let outage = Duration::from_secs_f64(condition.parameters.outage_s);
    condition.time = condition.time.max(Duration::from_secs(6));
    let end = condition.warmup + condition.time;
    let mut at = condition.warmup + Duration::from_millis(500);
    while at < end {
        condition.changes.push((at, path, LinkChange::Blackout(true)));
        condition.changes.push((at + outage, path, LinkChange::Blackout(false)));
        if !condition.parameters.flapping {
            break;
        }
        at += Duration::from_secs(2);
    }
    condition
}

/// Transfers of 10 KB to 1 MB, one after the other, with and without losses: whoever leaves the end
/// of one to a late path waits for it.
fn short_transfers() -> Vec<Condition> {
    let mut all = Vec::new();
    for (loss, lossy) in [(0.0, Side::None), (0.01, Side::Both)] {
        for transfer_bytes in [10_000, 100_000, 1_000_000] {
            for rate_ratio in [1.0, 3.0, 10.0] {
                for rtt_ratio in [1.0, 10.0] {
                    let late = if rtt_ratio > 1.0 { Side::Slow } else { Side::None };
                    let parameters = Parameters {
                        rate_ratio,
                        rtt_ratio,
                        late,
                        loss,
                        lossy,
                        transfer_bytes,
                        ..Parameters::plain("short")
                    };
                    all.push(Condition::new(parameters, 4.0));
                }
            }
        }
    }
    all
}

fn trace(pair: &TracePair) -> Condition {
    let mean = |steps: &[(Duration, f64)]| {
        let time: f64 = steps.iter().map(|(time, _)| time.as_secs_f64()).sum();
        let bytes: f64 = steps.iter().map(|(time, rate)| time.as_secs_f64() * rate).sum();
        bytes / time.max(1e-9)
    };
    let rates = [mean(&pair.fast), mean(&pair.slow)];
    let parameters = Parameters {
        rate_ratio: rates[0] / rates[1].max(1.0),
        trace: pair.name.clone(),
        ..Parameters::plain("trace")
    };
    let links = [(&pair.fast, rates[0]), (&pair.slow, rates[1])]
        .into_iter()
        .map(|(steps, rate)| LinkParameters {
            trace: steps.clone(),
            ..LinkParameters::new(rate * 8e-6, 4.0)
        })
        .collect();
    Condition {
        links,
        warmup: Duration::from_secs(1),
        time: Duration::from_secs(16),
        ..Condition::new(parameters, 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_spans_what_it_promises() {
        let all: Vec<Condition> = GROUPS.iter().flat_map(|group| conditions(group, &[])).collect();
        let values = |read: fn(&Parameters) -> f64| {
            let list: Vec<f64> = all.iter().map(|c| read(&c.parameters)).collect();
            (list.iter().copied().fold(f64::MAX, f64::min), list.into_iter().fold(0.0, f64::max))
        };
        assert_eq!(values(|p| p.rate_ratio), (1.0, 30.0));
        assert_eq!(values(|p| p.rtt_ratio), (1.0, 250.0));
        assert_eq!(values(|p| p.loss), (0.0, 0.05));
        assert_eq!(values(|p| p.outage_s), (0.0, 3.0));
        assert!((values(|p| p.buffer_factor).1 - 2.0).abs() < 0.01);
        let smallest = all.iter().map(|c| c.parameters.buffer_bytes).filter(|b| *b > 0).min();
        assert_eq!(smallest, Some(LEAST_BUFFER));
        for condition in &all {
            let sum: f64 = condition.links.iter().map(|l| l.rate * 8e-6).sum();
            assert!((sum - crate::condition::SUM_MBPS).abs() < 1e-6);
            assert!(condition.links[0].rate >= condition.links[1].rate);
        }
        assert!(all.len() > 250, "{}", all.len());
    }

    #[test]
    fn everything_is_drawn_several_times_and_losses_more_often() {
        for condition in GROUPS.iter().flat_map(|group| conditions(group, &[])) {
            let lossy = condition.parameters.loss > 0.0;
            assert_eq!(condition.seeds, if lossy { LOSS_SEEDS } else { SEEDS }, "{condition:?}");
            assert_eq!(condition.alone(1).seeds, condition.seeds);
        }
    }

    #[test]
    fn a_flapping_path_is_dark_again_and_again_and_alone_too() {
        let all = outages();
        let flapping = all.iter().find(|c| c.parameters.flapping).unwrap();
        let dark = |c: &Condition| {
            c.changes.iter().filter(|(_, _, x)| *x == LinkChange::Blackout(true)).count()
        };
        assert_eq!(dark(flapping), 3);
        assert_eq!((dark(&flapping.alone(0)), dark(&flapping.alone(1))), (3, 0));
        assert_eq!(flapping.alone(1).links, flapping.links[1..]);
    }
}
