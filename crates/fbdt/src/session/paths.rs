//! The paths of a session as people and diallers see them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use fbdt_proto::{Health, PathId, PathLabel, PathPolicy, SubflowId};
use tokio::sync::{broadcast, watch};

use super::events::{SessionEvent, SessionEvents, WAITING};
use crate::trouble::PathTrouble;

/// Both ends of a subflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
}

/// Why a path has no connection that works, as far as this end knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    /// The kind of it.
    pub trouble: PathTrouble,
    /// What the last attempt failed with, or what ended the last connection.
    pub reason: String,
    /// When that was.
    pub at: Instant,
    /// Its interface or address is gone: it is dialled again when that is back, and not before.
    pub interface_gone: bool,
}

impl PathError {
    /// What has happened now.
    pub(crate) fn now(trouble: PathTrouble, reason: impl Into<String>) -> Self {
        Self { trouble, reason: reason.into(), at: Instant::now(), interface_gone: false }
    }

    /// That there is nothing to dial from any more.
    pub(crate) fn interface_gone() -> Self {
        let reason = "its interface or address is gone; it reconnects when that is back";
        Self { interface_gone: true, ..Self::now(PathTrouble::InterfaceGone, reason) }
    }
}

/// One path of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathInfo {
    /// The client's number for it.
    pub id: PathId,
    /// The client's name for it.
    pub name: String,
    /// Local address of its subflow; `None` while it has none.
    pub local: Option<SocketAddr>,
    /// Remote address of its subflow; `None` while it has none.
    pub remote: Option<SocketAddr>,
    /// Whether it can be relied on.
    pub health: Health,
    /// What went wrong last; `None` while it is active, and while nothing is known.
    pub last_error: Option<PathError>,
}

struct PathEntry {
    name: String,
    health: Health,
    subflow: Option<(SubflowId, Addresses)>,
    /// How a client wants it to be used, if it was told so.
    policy: Option<PathPolicy>,
    /// What the server was told last.
    told: Option<PathPolicy>,
    /// It is not to be used at all.
    withheld: bool,
    /// Why it is not active.
    error: Option<PathError>,
    dial: watch::Sender<bool>,
}

impl PathEntry {
    fn is_untold(&self) -> bool {
        self.subflow.is_none() || self.policy.is_some_and(|policy| self.told != Some(policy))
    }

    fn info(&self, id: PathId) -> PathInfo {
        PathInfo {
            id,
            name: self.name.clone(),
            local: self.subflow.and_then(|(_, addresses)| addresses.local),
            remote: self.subflow.and_then(|(_, addresses)| addresses.remote),
            health: self.health,
            last_error: self.error.clone(),
        }
    }

    fn want(&self, wanted: bool) {
        self.dial.send_replace(wanted && !self.withheld);
    }
}

/// All paths that the session has seen.
pub(crate) struct PathTable {
    paths: BTreeMap<PathId, PathEntry>,
    /// Who wants to know of changes; nobody once the session is over.
    events: Option<broadcast::Sender<SessionEvent>>,
}

impl Default for PathTable {
    fn default() -> Self {
        Self { paths: BTreeMap::new(), events: Some(broadcast::Sender::new(WAITING)) }
    }
}

impl PathTable {
    /// What happens to the paths from now on.
    pub(super) fn events(&self) -> SessionEvents {
        SessionEvents(self.events.as_ref().map(broadcast::Sender::subscribe))
    }

    /// Tells those who listen how a path is now.
    fn tell(&self, path: PathId) {
        let listened = self.events.as_ref().filter(|events| events.receiver_count() > 0);
        if let (Some(events), Some(entry)) = (listened, self.paths.get(&path)) {
            // Nobody listens any more: that is no failure.
            let _ = events.send(SessionEvent::Path(entry.info(path)));
        }
    }

    fn entry(&mut self, path: PathId, name: &str) -> &mut PathEntry {
        let entry = self.paths.entry(path).or_insert_with(|| PathEntry {
            name: String::new(),
            health: Health::Dead,
            subflow: None,
            policy: None,
            told: None,
            withheld: false,
            error: None,
            dial: watch::Sender::new(false),
        });
        if entry.name != name {
            entry.name = name.to_owned();
        }
        entry
    }

    /// Lists a path that has not been up yet.
    pub(crate) fn register(&mut self, path: PathId, name: &str) {
        self.entry(path, name);
    }

    /// Keeps a place for a path that is about to be up; `false` if there are `most` others.
    pub(crate) fn reserve(&mut self, path: PathId, name: &str, most: usize) -> bool {
        if self.paths.contains_key(&path) {
            return true;
        }
        if self.paths.len() >= most {
            return false;
        }
        self.register(path, name);
        true
    }

    pub(super) fn up(
        &mut self,
        path: PathId,
        label: &PathLabel,
        id: SubflowId,
        addresses: Addresses,
    ) {
        let entry = self.entry(path, &label.name);
        entry.subflow = Some((id, addresses));
        entry.health = Health::Active;
        entry.error = None;
        entry.told = Some(label.policy);
        entry.want(entry.is_untold());
        self.tell(path);
    }

