//! Addresses of the servers that a link names. They are kept for the next start: where rules refuse
//! connections, they may refuse the question for a name, too.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use fbdt::Link;

use crate::output;

const FILE: &str = "server-addresses.json";

/// Addresses of each `HOST:PORT`.
type Known = BTreeMap<String, Vec<SocketAddr>>;

/// Resolves names of servers, and keeps their addresses in a directory, if there is one.
pub(crate) struct ServerAddresses {
    file: Option<PathBuf>,
}

impl ServerAddresses {
    /// Keeps addresses in this directory.
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        Self { file: directory.map(|directory| directory.join(FILE)) }
    }

    /// Puts addresses in the place of the link's names for good: later the question of the daemon itself
    /// might be taken, too.
    ///
    /// # Errors
    /// What the system says of a name whose addresses nobody has kept.
    pub(crate) async fn pin(&self, link: &mut Link) -> io::Result<()> {
        let (mut known, mut addresses) = (self.read(), Vec::new());
        let before = known.clone();
        for server in link.servers() {
            match server.ip() {
                Some(_) => addresses.push(server.to_string()),
                None => {
                    let asked = tokio::net::lookup_host((server.host.as_str(), server.port)).await;
                    let asked = asked.map(Iterator::collect);
                    let found = choose(&server.to_string(), asked, &mut known)?;
                    addresses.extend(found.iter().map(SocketAddr::to_string));
                }
            }
        }
        if known != before {
            self.write(&known);
        }
        let text = link.to_string_with_secret();
        if let Some((_, rest)) = text.split_once('?') {
            let pinned = format!("sumrate://{}?{rest}", addresses.join(","));
            *link = pinned.parse::<Link>().map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn read(&self) -> Known {
        let text = self.file.as_deref().and_then(|file| std::fs::read_to_string(file).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// A start without it works as well, while names can be resolved.
    fn write(&self, known: &Known) {
        let Some(file) = &self.file else { return };
        let write = || {
            if let Some(directory) = file.parent() {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            }
            output::write_private(file, &serde_json::to_string(known)?)
        };
        if let Err(error) = write() {
            tracing::info!(%error, "{} is not written", file.display());
        }
    }
}

/// The addresses that a name server told, else those that were kept.
fn choose(
    server: &str,
    asked: io::Result<Vec<SocketAddr>>,
    known: &mut Known,
) -> io::Result<Vec<SocketAddr>> {
    let error = match asked {
        Ok(found) if !found.is_empty() => {
            known.insert(server.to_owned(), found.clone());
            return Ok(found);
        }
        Ok(_) => io::Error::from(io::ErrorKind::NotFound),
        Err(error) => error,
    };
    match known.get(server) {
        Some(kept) if !kept.is_empty() => {
            tracing::warn!(%error, "the server {server} is not resolved: its last addresses are used");
            Ok(kept.clone())
        }
        _ => Err(io::Error::other(format!(
            "the server {server} cannot be resolved: {error}; `sumrate doctor` as root tells whether \
             rules of a crashed `sumrate up` refuse the question; an address in the link needs none"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "EscYkP6FyA2W7DklTfVzJaXP4TJQ1UBe5fDeQcy12R8GdSq_RILACQ";

    fn link(servers: &str) -> Link {
        format!("sumrate://{servers}?v=1&insecure=1#c={SECRET}").parse().unwrap()
    }

    #[tokio::test]
    async fn the_servers_name_is_resolved_and_the_credential_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut link = link("localhost:7443,192.0.2.1:1");
        ServerAddresses::new(Some(directory.path())).pin(&mut link).await.unwrap();
        assert!(link.servers().iter().all(|server| server.ip().is_some()));
        assert!(link.servers().iter().any(|server| server.port == 1));
        assert!(link.to_string_with_secret().ends_with(SECRET));
        let kept = ServerAddresses::new(Some(directory.path())).read();
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["localhost:7443"]);
    }

    #[tokio::test]
    async fn kept_addresses_stand_in_for_a_name_server() {
        let directory = tempfile::tempdir().unwrap();
        let addresses = ServerAddresses::new(Some(directory.path()));
        let unknown = addresses.pin(&mut link("server.invalid:7443")).await.unwrap_err();
        assert!(
            unknown.to_string().contains("server.invalid:7443 cannot be resolved"),
            "{unknown}"
        );
        let kept: Vec<SocketAddr> = vec!["192.0.2.9:7443".parse().unwrap()];
        addresses.write(&Known::from([("server.invalid:7443".to_owned(), kept)]));
        let mut named = link("server.invalid:7443");
        addresses.pin(&mut named).await.unwrap();
        assert_eq!(named.servers()[0].to_string(), "192.0.2.9:7443");
    }

    #[test]
    fn new_answers_replace_kept_addresses() {
        let address = |text: &str| vec![text.parse::<SocketAddr>().unwrap()];
        let mut known = Known::from([("s:1".to_owned(), address("192.0.2.1:1"))]);
        let found = choose("s:1", Ok(address("192.0.2.2:1")), &mut known).unwrap();
        assert_eq!((found, &known["s:1"]), (address("192.0.2.2:1"), &address("192.0.2.2:1")));
        assert_eq!(choose("s:1", Ok(Vec::new()), &mut known).unwrap(), address("192.0.2.2:1"));
        assert!(choose("t:1", Ok(Vec::new()), &mut known).is_err());
    }
}
