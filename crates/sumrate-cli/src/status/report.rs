//! The status as values; their JSON form is versioned and described in `docs/schemas`.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use fbdt_proto::{
    Cell, ClassStats, Direction, MessageStats, PathId, PathPolicy, PathStats, Priority,
    SessionStats, StreamStats, WhyIdle, WindowPicture,
};
use serde::{Deserialize, Serialize};

use super::far::FarPathReport;
use super::headline::{HeadlineReport, StateReport};
use super::process::{
    AttemptsReport, CaptureReport, LeftOutReport, OutageReport, ProxyReport, ReloadReport,
    ServerReport, StoppingReport, UdpReport,
};
use super::quota::QuotaReport;
use super::rate;
use super::trouble::PathErrorReport;
use crate::refusals::RefusalsReport;
use crate::tunnel::Delivery;

/// Name and version of the JSON form.
pub const STATUS_SCHEMA: &str = "sumrate.status.v1";

/// One process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// How it works, in a sentence; absent in earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<HeadlineReport>,
    /// Rates of all paths together, as a mean over the last two seconds.
    #[serde(default)]
    pub rates: RatesReport,
    /// Addresses on which a server accepts clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<String>,
    /// The proxies that it offers.
    pub proxies: ProxyReport,
    /// For a client: what it takes of programs that know nothing of it, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureReport>,
    /// What UDP flows carry; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpReport>,
    /// For a server: connections that are being made for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<AttemptsReport>,
    /// Destinations that were refused; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<RefusalsReport>,
    /// That it stops, once it was asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StoppingReport>,
    /// For a client: that it does not reach its server, if so.
    #[serde(default)]
    pub outage: Option<OutageReport>,
    /// For a client with several servers: all of them, the preferred one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerReport>,
    /// For a client without named paths: interfaces that are up but no paths, because no route to the
    /// server leads through them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrouted_interfaces: Vec<String>,
    /// For a client without named paths: interfaces that are up but no paths, for whatever reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutReport>,
    /// What became of the last reload; absent in versions that cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload: Option<ReloadReport>,
    /// For a client that has no session: its paths, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_paths: Vec<PathReport>,
    /// Its sessions; of a client the newest first, then those that a reload has replaced and that still
    /// carry streams.
    pub sessions: Vec<SessionReport>,
}

/// Rates of streams at this end, copies not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RatesReport {
    /// Received.
    pub down_mbps: f64,
    /// Sent.
    pub up_mbps: f64,
}

/// One session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// The session's id in hexadecimal, the same on both ends.
    pub id: String,
    /// At a server, what the operator calls the credential of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// At a client whose server says so: the address families in which it reaches the Internet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit_families: Vec<String>,
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
    /// What each traffic class has carried and cost; those that carried something.
    #[serde(default)]
    pub classes: Vec<ClassReport>,
    /// Messages of all streams so far.
    #[serde(default)]
    pub messages: MessageReport,
    /// Streams that this end and the peer have opened.
    pub streams_opened: (u64, u64),
    /// The paths, in order.
    pub paths: Vec<PathReport>,
    /// The open streams.
    pub streams: Vec<StreamReport>,
    /// The windows that have most under way, of a few streams.
    #[serde(default)]
    pub windows: Vec<WindowReport>,
}

/// A window as it closes, in up to 64 equal parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowReport {
    /// The stream.
    pub stream: u32,
    /// Whether this end sends it.
    pub sending: bool,
    /// Its first byte: the lowest that has not arrived.
    pub from: u64,
    /// The byte behind its last.
    pub to: u64,
    /// A character a part: a letter for the path that carries it (`A` is the session's first), `.` for
    /// what no path was given, `=` for what has arrived, `-` for what has not, at the receiving end.
    pub cells: String,
}

/// One traffic class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassReport {
    /// `conversational`, `interactive`, `streaming` or `background`.
    pub class: String,
    /// Streams of it that are open now.
    pub streams: u64,
    /// Bytes sent for the first time, of streams and messages.
    pub sent_bytes: u64,
    /// Bytes sent a second time.
    pub redundant_bytes: u64,
    /// Of those, copies sent by choice: the class's budget bounds them.
    pub chosen_bytes: u64,
    /// Of those, bytes whose path was lost or suspect, or for which a full window waited.
    pub repaired_bytes: u64,
    /// Of those, messages that the program wants sent twice.
    #[serde(default)]
    pub asked_bytes: u64,
    /// Bytes received, each once, on streams that are of this class here: the other end may send them
    /// as another.
    pub received_bytes: u64,
    /// Bytes received a second time.
    pub duplicate_bytes: u64,
}

