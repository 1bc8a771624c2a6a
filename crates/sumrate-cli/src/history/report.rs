//! The history as values; their JSON form is versioned and described in `docs/schemas`.

use serde::{Deserialize, Serialize};

/// Name and version of the JSON form.
pub const HISTORY_SCHEMA: &str = "sumrate.history.v1";

/// The last five minutes. All lists of samples have the same length; the newest sample is the last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryReport {
    /// [`HISTORY_SCHEMA`].
    pub schema: String,
    /// Seconds between the start of the process and the newest sample.
    pub uptime_s: f64,
    /// Seconds between two samples.
    pub step_s: f64,
    /// All paths together.
    pub total: TotalSeriesReport,
    /// The paths, in order. A path that is gone stays until its samples are older than five minutes.
    pub paths: Vec<PathSeriesReport>,
    /// The last events, the newest last.
    pub events: Vec<HistoryEvent>,
}

/// Rates of all paths together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TotalSeriesReport {
    /// Received by this end.
    pub down_mbps: Vec<f64>,
    /// Sent by this end.
    pub up_mbps: Vec<f64>,
}

/// Samples of one path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathSeriesReport {
    /// Its name.
    pub name: String,
    /// At a server: the client that has this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Received by this end, copies not counted.
    pub down_mbps: Vec<f64>,
    /// Sent by this end, copies not counted.
    pub up_mbps: Vec<f64>,
    /// Smoothed RTT; null while the path has no connection.
    pub rtt_ms: Vec<Option<f64>>,
}

/// How good an event is for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventLevel {
    /// Something works, or works again.
    Good,
    /// Something was changed, or does less than it could.
    Notice,
    /// Something does not work.
    Bad,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEvent {
    /// Seconds since it happened.
    pub ago_s: f64,
    /// `path-up`, `path-silent`, `path-lost`, `path-back`, `path-gone`, `quota-used-up`,
    /// `quota-free`, `path-changed`, `server-lost`, `server-back`, `client-joined` or `client-left`.
    pub event: String,
    /// How good it is.
    pub level: EventLevel,
    /// The path, for an event of one path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// At a server: the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The event for people.
    pub words: String,
}
