//! The sessions that a server has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fbdt_proto::handshake::SessionId;

use crate::auth::ProofKey;
use crate::identity::CredentialId;
use crate::session::Shared;

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
    most: usize,
    most_per_credential: usize,
}

impl Registry {
    pub(super) fn new(most: usize, most_per_credential: usize) -> Self {
        Self { members: Mutex::default(), most, most_per_credential }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session, unless there are too many.
    pub(super) fn insert(&self, id: SessionId, member: Member) -> Result<(), Full> {
        let mut members = self.lock();
        let same = |other: &&Member| other.credential == member.credential;
        if members.values().filter(same).count() >= self.most_per_credential {
            return Err(Full::Credential);
        }
        if members.len() >= self.most {
            return Err(Full::Server);
        }
        members.insert(id, member);
        Ok(())
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<Member> {
        self.lock().get(id).cloned()
    }

    pub(super) fn remove(&self, id: &SessionId) {
        self.lock().remove(id);
    }

    pub(super) fn members(&self) -> Vec<Member> {
        self.lock().values().cloned().collect()
    }
}
