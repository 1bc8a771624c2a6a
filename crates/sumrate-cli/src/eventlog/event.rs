//! The lines: a header, then one event each with its time, its name and what it says.

use serde::{Deserialize, Serialize};

/// Name and version of the file's form.
pub const EVENT_LOG_SCHEMA: &str = "sumrate.event-log.v1";

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`EVENT_LOG_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// `client` or `server`.
    pub role: String,
    /// Process id.
    pub pid: u32,
    /// Unix time of the events' time 0, in seconds.
    pub reference_time_s: f64,
}

/// Every other line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventLine {
    /// Seconds since the process started.
    pub time_s: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: LogEvent,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", content = "data")]
pub enum LogEvent {
    /// A session is there.
    #[serde(rename = "session:opened")]
    SessionOpened {
        /// Its id.
        session: String,
        /// Which bytes its paths send next.
        scheduler: String,
    },
    /// A session is over.
    #[serde(rename = "session:closed")]
    SessionClosed {
        /// Its id.
        session: String,
    },
    /// A path is new, or is in another state.
    #[serde(rename = "path:health")]
    PathHealth {
        /// The session's id.
        session: String,
        /// The path.
        path: String,
        /// `active`, `suspect` or `dead`.
        health: String,
        /// What it was; absent for a new path.
        before: Option<String>,
    },
    /// A path is new, or sends from another end of what is sent.
    #[serde(rename = "path:direction")]
    PathDirection {
        /// The session's id.
        session: String,
        /// The path.
        path: String,
        /// `forward`, `backward`, or how else its scheduler has it send.
        direction: String,
    },
    /// A path is to be used otherwise.
    #[serde(rename = "path:policy")]
    PathPolicy {
        /// The session's id.
        session: String,
        /// The path.
        path: String,
        /// `primary`, or a backup.
        priority: String,
        /// Its share beside others.
        weight: Option<u8>,
        /// Most that is sent on it.
        rate_cap_mbps: Option<f64>,
        /// Whether its bytes cost money.
        metered: bool,
        /// Classes that it never carries.
        never: Vec<String>,
    },
    /// What a path did since the line before of that path; none while nothing moves.
    #[serde(rename = "path:metrics")]
    PathMetrics {
        /// The session's id.
        session: String,
        /// The path.
        path: String,
        /// What this end sent, copies included.
        sent_mbps: f64,
        /// What this end received.
        received_mbps: f64,
        /// Of what it sent, copies.
        redundant_mbps: f64,
        /// Estimated rate of the link; 0 until it was measured.
        rate_mbps: f64,
        /// Smoothed RTT.
        rtt_ms: f64,
        /// Bytes that it holds.
        commit_bytes: u64,
        /// Most that it may hold.
        commit_limit_bytes: u64,
        /// Why it sends nothing now, in a word.
        why: String,
    },
    /// A stream is there.
    #[serde(rename = "stream:opened")]
    StreamOpened {
        /// The session's id.
        session: String,
        /// Its number.
        stream: u32,
        /// Its class.
        class: String,
    },
    /// A stream is over.
    #[serde(rename = "stream:closed")]
    StreamClosed {
        /// The session's id.
        session: String,
        /// Its number.
        stream: u32,
    },
    /// The server is not reached.
    #[serde(rename = "server:lost")]
    ServerLost {
        /// Why.
        error: String,
    },
    /// It is reached again.
    #[serde(rename = "server:found")]
    ServerFound {},
}
