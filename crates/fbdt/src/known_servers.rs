//! Where servers were when they last answered, and when their names were last looked up.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::identity::{ServerAddress, private_file};

/// The file in the state directory.
const FILE: &str = "server-addresses.json";
/// Addresses of one name, and names, that are kept: the latest.
const MOST_ADDRESSES: usize = 4;
const MOST_NAMES: usize = 64;

/// What the file has: the addresses at which each `HOST:PORT` has answered, the latest first.
type Proven = BTreeMap<String, Vec<SocketAddr>>;

/// What names of servers stood for. A new session finds its server while no name server answers, as
/// where a radio has just come back, and while one lies: the addresses at which a server has proven its
/// key stay candidates. Clones are handles to the same memory.
#[derive(Debug, Clone, Default)]
pub struct KnownServers(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    told: HashMap<ServerAddress, Vec<SocketAddr>>,
    proven: Proven,
    file: Option<PathBuf>,
}

impl KnownServers {
    /// Keeps the addresses at which servers have answered in this directory, for the next start.
    pub fn kept_in(directory: &Path) -> Self {
        let file = directory.join(FILE);
        let text = std::fs::read(&file).unwrap_or_default();
        let proven: Proven = serde_json::from_slice(&text).unwrap_or_default();
        Self(Arc::new(Mutex::new(Known { proven, file: Some(file), ..Known::default() })))
    }

    /// Where it was: first where it has answered, then where its name was last said to be.
    pub fn addresses(&self, server: &ServerAddress) -> Vec<SocketAddr> {
        let known = self.lock();
        let mut found = known.proven.get(&server.to_string()).cloned().unwrap_or_default();
        for address in known.told.get(server).into_iter().flatten() {
            if !found.contains(address) {
                found.push(*address);
            }
        }
        found
    }

    /// Its name is said to stand for these addresses.
    pub(crate) fn remember(&self, server: &ServerAddress, addresses: &[SocketAddr]) {
        self.lock().told.insert(server.clone(), addresses.to_vec());
    }

    /// It has proven its key at this address. The file is written where that is news.
    pub(crate) fn prove(&self, server: &ServerAddress, address: SocketAddr) {
        let mut known = self.lock();
        if known.proven.len() >= MOST_NAMES && !known.proven.contains_key(&server.to_string()) {
            known.proven.pop_first();
        }
        let addresses = known.proven.entry(server.to_string()).or_default();
        if addresses.first() == Some(&address) {
            return;
        }
        addresses.retain(|other| *other != address);
        addresses.insert(0, address);
        addresses.truncate(MOST_ADDRESSES);
        let Some(file) = known.file.clone() else { return };
        let proven = known.proven.clone();
        drop(known);
        if let Err(error) = write(&file, &proven) {
            tracing::info!("{} is not written: {error}", file.display());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(file: &Path, proven: &Proven) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(directory) = file.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    Ok(private_file::write(file, &serde_json::to_vec(proven)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn where_a_server_has_answered_outlives_the_process_and_what_name_servers_say() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let server: ServerAddress = "server.example:7443".parse().unwrap();
        let known = KnownServers::kept_in(&state);
        assert!(known.addresses(&server).is_empty());
        known.remember(&server, &addresses(&["10.0.0.1:7443"]));
        for address in addresses(&["192.0.2.1:7443", "192.0.2.2:7443", "192.0.2.1:7443"]) {
            known.prove(&server, address);
        }
        let proven = ["192.0.2.1:7443", "192.0.2.2:7443"];
        let all = [&proven[..], &["10.0.0.1:7443"]].concat();
        assert_eq!(known.clone().addresses(&server), addresses(&all));
        let later = KnownServers::kept_in(&state);
        assert_eq!(later.addresses(&server), addresses(&proven), "not what was only said");
        for last in 3..20 {
            later.prove(&server, SocketAddr::from(([192, 0, 2, last], 7443)));
        }
        assert_eq!(later.addresses(&server).len(), MOST_ADDRESSES);
        assert_eq!(later.addresses(&server)[0], addresses(&["192.0.2.19:7443"])[0]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_none() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), "{").unwrap();
        let known = KnownServers::kept_in(directory.path());
        let server: ServerAddress = "server.example:7443".parse().unwrap();
        assert!(known.addresses(&server).is_empty());
        known.prove(&server, addresses(&["192.0.2.1:7443"])[0]);
        let later = KnownServers::kept_in(directory.path());
        assert_eq!(later.addresses(&server).len(), 1);
    }
}