    /// How a client was told to use the path.
    pub(super) fn policy(&self, path: PathId) -> Option<PathPolicy> {
        self.paths.get(&path)?.policy
    }

    /// Enters how a path is to be used and has it dialled, so that the server hears of it.
    pub(super) fn set_policy(&mut self, name: &str, policy: PathPolicy) -> Option<PathId> {
        let (id, entry) = self.paths.iter_mut().find(|(_, entry)| entry.name == name)?;
        entry.policy = Some(policy);
        entry.want(entry.is_untold());
        Some(*id)
    }

    /// Whether the path has no subflow, or the server does not know how it is used.
    pub(super) fn is_untold(&self, path: PathId) -> bool {
        self.paths.get(&path).is_none_or(PathEntry::is_untold)
    }

    /// Whether a path is out of use.
    pub(super) fn is_withheld(&self, path: PathId) -> bool {
        self.paths.get(&path).is_some_and(|entry| entry.withheld)
    }

    /// Takes a path out of use, or lets it back.
    pub(super) fn withhold(&mut self, name: &str, withheld: bool) -> Option<PathId> {
        let (id, entry) = self.paths.iter_mut().find(|(_, entry)| entry.name == name)?;
        entry.withheld = withheld;
        if withheld {
            entry.error = None;
        }
        Some(*id)
    }

    /// The subflow is gone; if the path has no newer one, it is to be dialled.
    pub(super) fn down(&mut self, path: PathId, id: SubflowId) {
        if let Some(entry) = self.paths.get_mut(&path)
            && entry.subflow.is_some_and(|(current, _)| current == id)
        {
            entry.subflow = None;
            entry.health = Health::Dead;
            entry.want(true);
            self.tell(path);
        }
    }

    pub(super) fn set_health(&mut self, path: PathId, health: Health) {
        if let Some(entry) = self.paths.get_mut(&path) {
            entry.health = health;
            if health == Health::Active {
                entry.error = None;
            }
            self.tell(path);
        }
    }

    /// Something went wrong; of a path that is active, or not to be used, it says nothing.
    pub(crate) fn failed(&mut self, path: PathId, error: PathError) {
        let Some(entry) = self.paths.get_mut(&path) else { return };
        let is_newer = entry.error.as_ref().is_none_or(|known| known.at <= error.at);
        if entry.health != Health::Active && !entry.withheld && is_newer {
            entry.error = Some(error);
            self.tell(path);
        }
    }

    pub(super) fn set_wanted(&mut self, path: PathId, wanted: bool) {
        if let Some(entry) = self.paths.get(&path) {
            entry.want(wanted);
        }
    }

    pub(super) fn dial_signal(&mut self, path: PathId, name: &str) -> watch::Receiver<bool> {
        let entry = self.entry(path, name);
        entry.want(entry.is_untold());
        entry.dial.subscribe()
    }

    /// Nobody dials any more, and nothing happens.
    pub(super) fn close(&mut self) {
        self.events = None;
        for entry in self.paths.values() {
            entry.dial.send_replace(false);
        }
    }

    pub(crate) fn list(&self) -> Vec<PathInfo> {
        self.paths.iter().map(|(id, entry)| entry.info(*id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: PathId = PathId(1);

    fn error(table: &PathTable) -> Option<String> {
        let listed = table.list();
        listed.into_iter().find(|path| path.id == PATH)?.last_error.map(|error| error.reason)
    }

    #[test]
    fn a_path_keeps_its_last_error_until_it_is_active() {
        let mut table = PathTable::default();
        table.failed(PATH, PathError::now(PathTrouble::Other, "unknown"));
        table.register(PATH, "wifi");
        assert_eq!(error(&table), None, "a path that nobody knows has none");
        let earlier = PathError::now(PathTrouble::Other, "earlier");
        table.failed(PATH, PathError::now(PathTrouble::Other, "refused"));
        table.failed(PATH, earlier);
        assert_eq!(error(&table).as_deref(), Some("refused"), "the newest counts");
        let label = PathLabel { name: "wifi".to_owned(), policy: PathPolicy::default() };
        table.up(PATH, &label, SubflowId(1), Addresses::default());
        assert_eq!(error(&table), None, "it is up");
        table.failed(PATH, PathError::now(PathTrouble::Other, "an attempt beside its connection"));
        assert_eq!(error(&table), None, "it works");
        table.set_health(PATH, Health::Suspect);
        table.failed(PATH, PathError::now(PathTrouble::Other, "timed out"));
        assert_eq!(error(&table).as_deref(), Some("timed out"));
        table.set_health(PATH, Health::Active);
        assert_eq!(error(&table), None, "it lives again");
        table.down(PATH, SubflowId(1));
        table.failed(PATH, PathError::now(PathTrouble::Other, "reset"));
        assert_eq!(error(&table).as_deref(), Some("reset"));
        table.withhold("wifi", true);
        table.failed(PATH, PathError::now(PathTrouble::Other, "late"));
        assert_eq!(error(&table), None, "it is not dialled at all");
    }
}
