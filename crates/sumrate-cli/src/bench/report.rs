//! The result, and what the server contributes to it.

use serde::{Deserialize, Serialize};

use super::meter::{Received, mbps};
use super::observer::{Observation, PathObservation};
use super::run::Run;
use crate::service::BenchDirection;
use crate::status::{DelayReport, RedundantReport};

/// Name and version of the result's JSON form.
pub const BENCH_SCHEMA: &str = "sumrate.bench.v1";

/// How an end sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendingReport {
    /// Congestion control.
    pub congestion_control: String,
    /// Whether windows of paths are scaled because they share a bottleneck.
    #[serde(default)]
    pub shared_bottleneck: bool,
    /// Scheduler.
    pub scheduler: String,
    /// Window mode.
    pub window_mode: String,
    /// Redundancy rule.
    pub redundancy: String,
    /// Coupling.
    #[serde(default)]
    pub coupling: String,
    /// Size of its windows.
    pub window_bytes: WindowReport,
}

/// Bounds of a window's size; equal where it is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowReport {
    /// Smallest, in bytes.
    pub min: u64,
    /// Largest, in bytes.
    pub max: u64,
}

/// What one end knows at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// Version of the program there.
    pub version: String,
    /// How it sends.
    pub sending: SendingReport,
    /// What it saw.
    pub observation: Observation,
    /// What it received, if it was the receiver.
    pub received: Option<Received>,
    /// Worst in-order delay of the streams received.
    pub in_order_delay_ms: DelayReport,
    /// Goodput of each stream received, in no order.
    #[serde(default)]
    pub stream_goodput_mbps: Vec<f64>,
    /// First offset of a stream whose byte was wrong.
    pub damaged_at: Option<u64>,
}

impl EndReport {
    /// The report of this end.
    pub(super) fn new(
        run: &Run,
        observation: Observation,
        receiver: bool,
        sending: &SendingReport,
    ) -> Self {
        let found = run.found();
        let mut observation = observation;
        let peak = observation.receive_buffer_peak_bytes.max(found.buffer_peak);
        observation.receive_buffer_peak_bytes = peak;
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sending: sending.clone(),
            observation,
            received: receiver.then(|| run.meter.finish()),
            in_order_delay_ms: found.delay,
            stream_goodput_mbps: found.goodput_mbps,
            damaged_at: found.damaged_at,
        }
    }
}

/// The result of `sumrate bench`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// [`BENCH_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Command line, without the link's secret.
    pub command: Vec<String>,
    /// Who sent.
    pub direction: BenchDirection,
    /// Congestion control of the sender.
    pub congestion_control: String,
    /// Whether the sender scales windows of paths because they share a bottleneck.
    #[serde(default)]
    pub shared_bottleneck: bool,
    /// Scheduler of the sender.
    pub scheduler: String,
    /// Window mode of the sender.
    pub window_mode: String,
    /// Redundancy rule of the sender.
    pub redundancy: String,
    /// Coupling of the sender's paths; empty if its release knows none.
    #[serde(default)]
    pub coupling: String,
    /// Size of the sender's windows.
    pub window_bytes: WindowReport,
    /// Number of streams.
    pub streams: u16,
    /// How goodput differs from stream to stream.
    pub stream_goodput_mbps: StreamGoodput,
    /// Jain's index of the streams' goodputs: 1 if all are equal, 1 / streams if one has all.
    pub jain_index: f64,
    /// Seconds sent first and not counted.
    pub warmup_s: f64,
    /// Seconds counted.
    pub duration_s: f64,
    /// Seconds from the client's start to the last byte, with warm-up and what was under way.
    pub elapsed_s: f64,
    /// Bytes that the receiving application got, once, per time.
    pub goodput_mbps: f64,
    /// Those bytes.
    pub bytes: u64,
    /// Bytes that the sender sent a second time.
    pub redundant_bytes: u64,
    /// Whether every byte was compared with what was sent (a wrong byte fails the command).
    pub verified: bool,
    /// Each path.
    pub paths: Vec<BenchPath>,
    /// Time from a byte's arrival to its delivery, worst stream.
    pub in_order_delay_ms: DelayReport,
    /// Longest time in which the application received nothing.
    pub longest_stall_ms: f64,
    /// Most bytes that ever waited for earlier ones.
    pub receive_buffer_peak_bytes: u64,
    /// CPU time of both processes during the counted time.
    pub cpu_seconds: CpuReport,
    /// Of that, what the kernel took: TCP, copies to and from it, waking up.
    #[serde(default)]
    pub kernel_cpu_seconds: CpuReport,
    /// Goodput over time.
    pub intervals: Vec<IntervalReport>,
}

/// Goodput of single streams, over the counted time or up to the stream's last byte.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StreamGoodput {
    /// Of the slowest.
    pub min: f64,
    /// Of the one in the middle.
    pub median: f64,
    /// Of the fastest.
    pub max: f64,
}

/// One path in the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchPath {
    /// Its name.
    pub name: String,
    /// Bytes that arrived first on this path, per time.
    pub goodput_mbps: f64,
    /// Those bytes.
    pub bytes: u64,
    /// Bytes sent a second time on it.
    pub redundant_bytes: u64,
    /// Why those were sent.
    pub redundant: RedundantReport,
    /// Median of the smoothed RTT.
    pub rtt_ms: f64,
    /// Share of TCP's bytes that TCP sent again.
    pub retransmitted_share: f64,
    /// How the sender used it last.
    pub direction: String,
    /// Share of the time in which it was thought to share a bottleneck with another path.
    #[serde(default)]
    pub coupled_share: f64,
    /// New connections that it got beside or after those that it had.
    #[serde(default)]
    pub redials: u64,
}

/// CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuReport {
    /// Of this process.
    pub client: f64,
    /// Of the server's process, whatever else it did.
    pub server: f64,
}

/// Goodput of an interval; times count from the end of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IntervalReport {
    /// Start.
    pub start_s: f64,
    /// End.
    pub end_s: f64,
    /// Goodput.
    pub goodput_mbps: f64,
}

/// What the client adds.
pub(super) struct Frame {
    pub(super) command: Vec<String>,
    pub(super) direction: BenchDirection,
    pub(super) elapsed_s: f64,
}

/// Puts the two ends' reports together; `None` if the receiver's one lacks what it received.
pub(super) fn compose(
    frame: Frame,
    run: &Run,
    client: &EndReport,
    server: &EndReport,
) -> Option<BenchReport> {
    let (sender, receiver) = match frame.direction {
        BenchDirection::ClientToServer => (client, server),
        BenchDirection::ServerToClient => (server, client),
    };
    let received = receiver.received.as_ref()?;
    let paths = compose_paths(&sender.observation, &receiver.observation, received.duration_s);
    let sending = sender.sending.clone();
    let (stream_goodput_mbps, jain_index) = spread(&receiver.stream_goodput_mbps)?;
    Some(BenchReport {
        schema: BENCH_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: frame.command,
        direction: frame.direction,
        congestion_control: sending.congestion_control,
        shared_bottleneck: sending.shared_bottleneck,
        scheduler: sending.scheduler,
        window_mode: sending.window_mode,
        redundancy: sending.redundancy,
        coupling: sending.coupling,
        window_bytes: sending.window_bytes,
        streams: run.plan.streams,
        stream_goodput_mbps,
        jain_index,
        warmup_s: run.plan.warmup.as_secs_f64(),
        duration_s: received.duration_s,
        elapsed_s: frame.elapsed_s,
        goodput_mbps: mbps(received.bytes, received.duration_s),
        bytes: received.bytes,
        redundant_bytes: paths.iter().map(|path| path.redundant_bytes).sum(),
        verified: run.plan.verify,
        paths,
        in_order_delay_ms: receiver.in_order_delay_ms,
        longest_stall_ms: received.longest_stall_ms,
        receive_buffer_peak_bytes: receiver.observation.receive_buffer_peak_bytes,
        cpu_seconds: CpuReport {
            client: client.observation.cpu_s,
            server: server.observation.cpu_s,
        },
        kernel_cpu_seconds: CpuReport {
            client: client.observation.kernel_cpu_s,
            server: server.observation.kernel_cpu_s,
        },
        intervals: intervals(received),
    })
}

fn compose_paths(sender: &Observation, receiver: &Observation, seconds: f64) -> Vec<BenchPath> {
    let path = |path: &PathObservation| {
        let there = receiver.paths.iter().find(|there| there.name == path.name);
        let bytes = there.map_or(0, |there| there.received_bytes);
        BenchPath {
            name: path.name.clone(),
            goodput_mbps: mbps(bytes, seconds),
            bytes,
            redundant_bytes: path.redundant_bytes,
            redundant: path.redundant,
            rtt_ms: path.rtt_ms,
            retransmitted_share: path.retransmitted_share,
            direction: path.direction.clone(),
            coupled_share: path.coupled_share,
            redials: path.redials,
        }
    };
    sender.paths.iter().map(path).collect()
}

/// Least, median and greatest, and Jain's index; `None` without streams.
fn spread(goodputs: &[f64]) -> Option<(StreamGoodput, f64)> {
    let mut sorted = goodputs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    let (sum, squares) =
        sorted.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    // Streams that all got nothing were treated alike.
    let jain = if squares > 0.0 { sum * sum / (sorted.len() as f64 * squares) } else { 1.0 };
    // Rounding must not make it more than perfect.
    Some((StreamGoodput { min, median, max }, jain.min(1.0)))
}

fn intervals(received: &Received) -> Vec<IntervalReport> {
    let interval = |(index, bytes): (usize, &u64)| {
        let start_s = index as f64 * received.interval_s;
        let end_s = (start_s + received.interval_s).min(received.duration_s.max(start_s));
        IntervalReport { start_s, end_s, goodput_mbps: mbps(*bytes, end_s - start_s) }
    };
    received.bins.iter().enumerate().map(interval).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_of_streams() {
        assert_eq!(spread(&[]), None);
        let (goodput, jain) = spread(&[4.0, 0.0, 0.0, 0.0]).unwrap();
        assert_eq!((goodput, jain), (StreamGoodput { min: 0.0, median: 0.0, max: 4.0 }, 0.25));
        let (goodput, jain) = spread(&[2.0, 1.0, 2.0]).unwrap();
        assert_eq!(goodput, StreamGoodput { min: 1.0, median: 2.0, max: 2.0 });
        assert!((jain - 25.0 / 27.0).abs() < 1e-12);
        assert_eq!(spread(&[0.0, 0.0]).unwrap().1, 1.0);
    }

    #[test]
    fn a_short_last_interval_keeps_its_rate() {
        let received = Received {
            bytes: 1500,
            total_bytes: 1500,
            duration_s: 1.5,
            interval_s: 1.0,
            bins: vec![1000, 500],
            longest_stall_ms: 0.0,
        };
        let intervals = intervals(&received);
        assert!((intervals[0].goodput_mbps - 0.008).abs() < 1e-12);
        assert!((intervals[1].goodput_mbps - 0.008).abs() < 1e-12);
        assert!((intervals[1].end_s - 1.5).abs() < 1e-12);
    }
}
