//! How far each network of this machine leads to the servers of a link, for whoever looks for a fault.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::config::{ClientConfig, PathSpec};
use crate::dial::{Prober, Servers};
use crate::interfaces::{self, Interface};
use crate::names::Network;
use crate::socket::LocalBinding;
use crate::tls::{self, TlsConfigError};
use crate::trouble::PathTrouble;

/// What a name server said of a name; `None` where it did not answer.
type Answer = (SocketAddr, Option<Vec<IpAddr>>);

/// Longest time for a connection and its key.
const PROBE_TIME: Duration = Duration::from_secs(4);
/// Longest time for the names of servers.
const NAMES_TIME: Duration = Duration::from_secs(9);

/// A network, as far as it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkReport {
    /// The interface that leads into it.
    pub interface: String,
    /// Whether it has addresses of IPv4.
    pub has_ipv4: bool,
    /// What its name servers say.
    pub names: Vec<NameReport>,
    /// What became of a connection to each address of the servers.
    pub servers: Vec<ServerReach>,
    /// Why there is no address to connect to, if so.
    pub no_server: Option<(PathTrouble, String)>,
}

/// What a name server says of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameReport {
    /// The name server.
    pub server: IpAddr,
    /// The name.
    pub name: String,
    /// Its addresses; `None` where no answer came.
    pub addresses: Option<Vec<IpAddr>>,
}

/// What became of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerReach {
    /// The server's address.
    pub server: SocketAddr,
    /// What went wrong, in a word and in words; `None` where the server has proven its key.
    pub trouble: Option<(PathTrouble, String)>,
}

/// Asks the name servers of each network for the servers of the link, and connects to each address. No
/// session is opened. A `witness` is a name that every name server knows.
///
/// # Errors
/// TLS cannot be configured, or the system does not tell which interfaces there are.
pub async fn examine(config: &ClientConfig, witness: &str) -> io::Result<Vec<NetworkReport>> {
    let tunnels = interfaces::tunnels().unwrap_or_default();
    let mut usable = interfaces::usable()?;
    usable.retain(|interface| !tunnels.contains_key(&interface.name));
    let mut examining = JoinSet::new();
    for interface in usable {
        let prober = Arc::new(prober(config).map_err(io::Error::other)?);
        let (config, witness) = (config.clone(), witness.to_owned());
        examining.spawn(async move { network(&config, &prober, &interface, &witness).await });
    }
    let mut reports = examining.join_all().await;
    reports.sort_by(|a, b| a.interface.cmp(&b.interface));
    Ok(reports)
}

/// The kinds of the interfaces that are tunnels, by their names.
///
/// # Errors
/// The system does not tell.
pub fn tunnels() -> io::Result<std::collections::BTreeMap<String, String>> {
    interfaces::tunnels()
}

fn prober(config: &ClientConfig) -> Result<Prober, TlsConfigError> {
    let tls = match config.link.fingerprint() {
        Some(pinned) => {
            Some(tls::client_config(pinned, config.server_name().is_some(), &config.alpn)?)
        }
        None => None,
    };
    let (opened, _) = oneshot::channel();
    Ok(Prober::new(config.clone(), tls, opened))
}

async fn network(
    config: &ClientConfig,
    prober: &Arc<Prober>,
    interface: &Interface,
    witness: &str,
) -> NetworkReport {
    let (names, (servers, no_server)) =
        tokio::join!(names(config, interface, witness), servers(config, prober, interface));
    NetworkReport {
        interface: interface.name.clone(),
        has_ipv4: interface.addresses.iter().any(IpAddr::is_ipv4),
        names,
        servers,
        no_server,
    }
}

/// What became of a connection to each address, or why there is none.
async fn servers(
    config: &ClientConfig,
    prober: &Arc<Prober>,
    interface: &Interface,
) -> (Vec<ServerReach>, Option<(PathTrouble, String)>) {
    let local = LocalBinding::Interface(interface.name.clone());
    let servers = Servers::new(config.link.servers(), &config.known_servers, config.socket_mark);
    // Who answers later than that is no help to programs either.
    let _ = timeout(NAMES_TIME, servers.look(&local)).await;
    let spec = PathSpec { name: interface.name.clone(), local, ..PathSpec::default() };
    let candidates = match servers.candidates(0, &spec, None) {
        Ok(candidates) => candidates,
        Err(none) => return (Vec::new(), Some((none.trouble(), none.to_string()))),
    };
    let mut probing = JoinSet::new();
    for server in candidates {
        let (prober, spec) = (prober.clone(), spec.clone());
        probing.spawn(async move {
            let trouble = match timeout(PROBE_TIME, prober.connect(&spec, server, PROBE_TIME)).await
            {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some((error.trouble(), error.to_string())),
                Err(_) => Some((PathTrouble::NoAnswer, format!("{server} does not answer"))),
            };
            ServerReach { server, trouble }
        });
    }
    let mut reached = probing.join_all().await;
    reached.sort_by_key(|reach| reach.server);
    (reached, None)
}

/// What each name server says of the names of the link and of the witness.
async fn names(config: &ClientConfig, interface: &Interface, witness: &str) -> Vec<NameReport> {
    let network = Network { interface: interface.name.clone(), mark: config.socket_mark };
    let hosts = config.link.servers().iter().filter(|server| server.ip().is_none());
    let names: Vec<String> = hosts.map(|server| server.host.clone()).collect();
    let mut asking = JoinSet::new();
    for name in names.into_iter().chain([witness.to_owned()]) {
        let network = network.clone();
        asking.spawn(async move { (network.answers(&name).await, name) });
    }
    let of_name = |(answers, name): (Vec<Answer>, String)| {
        answers.into_iter().map(move |(server, addresses)| NameReport {
            server: server.ip(),
            name: name.clone(),
            addresses,
        })
    };
    let mut reports: Vec<NameReport> =
        asking.join_all().await.into_iter().flat_map(of_name).collect();
    reports.sort_by(|a, b| (a.server, &a.name).cmp(&(b.server, &b.name)));
    reports
}
