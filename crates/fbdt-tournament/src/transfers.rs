//! A cell of short transfers, one after the other.

use std::time::Duration;

use fbdt_proto::{Class, SchedulerKind};
use fbdt_sim::Simulation;

use crate::condition::Condition;
use crate::measure::{Outcome, Rules, redundant_share, simulation};

/// How many are made; the windows that the first ones leave are what the others begin with.
const TRANSFERS: usize = 20;
/// Time between one's end and the next one's beginning: shorter than a kernel's retransmission
/// timeout, after which it would forget an idle connection's window.
const PAUSE: Duration = Duration::from_millis(100);
/// One that takes longer has not arrived.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one transfer was like.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    time: Duration,
    stall: Duration,
    /// Median and 99th percentile.
    in_order_delay: [Duration; 2],
    reorder_peak: u64,
}

/// Runs the cell; the server sends each transfer on a stream of its own.
pub(crate) fn measure(
    condition: &Condition,
    kind: SchedulerKind,
    rules: Rules,
    seed: u64,
) -> Result<Outcome, String> {
    let mut simulation = simulation(condition, kind, rules, seed)?;
    simulation.run(condition.warmup).map_err(|e| e.to_string())?;
    let bytes = condition.parameters.transfer_bytes;
    let mut made = Vec::with_capacity(TRANSFERS);
    for _ in 0..TRANSFERS {
        made.push(transfer(&mut simulation, bytes)?);
        simulation.run(PAUSE).map_err(|e| e.to_string())?;
    }
    let [_, server] = simulation.stats();
    Ok(Outcome { redundant_share: redundant_share(&server), ..summarise(bytes, &made) })
}

fn transfer(simulation: &mut Simulation, bytes: u64) -> Result<Transfer, String> {
    let stream = simulation.open(false, Class::Interactive).map_err(|e| e.to_string())?;
    let begun = simulation.elapsed();
    let before = simulation.delivered()[0];
    simulation.write(false, stream, bytes);
    let (mut delivered, mut since, mut stall) = (before, begun, Duration::ZERO);
    while delivered < before + bytes {
        if simulation.elapsed() > begun + PATIENCE {
            return Err(format!("a transfer of {bytes} bytes took more than {PATIENCE:?}"));
        }
        simulation.run_one(PAUSE).map_err(|e| e.to_string())?;
        let now = simulation.delivered()[0];
        if now > delivered {
            stall = stall.max(simulation.elapsed() - since);
            (delivered, since) = (now, simulation.elapsed());
        }
    }
    let [client, _] = simulation.stats();
    let own = client.streams.iter().find(|s| s.id == stream).ok_or("the stream is gone")?;
    let transfer = Transfer {
        time: simulation.elapsed() - begun,
        stall,
        in_order_delay: [own.in_order_delay[0], own.in_order_delay[1]],
        reorder_peak: own.receive_buffer_peak,
    };
    simulation.finish(false, stream);
    simulation.finish(true, stream);
    Ok(transfer)
}

fn summarise(bytes: u64, made: &[Transfer]) -> Outcome {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let mbps = |time: Duration| bytes as f64 * 8e-6 / time.as_secs_f64().max(1e-9);
    let total: Duration = made.iter().map(|t| t.time).sum();
    let longest = made.iter().map(|t| t.time).max().unwrap_or_default();
    let mut medians: Vec<f64> = made.iter().map(|t| ms(t.in_order_delay[0])).collect();
    medians.sort_by(f64::total_cmp);
    Outcome {
        goodput_mbps: mbps(total / u32::try_from(made.len().max(1)).unwrap_or(u32::MAX)),
        goodput_p5_mbps: mbps(longest),
        stall_ms: made.iter().map(|t| ms(t.stall)).fold(0.0, f64::max),
        in_order_p50_ms: medians.get(medians.len() / 2).copied().unwrap_or_default(),
        in_order_p99_ms: made.iter().map(|t| ms(t.in_order_delay[1])).fold(0.0, f64::max),
        reorder_peak_bytes: made.iter().map(|t| t.reorder_peak).max().unwrap_or_default(),
        ..Outcome::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::{Parameters, Side};

    #[test]
    fn goodput_is_of_all_transfers_and_waits_are_the_longest() {
        let made = |time, stall, delay| Transfer {
            time: Duration::from_millis(time),
            stall: Duration::from_millis(stall),
            in_order_delay: [Duration::from_millis(delay), Duration::from_millis(2 * delay)],
            reorder_peak: 1000 * delay,
        };
        let outcome = summarise(100_000, &[made(10, 4, 1), made(20, 3, 2), made(30, 9, 0)]);
        assert!((outcome.goodput_mbps - 40.0).abs() < 1e-9, "300 KB in 60 ms");
        assert!((outcome.goodput_p5_mbps - 0.8 / 0.03).abs() < 1e-9);
        assert!((outcome.stall_ms - 9.0).abs() < 1e-9);
        assert!((outcome.in_order_p50_ms - 1.0).abs() < 1e-9);
        assert!((outcome.in_order_p99_ms - 4.0).abs() < 1e-9);
        assert_eq!(outcome.reorder_peak_bytes, 2000);
    }

    #[test]
    fn a_short_transfer_takes_no_longer_than_over_the_better_path_alone() {
        let parameters = Parameters {
            rate_ratio: 3.0,
            rtt_ratio: 10.0,
            late: Side::Slow,
            transfer_bytes: 10_000,
            ..Parameters::plain("test")
        };
        let condition = Condition::new(parameters, 4.0);
        let run = |condition: &Condition, kind| measure(condition, kind, Rules::Published, 1);
        let alone = run(&condition.alone(0), SchedulerKind::LowestRttFirst).unwrap();
        let own = run(&condition, SchedulerKind::JustInTime).unwrap();
        assert!(alone.goodput_mbps > 5.0, "{alone:?}");
        assert!(own.goodput_mbps > 0.95 * alone.goodput_mbps, "{own:?} {alone:?}");
        let spread = run(&condition, SchedulerKind::RoundRobin).unwrap();
        assert!(spread.goodput_mbps < 0.7 * own.goodput_mbps, "{spread:?} {own:?}");
    }
}
