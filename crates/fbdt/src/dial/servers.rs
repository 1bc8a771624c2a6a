//! Which server address a path tries, and in which order.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

use super::error::ConnectError;
use crate::config::PathSpec;
use crate::identity::ServerAddress;
use crate::interfaces;
use crate::known_servers::KnownServers;
use crate::socket::LocalBinding;

/// Time for one look-up of a name: the system's resolver gives its first name server, which may be
/// behind a radio that is down, 5 s before it asks the second one.
const LOOKUP_TIME: Duration = Duration::from_secs(12);

/// The link's servers, resolved.
pub(super) struct Servers {
    named: Vec<ServerAddress>,
    known: KnownServers,
    resolved: Mutex<Vec<SocketAddr>>,
}

impl Servers {
    /// Resolves the names of a link; those that cannot be looked up now are where they were.
    ///
    /// # Errors
    /// [`ConnectError::Resolve`] if none of them has an address.
    pub(super) async fn resolve(
        named: &[ServerAddress],
        known: &KnownServers,
    ) -> Result<Self, ConnectError> {
        let (resolved, failure) = look_up(named, known).await;
        if let (true, Some(failure)) = (resolved.is_empty(), failure) {
            return Err(failure);
        }
        Ok(Self { named: named.to_vec(), known: known.clone(), resolved: Mutex::new(resolved) })
    }

    /// Looks the names up again; what was known stays if that brings nothing.
    pub(super) async fn refresh(&self) {
        if self.named.iter().all(|server| server.ip().is_some()) {
            return;
        }
        let (resolved, _) = look_up(&self.named, &self.known).await;
        if !resolved.is_empty() {
            *self.resolved.lock().unwrap_or_else(PoisonError::into_inner) = resolved;
        }
    }

    /// Where the servers are, as far as it is known.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        resolved.iter().map(SocketAddr::ip).collect()
    }

    /// The addresses for the `index`-th path, most preferred first: its own server, or the link's
    /// from the `index`-th on, those of its address family.
    pub(super) fn candidates(&self, index: usize, spec: &PathSpec) -> Vec<SocketAddr> {
        if let Some((ip, port)) = spec.server {
            let port = port.or_else(|| self.named.first().map(|server| server.port));
            return port.map(|port| SocketAddr::new(ip, port)).into_iter().collect();
        }
        let mut all = self.resolved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !all.is_empty() {
            let count = all.len();
            all.rotate_left(index % count);
        }
        keep_reachable(&mut all, &spec.local);
        all
    }
}

fn keep_reachable(all: &mut Vec<SocketAddr>, local: &LocalBinding) {
    match local {
        LocalBinding::Any => {}
        LocalBinding::Address(own) => all.retain(|server| server.is_ipv4() == own.is_ipv4()),
        LocalBinding::Interface(name) => {
            let interface = interfaces::usable()
                .into_iter()
                .flatten()
                .find(|interface| interface.name == *name);
            if let Some(interface) = interface {
                all.retain(|server| interface.can_reach(server.ip()));
            }
        }
    }
}

async fn look_up(
    named: &[ServerAddress],
    known: &KnownServers,
) -> (Vec<SocketAddr>, Option<ConnectError>) {
    let (mut found, mut failure) = (Vec::new(), None);
    for server in named {
        if let Some(ip) = server.ip() {
            found.push(SocketAddr::new(ip, server.port));
            continue;
        }
        let lookup = lookup_host((server.host.as_str(), server.port));
        let result = match timeout(LOOKUP_TIME, lookup).await {
            Ok(result) => result,
            Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
        };
        let addresses = match result {
            Ok(addresses) => {
                let addresses: Vec<SocketAddr> = addresses.collect();
                known.remember(server, &addresses);
                addresses
            }
            Err(source) => {
                let host = server.host.clone();
                tracing::debug!(%host, error = %source, "a server's name cannot be looked up");
                failure = Some(ConnectError::Resolve { host, source });
                known.addresses(server)
            }
        };
        for address in addresses {
            if !found.contains(&address) {
                found.push(address);
            }
        }
    }
    (found, failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn servers() -> Servers {
        let named = ["10.1.1.2:1", "10.2.1.2:2", "[fd00::1]:3"].map(|text| text.parse().unwrap());
        Servers::resolve(&named, &KnownServers::default()).await.unwrap()
    }

    fn ports(candidates: &[SocketAddr]) -> Vec<u16> {
        candidates.iter().map(SocketAddr::port).collect()
    }

    #[tokio::test]
    async fn each_path_starts_with_another_server() {
        let servers = servers().await;
        let any = PathSpec::default();
        assert_eq!(ports(&servers.candidates(0, &any)), [1, 2, 3]);
        assert_eq!(ports(&servers.candidates(1, &any)), [2, 3, 1]);
        assert_eq!(ports(&servers.candidates(4, &any)), [2, 3, 1]);
    }

    #[tokio::test]
    async fn a_path_uses_servers_of_its_family_or_its_own() {
        let servers = servers().await;
        let mut spec = PathSpec {
            local: LocalBinding::Address("10.9.9.9".parse().unwrap()),
            ..PathSpec::default()
        };
        assert_eq!(ports(&servers.candidates(2, &spec)), [1, 2]);
        spec.server = Some(("192.0.2.1".parse().unwrap(), None));
        assert_eq!(servers.candidates(2, &spec), ["192.0.2.1:1".parse().unwrap()]);
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_looked_up_is_where_it_was() {
        // No name, so that nobody is asked.
        let nameless = ServerAddress { host: "no..name".to_owned(), port: 7 };
        let known = KnownServers::default();
        let named = [nameless.clone()];
        assert!(Servers::resolve(&named, &known).await.is_err());
        known.remember(&nameless, &["192.0.2.7:7".parse().unwrap()]);
        let servers = Servers::resolve(&named, &known.clone()).await.unwrap();
        assert_eq!(ports(&servers.candidates(0, &PathSpec::default())), [7]);
        servers.refresh().await;
        assert_eq!(servers.addresses(), ["192.0.2.7".parse::<IpAddr>().unwrap()]);
    }
}
