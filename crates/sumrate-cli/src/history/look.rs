//! The counters that one sample is made of.

use fbdt::{Health, PathStats, Session};

use crate::policy::Withheld;

/// All sessions of a daemon at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// The sessions; the newest first.
    pub sessions: Vec<SessionLook>,
    /// For a client: why nothing reaches its server, if so.
    pub outage: Option<OutageLook>,
}

/// Why nothing reaches the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutageLook {
    /// The reason for people.
    pub words: String,
    /// The server may be well: every path has used up its quota.
    pub is_spent: bool,
}

/// One session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionLook {
    /// The session's id in hexadecimal.
    pub id: String,
    /// At a server: the name of the client's credential, or the first digits of the session's id.
    pub client: Option<String>,
    /// Its paths.
    pub paths: Vec<PathLook>,
}

/// One path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathLook {
    /// Its name.
    pub name: String,
    /// Whether it can be relied on.
    pub health: Health,
    /// Why it is out of use, if it is.
    pub withheld: Option<Withheld>,
    /// Stream bytes received, each once.
    pub down: u64,
    /// Stream bytes sent for the first time.
    pub up: u64,
    /// Bytes that TCP carried in both directions.
    pub carried: u64,
    /// Smoothed RTT in microseconds; 0 while there is none.
    pub rtt_us: u32,
}

impl SessionLook {
    /// The counters of a session. The cost does not grow with its streams.
    pub fn new(
        session: &Session,
        client: Option<String>,
        withheld: impl Fn(&str) -> Option<Withheld>,
    ) -> Self {
        let id = session.id().iter().map(|byte| format!("{byte:02x}")).collect();
        let (mut paths, _) = session.path_stats(0);
        paths.sort_by_key(|path| path.id);
        let path = |path: PathStats| PathLook::new(path, &withheld);
        Self { id, client, paths: paths.into_iter().map(path).collect() }
    }
}

impl PathLook {
    fn new(stats: PathStats, withheld: &impl Fn(&str) -> Option<Withheld>) -> Self {
        Self {
            health: stats.health,
            withheld: withheld(&stats.name),
            down: stats.received.saturating_sub(stats.duplicate),
            up: stats.new_bytes,
            carried: stats.carried,
            rtt_us: u32::try_from(stats.srtt.as_micros()).unwrap_or(u32::MAX),
            name: stats.name,
        }
    }
}
