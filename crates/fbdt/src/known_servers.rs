//! Where servers were when their names were last looked up.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::identity::ServerAddress;

/// What names of servers stood for, for as long as a program runs: a new session finds its server
/// while no name server answers, as where a radio has just come back. Clones are handles to the same
/// memory.
#[derive(Debug, Clone, Default)]
pub struct KnownServers(Arc<Mutex<HashMap<ServerAddress, Vec<SocketAddr>>>>);

impl KnownServers {
    /// Where it was; nothing if its name was never looked up.
    pub fn addresses(&self, server: &ServerAddress) -> Vec<SocketAddr> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(server).cloned().unwrap_or_default()
    }

    /// It is there now.
    pub(crate) fn remember(&self, server: &ServerAddress, addresses: &[SocketAddr]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(server.clone(), addresses.to_vec());
    }
}
