//! The status as values; their JSON form is versioned and described in `docs/schemas`.

use std::collections::HashMap;
use std::time::Duration;

use fbdt_proto::{Class, PathId, PathStats, Priority, SessionStats, StreamStats};
use serde::{Deserialize, Serialize};

use crate::tunnel::Delivery;

/// Name and version of the JSON form.
pub const STATUS_SCHEMA: &str = "sumrate.status.v1";

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// [`STATUS_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// `client` or `server`.
    pub role: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_s: f64,
    /// The proxies that it offers.
    pub proxies: ProxyReport,
    /// For a client: that it does not reach its server, if so.
    #[serde(default)]
    pub outage: Option<OutageReport>,
    /// Its sessions: at most one for a client.
    pub sessions: Vec<SessionReport>,
}

/// A server that cannot be reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutageReport {
    /// Seconds that it has lasted.
    pub since_s: f64,
    /// What the session ended with, or the last attempt failed with.
    pub last_error: String,
    /// Seconds until a new session is tried next; absent while one is being tried.
    pub next_attempt_s: Option<f64>,
}

/// Addresses of the proxies of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyReport {
    /// SOCKS5, if it runs.
    pub socks: Option<String>,
    /// HTTP CONNECT, if it runs.
    pub http: Option<String>,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// The session's id in hexadecimal, the same on both ends.
    pub id: String,
    /// Which bytes this end's paths send next.
    pub scheduler: String,
    /// What this end's paths take of a bottleneck that they share: `off` or `fair`.
    #[serde(default)]
    pub coupling: String,
    /// Stream bytes sent for the first time.
    pub sent_bytes: u64,
    /// Stream bytes sent a second time.
    pub redundant_bytes: u64,
    /// Stream bytes received, each once.
    pub received_bytes: u64,
    /// Stream bytes received a second time.
    pub duplicate_bytes: u64,
    /// Memory held for receiving.
    pub receive_memory_bytes: u64,
    /// Most bytes that ever waited for earlier ones.
    pub receive_buffer_peak_bytes: u64,
    /// Streams that this end and the peer have opened.
    pub streams_opened: (u64, u64),
    /// The paths, in order.
    pub paths: Vec<PathReport>,
    /// The open streams.
    pub streams: Vec<StreamReport>,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Its name.
    pub name: String,
    /// Address and port at this end, while it has a connection.
    pub local: Option<String>,
    /// Address and port at the other end, while it has a connection.
    pub remote: Option<String>,
    /// `active`, `suspect` or `dead`.
    pub health: String,
    /// `primary`, `backup`, or `backup2` to `backup9`.
    #[serde(default = "primary")]
    pub priority: String,
    /// `forward`, `backward` or `just-in-time`.
    pub direction: String,
    /// Why it sends no data now, or `sending`.
    pub why_idle: String,
    /// Estimated rate of the link towards the peer.
    pub rate_mbps: f64,
    /// Smoothed RTT.
    pub rtt_ms: f64,
    /// Smallest RTT.
    pub min_rtt_ms: f64,
    /// Bytes that it holds.
    pub commit_bytes: u64,
    /// Most bytes that it may hold.
    pub commit_limit_bytes: u64,
    /// The paths with which it is thought to share a bottleneck.
    #[serde(default)]
    pub shares_with: Vec<String>,
    /// Stream bytes sent for the first time.
    pub sent_bytes: u64,
    /// Stream bytes sent a second time.
    pub redundant_bytes: u64,
    /// Why those were sent.
    pub redundant: RedundantReport,
    /// Stream bytes received, each once.
    pub received_bytes: u64,
    /// Stream bytes received a second time.
    pub duplicate_bytes: u64,
    /// Share of TCP's bytes that TCP sent again.
    pub retransmitted_share: f64,
    /// Connections that it has had.
    pub subflows: u64,
    /// Times that it became suspect.
    pub suspected: u64,
}

/// Redundant bytes by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedundantReport {
    /// Their connection was lost.
    pub lost: u64,
    /// A suspect path owed them.
    pub suspect: u64,
    /// They were overdue.
    pub overdue: u64,
    /// The path had nothing else to do.
    pub idle: u64,
    /// The scheduler sends them twice by its own rule.
    pub scheduled: u64,
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// Its number in the session.
    pub id: u32,
    /// Its traffic class.
    pub class: String,
    /// Bytes that the application here wrote.
    pub written_bytes: u64,
    /// Bytes of those that the peer has in order.
    pub acknowledged_bytes: u64,
    /// Bytes received in order.
    pub received_bytes: u64,
    /// Memory held for receiving.
    pub receive_memory_bytes: u64,
    /// Most bytes that ever waited for earlier ones.
    pub receive_buffer_peak_bytes: u64,
    /// Time from a byte's arrival to its delivery.
    pub in_order_delay_ms: DelayReport,
    /// Longest time between two deliveries.
    pub longest_stall_ms: f64,
    /// Open transmission windows.
    pub open_windows: u64,
}