impl From<&ClassStats> for ClassReport {
    fn from(stats: &ClassStats) -> Self {
        Self {
            class: stats.class.name().to_owned(),
            streams: stats.streams,
            sent_bytes: stats.new_bytes,
            redundant_bytes: stats.redundant_bytes(),
            chosen_bytes: stats.chosen_bytes,
            repaired_bytes: stats.repaired_bytes,
            asked_bytes: stats.asked_bytes,
            received_bytes: stats.received_bytes,
            duplicate_bytes: stats.duplicate_bytes,
        }
    }
}

/// What became of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageReport {
    /// Given to a path, each once.
    pub sent: u64,
    /// Acknowledged by the other end.
    pub acknowledged: u64,
    /// Dropped because their time was over, or their stream.
    pub dropped: u64,
    /// Received, each once.
    pub received: u64,
    /// Received a second time.
    pub duplicate: u64,
}

impl From<MessageStats> for MessageReport {
    fn from(stats: MessageStats) -> Self {
        let MessageStats { sent, acknowledged, dropped, received, duplicate } = stats;
        Self { sent, acknowledged, dropped, received, duplicate }
    }
}

/// One path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Its name.
    pub name: String,
    /// Address and port at this end, while it has a connection.
    pub local: Option<String>,
    /// Address and port at the other end, while it has a connection.
    pub remote: Option<String>,
    /// `active`, `suspect` or `dead`.
    pub health: String,
    /// How it works, in a few words; absent in earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateReport>,
    /// What went wrong last, while it is not active and something is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<PathErrorReport>,
    /// `primary`, `backup`, or `backup2` to `backup9`.
    #[serde(default = "primary")]
    pub priority: String,
    /// `forward`, `backward` or `just-in-time`.
    pub direction: String,
    /// Why it sends no data now, or `sending`.
    pub why_idle: String,
    /// The same in one word, as in `waited_s`, or `quota`.
    #[serde(default)]
    pub why: String,
    /// For how long it was so, in seconds by reason, up to the last change.
    #[serde(default)]
    pub waited_s: BTreeMap<String, f64>,
    /// Its share beside other paths with a weight.
    #[serde(default)]
    pub weight: Option<u8>,
    /// Most that this end sends on it.
    #[serde(default)]
    pub rate_cap_mbps: Option<f64>,
    /// Whether its bytes cost money.
    #[serde(default)]
    pub metered: bool,
    /// Classes that it never carries.
    #[serde(default)]
    pub never: Vec<String>,
    /// What it has used, where that is counted.
    #[serde(default)]
    pub quota: Option<QuotaReport>,
    /// Stream bytes received, each once, as a mean over the last two seconds.
    #[serde(default)]
    pub down_mbps: f64,
    /// Stream bytes sent for the first time, as a mean over the last two seconds.
    #[serde(default)]
    pub up_mbps: f64,
    /// Bytes that TCP has carried, both directions together: at a client since the process started,
    /// at a server since the session began.
    #[serde(default)]
    pub carried_bytes: u64,
    /// Estimated rate of the link towards the peer; absent until the path has sent enough to measure it.
    #[serde(default, with = "rate")]
    pub rate_mbps: Option<f64>,
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
    /// How the other end sends on it, at a client whose server says so; absent while nobody looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<FarPathReport>,
}

/// Redundant bytes by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Its traffic class here: that of what this end sends.
    pub class: String,
    /// That class is guessed from how the application behaves: no rule names one.
    #[serde(default)]
    pub class_guessed: bool,
    /// That of what the other end sends, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_class: Option<String>,
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

/// What the transport knows of a path beside its statistics.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Address at this end.
    pub(crate) local: Option<String>,
    /// Address at the other end.
    pub(crate) remote: Option<String>,
    /// What went wrong last.
    pub(crate) last_error: Option<PathErrorReport>,
}

impl SessionReport {
    /// What tells it from others.
    pub(crate) fn label(&self) -> String {
        super::label(&self.id, self.credential.as_deref())
    }

    /// At a server: the name of the client's credential, or the first digits of the session's id.
    pub(crate) fn client_name(&self) -> String {
        let digits = self.id.get(..8).unwrap_or(&self.id);
        self.credential.clone().unwrap_or_else(|| digits.to_owned())
    }

