//! How far each network of this machine leads to the servers of a link, for whoever looks for a fault.

use std::io;
use std::net::{IpAddr, SocketAddr};
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

/// Longest time for a connection and its key.
const PROBE_TIME: Duration = Duration::from_secs(4);
/// Longest time for all name servers.
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
        let prober = prober(config).map_err(io::Error::other)?;
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
    prober: &Prober,
    interface: &Interface,
    witness: &str,
) -> NetworkReport {
    let mut report = NetworkReport {
        interface: interface.name.clone(),
        has_ipv4: interface.addresses.iter().any(IpAddr::is_ipv4),
        names: names(config, interface, witness).await,
        servers: Vec::new(),
        no_server: None,
    };
    let local = LocalBinding::Interface(interface.name.clone());
    let servers = Servers::new(config.link.servers(), &config.known_servers, config.socket_mark);
    servers.look(&local).await;
    let spec = PathSpec { name: interface.name.clone(), local, ..PathSpec::default() };
    let candidates = match servers.candidates(0, &spec, None) {
        Ok(candidates) => candidates,
        Err(none) => {
            report.no_server = Some((none.trouble(), none.to_string()));
            Vec::new()
        }
    };
    for server in candidates {
        let connecting = prober.connect(&spec, server);
        let trouble = match timeout(PROBE_TIME, connecting).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some((error.trouble(), error.to_string())),
            Err(_) => Some((PathTrouble::NoAnswer, format!("{server} does not answer"))),
        };
        report.servers.push(ServerReach { server, trouble });
    }
    report
}

/// What each name server says of the names of the link and of the witness.
async fn names(config: &ClientConfig, interface: &Interface, witness: &str) -> Vec<NameReport> {
    let network = Network { interface: interface.name.clone(), mark: config.socket_mark };
    let hosts = config.link.servers().iter().filter(|server| server.ip().is_none());
    let names: Vec<String> = hosts.map(|server| server.host.clone()).collect();
    let mut reports = Vec::new();
    for name in names.into_iter().chain([witness.to_owned()]) {
        let answers = timeout(NAMES_TIME, network.answers(&name)).await.unwrap_or_default();
        reports.extend(answers.into_iter().map(|(server, addresses)| NameReport {
            server: server.ip(),
            name: name.clone(),
            addresses,
        }));
    }
    reports
}
