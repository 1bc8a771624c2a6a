//! Watches one end's session and this process's CPU time during the counted time.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use super::run::Run;
use crate::status::{PathReport, RedundantReport, SessionReport};
use crate::tunnel::ReportSource;

/// Time between two samples of RTT.
const SAMPLE: Duration = Duration::from_millis(50);

/// What one end saw during the counted time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// User and system time of this process, in seconds.
    pub cpu_s: f64,
    /// Of that, system time, in seconds; an end of an older release says none.
    #[serde(default)]
    pub kernel_cpu_s: f64,
    /// Each path.
    pub paths: Vec<PathObservation>,
    /// Most bytes of the session that ever waited for earlier ones.
    pub receive_buffer_peak_bytes: u64,
    /// Scheduler of the session's sender at this end.
    pub scheduler: String,
}

/// What one end saw of a path during the counted time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathObservation {
    /// The path's name.
    pub name: String,
    /// Bytes received first on this path.
    pub received_bytes: u64,
    /// Bytes sent a second time on it.
    pub redundant_bytes: u64,
    /// Why those were sent.
    pub redundant: RedundantReport,
    /// Median of the smoothed RTT.
    pub rtt_ms: f64,
    /// Share of TCP's bytes that TCP sent again, since the path came up.
    pub retransmitted_share: f64,
    /// How it sends.
    pub direction: String,
    /// Share of the time in which it was thought to share a bottleneck with another path.
    #[serde(default)]
    pub coupled_share: f64,
    /// New connections that it got beside or after those that it had.
    #[serde(default)]
    pub redials: u64,
}

/// Observes until the counted time is over or the measurement done. `first` is the session's state
/// before the measurement, taken before any byte of it can have moved.
pub(super) async fn observe(
    run: &Run,
    source: &ReportSource,
    mut first: Option<SessionReport>,
) -> Observation {
    let begin = run.started().await + run.plan.warmup;
    tokio::select! {
        () = sleep_until(begin) => {}
        () = run.done() => {}
    }
    // Without a warm-up the first bytes count, which were there before the clock started.
    if run.plan.warmup > Duration::ZERO {
        first = source();
    }
    let cpu = Cpu::of_this_process();
    let end = run.plan.length.map(|length| begin + length);
    let mut rtts: Vec<SessionReport> = Vec::new();
    loop {
        let next = Instant::now() + SAMPLE;
        let next = end.map_or(next, |end| next.min(end));
        let over = tokio::select! {
            () = sleep_until(next) => end.is_some_and(|end| next >= end),
            () = run.done() => true,
        };
        if over {
            break;
        }
        rtts.extend(source());
    }
    summarise(first, source(), &rtts, Cpu::of_this_process().since(cpu))
}

async fn sleep_until(instant: Instant) {
    tokio::time::sleep_until(instant.into()).await;
}

fn summarise(
    first: Option<SessionReport>,
    last: Option<SessionReport>,
    samples: &[SessionReport],
    cpu: Cpu,
) -> Observation {
    let find = |report: Option<&SessionReport>, name: &str| {
        report.and_then(|report| report.paths.iter().find(|path| path.name == name)).cloned()
    };
    let path = |path: &PathReport| {
        let before = find(first.as_ref(), &path.name);
        let since = |count: fn(&PathReport) -> u64| {
            count(path).saturating_sub(before.as_ref().map_or(0, count))
        };
        let seen: Vec<PathReport> =
            samples.iter().filter_map(|sample| find(Some(sample), &path.name)).collect();
        let coupled = seen.iter().filter(|path| !path.shares_with.is_empty()).count();
        PathObservation {
            name: path.name.clone(),
            received_bytes: since(|path| path.received_bytes),
            redundant_bytes: since(|path| path.redundant_bytes),
            redundant: RedundantReport {
                lost: since(|path| path.redundant.lost),
                suspect: since(|path| path.redundant.suspect),
                overdue: since(|path| path.redundant.overdue),
                idle: since(|path| path.redundant.idle),
                scheduled: since(|path| path.redundant.scheduled),
            },
            rtt_ms: median(seen.iter().map(|p| p.rtt_ms).collect()).unwrap_or(path.rtt_ms),
            retransmitted_share: path.retransmitted_share,
            direction: path.direction.clone(),
            coupled_share: coupled as f64 / seen.len().max(1) as f64,
            redials: since(|path| path.subflows),
        }
    };
    Observation {
        cpu_s: cpu.user_s + cpu.kernel_s,
        kernel_cpu_s: cpu.kernel_s,
        paths: last.iter().flat_map(|last| &last.paths).map(path).collect(),
        receive_buffer_peak_bytes: last.as_ref().map_or(0, |last| last.receive_buffer_peak_bytes),
        scheduler: last.map(|last| last.scheduler).unwrap_or_default(),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Processor time of this process, seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    user_s: f64,
    kernel_s: f64,
}

impl Cpu {
    fn of_this_process() -> Self {
        getrusage(UsageWho::RUSAGE_SELF).map_or_else(
            |_| Self::default(),
            |usage| Self {
                user_s: usage.user_time().num_microseconds() as f64 * 1e-6,
                kernel_s: usage.system_time().num_microseconds() as f64 * 1e-6,
            },
        )
    }

    fn since(self, before: Self) -> Self {
        Self { user_s: self.user_s - before.user_s, kernel_s: self.kernel_s - before.kernel_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_cpu() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        let before = Cpu::of_this_process();
        let spent = Cpu::of_this_process().since(before);
        assert!(spent.user_s >= 0.0 && spent.kernel_s >= 0.0, "{spent:?}");
    }
}