    /// The report of a session. What was `seen` is by path name.
    pub(crate) fn new(
        id: [u8; 16],
        mut stats: SessionStats,
        mut seen: HashMap<String, Seen>,
    ) -> Self {
        // In the order in which the user named them, not in which they came up.
        stats.paths.sort_by_key(|path| path.id);
        let order: Vec<PathId> = stats.paths.iter().map(|path| path.id).collect();
        let names: HashMap<PathId, String> =
            stats.paths.iter().map(|path| (path.id, path.name.clone())).collect();
        let path = |path: PathStats| {
            let seen = seen.remove(&path.name).unwrap_or_default();
            let shares = path.shares_with.iter().filter_map(|id| names.get(id)).cloned().collect();
            PathReport::new(path, seen, shares)
        };
        let mut paths: Vec<PathReport> = stats.paths.into_iter().map(path).collect();
        // Those that have never been up, behind the others.
        let mut others: Vec<(String, Seen)> = seen.into_iter().collect();
        others.sort_by(|a, b| a.0.cmp(&b.0));
        let direction = paths.first().map(|path| path.direction.clone());
        let direction = direction.unwrap_or_else(|| Direction::JustInTime.name().to_owned());
        paths.extend(others.into_iter().map(|(name, seen)| PathReport {
            last_error: seen.last_error,
            ..PathReport::never_up(name, &direction)
        }));
        Self {
            id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
            credential: None,
            exit_families: Vec::new(),
            scheduler: stats.scheduler.to_owned(),
            coupling: stats.coupling.to_owned(),
            sent_bytes: stats.new_bytes,
            redundant_bytes: stats.redundant_bytes,
            received_bytes: stats.received_bytes,
            duplicate_bytes: stats.duplicate_bytes,
            receive_memory_bytes: stats.receive_memory,
            receive_buffer_peak_bytes: stats.receive_buffer_peak,
            classes: stats
                .classes
                .iter()
                .filter(|class| class.streams + class.new_bytes + class.received_bytes > 0)
                .map(ClassReport::from)
                .collect(),
            messages: stats.messages.into(),
            streams_opened: stats.opened,
            paths,
            streams: stats.streams.iter().map(StreamReport::from).collect(),
            windows: stats.windows.iter().map(|window| WindowReport::new(window, &order)).collect(),
        }
    }
}

impl WindowReport {
    fn new(picture: &WindowPicture, order: &[PathId]) -> Self {
        let letter = |cell: &Cell| match cell {
            Cell::Unsent => '.',
            Cell::Arrived => '=',
            Cell::Missing => '-',
            Cell::Carried(path) => {
                let position = order.iter().position(|known| known == path).unwrap_or(0);
                char::from(b'A' + (position % 26) as u8)
            }
        };
        Self {
            stream: picture.stream.0,
            sending: picture.sending,
            from: picture.range.start,
            to: picture.range.end,
            cells: picture.cells.iter().map(letter).collect(),
        }
    }
}

impl PathReport {
    /// Enters how the path is to be used.
    pub(crate) fn used_as(&mut self, policy: &PathPolicy) {
        policy.priority.name().clone_into(&mut self.priority);
        self.weight = policy.weight.map(fbdt_proto::Weight::get);
        self.rate_cap_mbps = policy.rate_cap.map(|cap| f64::from(cap.kilobits()) / 1e3);
        self.metered = policy.metered;
        self.never = policy.never.iter().map(|class| class.name().to_owned()).collect();
    }

    pub(super) fn new(stats: PathStats, seen: Seen, shares_with: Vec<String>) -> Self {
        let policy = stats.policy;
        let mut report = Self {
            redundant_bytes: stats.redundant(),
            local: seen.local,
            remote: seen.remote,
            last_error: seen.last_error,
            health: stats.health.name().to_owned(),
            state: None,
            priority: String::new(),
            direction: stats.direction.name().to_owned(),
            why_idle: stats.why_idle.describe().to_owned(),
            why: stats.why_idle.name().to_owned(),
            waited_s: WhyIdle::ALL
                .into_iter()
                .zip(stats.waited)
                .filter(|(_, time)| !time.is_zero())
                .map(|(why, time)| (why.name().to_owned(), time.as_secs_f64()))
                .collect(),
            weight: None,
            rate_cap_mbps: None,
            metered: false,
            never: Vec::new(),
            quota: None,
            down_mbps: 0.0,
            up_mbps: 0.0,
            carried_bytes: 0,
            rate_mbps: rate::of(&stats),
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
            far: None,
            name: stats.name,
        };
        report.used_as(&policy);
        report
    }
}

impl StreamReport {
    /// The class, and whether it is guessed.
    pub fn class_words(&self) -> String {
        let guessed = if self.class_guessed { " (auto)" } else { "" };
        format!("{}{guessed}", self.class)
    }
}

impl From<&StreamStats> for StreamReport {
    fn from(stats: &StreamStats) -> Self {
        let [p50, p99, max] = stats.in_order_delay.map(milliseconds);
        Self {
            id: stats.id.0,
            class: stats.class.name().to_owned(),
            class_guessed: stats.class_guessed,
            far_class: None,
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

/// JSON has no infinity.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