/// A distribution of delays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayReport {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

/// Addresses of a path's connection: at this end, at the other end.
pub(crate) type Endpoints = HashMap<String, (Option<String>, Option<String>)>;

impl SessionReport {
    /// The report of a session. `endpoints` are by path name.
    pub(crate) fn new(id: [u8; 16], mut stats: SessionStats, mut endpoints: Endpoints) -> Self {
        // In the order in which the user named them, not in which they came up.
        stats.paths.sort_by_key(|path| path.id);
        let names: HashMap<PathId, String> =
            stats.paths.iter().map(|path| (path.id, path.name.clone())).collect();
        let path = |path: PathStats| {
            let (local, remote) = endpoints.remove(&path.name).unwrap_or_default();
            let shares = path.shares_with.iter().filter_map(|id| names.get(id)).cloned().collect();
            PathReport::new(path, local, remote, shares)
        };
        Self {
            id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
            scheduler: stats.scheduler.to_owned(),
            coupling: stats.coupling.to_owned(),
            sent_bytes: stats.new_bytes,
            redundant_bytes: stats.redundant_bytes,
            received_bytes: stats.received_bytes,
            duplicate_bytes: stats.duplicate_bytes,
            receive_memory_bytes: stats.receive_memory,
            receive_buffer_peak_bytes: stats.receive_buffer_peak,
            streams_opened: stats.opened,
            paths: stats.paths.into_iter().map(path).collect(),
            streams: stats.streams.iter().map(StreamReport::from).collect(),
        }
    }
}

impl PathReport {
    fn new(
        stats: PathStats,
        local: Option<String>,
        remote: Option<String>,
        shares_with: Vec<String>,
    ) -> Self {
        Self {
            redundant_bytes: stats.redundant(),
            local,
            remote,
            health: stats.health.name().to_owned(),
            priority: stats.priority.name().to_owned(),
            direction: stats.direction.name().to_owned(),
            why_idle: stats.why_idle.describe().to_owned(),
            rate_mbps: finite(stats.rate * 8e-6),
            rtt_ms: milliseconds(stats.srtt),
            min_rtt_ms: milliseconds(stats.min_rtt),
            commit_bytes: stats.commit,
            commit_limit_bytes: stats.commit_limit,
            shares_with,
            sent_bytes: stats.new_bytes,
            redundant: RedundantReport {
                lost: stats.resent_lost,
                suspect: stats.copied_suspect,
                overdue: stats.copied_overdue,
                idle: stats.copied_idle,
                scheduled: stats.copied_scheduled,
            },
            received_bytes: stats.received.saturating_sub(stats.duplicate),
            duplicate_bytes: stats.duplicate,
            retransmitted_share: finite(stats.retransmitted_share),
            subflows: stats.subflows,
            suspected: stats.suspected,
            name: stats.name,
        }
    }
}

impl From<&StreamStats> for StreamReport {
    fn from(stats: &StreamStats) -> Self {
        let [p50, p99, max] = stats.in_order_delay.map(milliseconds);
        Self {
            id: stats.id.0,
            class: class_name(stats.class).to_owned(),
            written_bytes: stats.written,
            acknowledged_bytes: stats.acknowledged,
            received_bytes: stats.received,
            receive_memory_bytes: stats.receive_memory,
            receive_buffer_peak_bytes: stats.receive_buffer_peak,
            in_order_delay_ms: DelayReport { p50, p99, max },
            longest_stall_ms: milliseconds(stats.longest_stall),
            open_windows: stats.open_windows as u64,
        }
    }
}

impl From<&StreamStats> for Delivery {
    fn from(stats: &StreamStats) -> Self {
        let [p50_ms, p99_ms, max_ms] = stats.in_order_delay.map(milliseconds);
        Self { p50_ms, p99_ms, max_ms, buffer_peak: stats.receive_buffer_peak }
    }
}

/// What a process says of a path that does not know priorities.
fn primary() -> String {
    Priority::PRIMARY.name().to_owned()
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Conversational => "conversational",
        Class::Interactive => "interactive",
        Class::Streaming => "streaming",
        Class::Background => "background",
    }
}

/// JSON has no infinity.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
