//! What `serve` and `up` print with `--json`: one event a line.

use fbdt::Session;
use serde::{Deserialize, Serialize};

use crate::private_text::PrivateText;

/// Name and version of the events of `serve`.
pub const SERVE_SCHEMA: &str = "sumrate.serve.v1";
/// Name and version of the events of `up`.
pub const UP_SCHEMA: &str = "sumrate.up.v1";

/// A line of `serve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServeLine {
    /// [`SERVE_SCHEMA`].
    pub schema: String,
    /// What happened.
    #[serde(flatten)]
    pub event: ServeEvent,
}

/// What happens to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ServeEvent {
    /// Clients are accepted.
    Listening {
        /// Version of the program.
        version: String,
        /// The join link, with its secret.
        link: PrivateText,
        /// Addresses listened on.
        listen: Vec<String>,
        /// Socket of `sumrate status`.
        status_socket: Option<String>,
        /// URL of the metrics, if they are served.
        #[serde(default)]
        metrics: Option<String>,
        /// URL of the status page with its token, if it is served.
        #[serde(default)]
        web: Option<PrivateText>,
    },
    /// A client opened a session.
    SessionOpened {
        /// The session's id.
        session: String,
        /// The client's credential.
        credential: Option<String>,
    },
    /// A session is over.
    SessionClosed {
        /// The session's id.
        session: String,
        /// Why.
        reason: String,
    },
    /// The server stops.
    Stopped,
}

impl ServeEvent {
    /// The event as a line.
    pub fn into_line(self) -> ServeLine {
        ServeLine { schema: SERVE_SCHEMA.to_owned(), event: self }
    }
}

/// A line of `up`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpLine {
    /// [`UP_SCHEMA`].
    pub schema: String,
    /// What happened.
    #[serde(flatten)]
    pub event: UpEvent,
}

/// What happens to a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum UpEvent {
    /// The proxies serve.
    Ready {
        /// Version of the program.
        version: String,
        /// Address of the SOCKS5 proxy.
        socks: Option<String>,
        /// Address of the HTTP CONNECT proxy.
        http: Option<String>,
        /// Socket of `sumrate status`.
        status_socket: Option<String>,
        /// URL of the metrics, if they are served.
        #[serde(default)]
        metrics: Option<String>,
        /// URL of the status page with its token, if it is served.
        #[serde(default)]
        web: Option<PrivateText>,
        /// The session's id; absent where every path has used up its quota.
        session: Option<String>,
        /// The paths that are up or coming up.
        paths: Vec<PathSummary>,
    },
    /// The session is over; a new one is being opened.
    SessionLost {
        /// The session's id.
        session: String,
        /// Why.
        reason: String,
    },
    /// There is a session again.
    SessionRestored {
        /// The session's id.
        session: String,
        /// The paths that are up or coming up.
        paths: Vec<PathSummary>,
    },
    /// The client stops.
    Stopped,
}

/// A path in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSummary {
    /// Its name.
    pub name: String,
    /// Address and port at this end.
    pub local: Option<String>,
    /// Address and port at the server.
    pub remote: Option<String>,
    /// `active`, `suspect` or `dead`.
    pub health: String,
}

impl UpEvent {
    /// The event as a line.
    pub fn into_line(self) -> UpLine {
        UpLine { schema: UP_SCHEMA.to_owned(), event: self }
    }
}

/// The session's paths for an event.
pub(super) fn path_summaries(session: &Session) -> Vec<PathSummary> {
    let text = |address: Option<std::net::SocketAddr>| address.map(|address| address.to_string());
    let summary = |path: fbdt::PathInfo| PathSummary {
        name: path.name,
        local: text(path.local),
        remote: text(path.remote),
        health: path.health.name().to_owned(),
    };
    session.paths().into_iter().map(summary).collect()
}

/// The session's id in hexadecimal.
pub(super) fn session_id(session: &Session) -> String {
    session.id().iter().map(|byte| format!("{byte:02x}")).collect()
}
