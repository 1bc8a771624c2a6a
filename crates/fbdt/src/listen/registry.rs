//! The sessions that a server has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fbdt_proto::PathId;
use fbdt_proto::handshake::SessionId;

use super::echo::EchoKeys;
use crate::auth::ProofKey;
use crate::identity::CredentialId;
use crate::session::Shared;

/// Close code of sessions without a path whose place another one takes.
const CLOSE_ABANDONED: u32 = 0x23;

/// After this time without a path a session gives its place up where there is no other one.
const ABANDONED: Duration = Duration::from_secs(5);

/// A session that subflows may join.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) shared: Arc<Shared>,
    pub(super) key: ProofKey,
    pub(super) credential: CredentialId,
}

/// Why no session is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The server has as many as it may.
    Server,
    /// The credential has as many as one may.
    Credential,
}

/// Sessions by id.
pub(super) struct Registry {
    members: Mutex<HashMap<SessionId, Member>>,
    echoes: Arc<EchoKeys>,
    most: usize,
    most_per_credential: usize,
}

impl Registry {
    pub(super) fn new(most: usize, most_per_credential: usize) -> Self {
        Self { members: Mutex::default(), echoes: Arc::default(), most, most_per_credential }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session, unless there are too many. One whose client is gone, as it has had no path for
    /// some seconds, gives way.
    pub(super) fn insert(&self, id: SessionId, member: Member) -> Result<(), Full> {
        let mut members = self.lock();
        let of_it = |other: &Member| other.credential == member.credential;
        let own = members.values().filter(|other| of_it(other)).count();
        let gone = if own >= self.most_per_credential {
            Some(abandoned(&members, of_it).ok_or(Full::Credential)?)
        } else if members.len() >= self.most {
            Some(abandoned(&members, |_| true).ok_or(Full::Server)?)
        } else {
            None
        };
        if let Some(gone) = gone.and_then(|gone| members.remove(&gone)) {
            gone.shared
                .close(CLOSE_ABANDONED, "it had no path, and another session needs its place");
        }
        members.insert(id, member);
        Ok(())
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<Member> {
        self.lock().get(id).cloned()
    }

    pub(super) fn remove(&self, id: &SessionId) {
        // Under the lock of the members: a path that joins now enters its key before or not at all.
        let mut members = self.lock();
        members.remove(id);
        self.echoes.remove(id);
    }

    /// Has probes of a path of a session answered, as long as there is that session.
    pub(super) fn answer_probes(&self, id: &SessionId, path: PathId) {
        let members = self.lock();
        if let Some(member) = members.get(id) {
            self.echoes.insert(*id, &member.key, path);
        }
    }

    /// What probes are answered with.
    pub(super) fn echoes(&self) -> Arc<EchoKeys> {
        self.echoes.clone()
    }

    pub(super) fn members(&self) -> Vec<Member> {
        self.lock().values().cloned().collect()
    }
}

/// The session that has been without a path for longest, if that is long.
fn abandoned(
    members: &HashMap<SessionId, Member>,
    concerns: impl Fn(&Member) -> bool,
) -> Option<SessionId> {
    let without_path = |member: &Member| {
        member.shared.update(|inner, now| {
            let since = inner.protocol.without_path_since()?;
            Some(now.saturating_since(since))
        })
    };
    let candidates = members.iter().filter(|(_, member)| concerns(member));
    let candidates = candidates.filter_map(|(id, member)| Some((without_path(member)?, *id)));
    candidates.filter(|(time, _)| *time >= ABANDONED).max().map(|(_, id)| id)
}
