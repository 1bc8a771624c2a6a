//! The sessions that a server has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fbdt_proto::wire::handshake::SessionId;

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

/// Sessions by id.
pub(super) struct Registry {
    members: Mutex<HashMap<SessionId, Member>>,
    most: usize,
}

impl Registry {
    pub(super) fn new(most: usize) -> Self {
        Self { members: Mutex::default(), most }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session; `false` if there are too many.
    pub(super) fn insert(&self, id: SessionId, member: Member) -> bool {
        let mut members = self.lock();
        if members.len() >= self.most {
            return false;
        }
        members.insert(id, member);
        true
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
