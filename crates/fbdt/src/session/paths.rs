//! The paths of a session as people and diallers see them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fbdt_proto::{Health, PathId, SubflowId};
use tokio::sync::watch;

/// Both ends of a subflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
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
}

struct PathEntry {
    name: String,
    health: Health,
    subflow: Option<(SubflowId, Addresses)>,
    dial: watch::Sender<bool>,
}

/// All paths that the session has seen.
#[derive(Default)]
pub(crate) struct PathTable {
    paths: BTreeMap<PathId, PathEntry>,
}

impl PathTable {
    fn entry(&mut self, path: PathId, name: &str) -> &mut PathEntry {
        let entry = self.paths.entry(path).or_insert_with(|| PathEntry {
            name: String::new(),
            health: Health::Dead,
            subflow: None,
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

    /// Paths known, up or not.
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    pub(crate) fn contains(&self, path: PathId) -> bool {
        self.paths.contains_key(&path)
    }

    pub(super) fn up(&mut self, path: PathId, name: &str, id: SubflowId, addresses: Addresses) {
        let entry = self.entry(path, name);
        entry.subflow = Some((id, addresses));
        entry.health = Health::Active;
        entry.dial.send_replace(false);
    }

    /// The subflow is gone; if the path has no newer one, it is to be dialled.
    pub(super) fn down(&mut self, path: PathId, id: SubflowId) {
        if let Some(entry) = self.paths.get_mut(&path)
            && entry.subflow.is_some_and(|(current, _)| current == id)
        {
            entry.subflow = None;
            entry.health = Health::Dead;
            entry.dial.send_replace(true);
        }
    }

    pub(super) fn is_up(&self, path: PathId) -> bool {
        self.paths.get(&path).is_some_and(|entry| entry.subflow.is_some())
    }

    pub(super) fn set_health(&mut self, path: PathId, health: Health) {
        if let Some(entry) = self.paths.get_mut(&path) {
            entry.health = health;
        }
    }

    pub(super) fn set_wanted(&mut self, path: PathId, wanted: bool) {
        if let Some(entry) = self.paths.get(&path) {
            entry.dial.send_replace(wanted);
        }
    }

    pub(super) fn dial_signal(&mut self, path: PathId, name: &str) -> watch::Receiver<bool> {
        let entry = self.entry(path, name);
        entry.dial.send_replace(entry.subflow.is_none());
        entry.dial.subscribe()
    }

    /// Nobody dials any more.
    pub(super) fn close(&mut self) {
        for entry in self.paths.values() {
            entry.dial.send_replace(false);
        }
    }

    pub(super) fn list(&self) -> Vec<PathInfo> {
        let info = |(id, entry): (&PathId, &PathEntry)| PathInfo {
            id: *id,
            name: entry.name.clone(),
            local: entry.subflow.and_then(|(_, addresses)| addresses.local),
            remote: entry.subflow.and_then(|(_, addresses)| addresses.remote),
            health: entry.health,
        };
        self.paths.iter().map(info).collect()
    }
}
