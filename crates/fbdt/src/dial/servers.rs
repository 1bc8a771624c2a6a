//! Which server address a path tries, and in which order.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::error::{ConnectError, NoServer};
use crate::config::PathSpec;
use crate::identity::ServerAddress;
use crate::interfaces::{self, Interface};
use crate::known_servers::KnownServers;
use crate::names::{Nat64Prefix, Network, advertised};
use crate::socket::LocalBinding;

/// Time for one look-up of a name: the system's resolver gives its first name server, which may be
/// behind a radio that is down, 5 s before it asks the second one.
const LOOKUP_TIME: Duration = Duration::from_secs(12);
/// A network, and the system's resolver, is asked again after this; later where it knows nothing.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(15));

/// The servers of a link, and what each network says of their names.
pub(crate) struct Servers {
    named: Vec<ServerAddress>,
    known: KnownServers,
    /// SO_MARK of questions to name servers.
    mark: Option<u32>,
    learnt: Mutex<Learnt>,
    /// Something was learnt, or a look-up is over.
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Learnt {
    /// By interface; the system's resolver has none.
    said: BTreeMap<Option<String>, Said>,
    /// A name that the system's resolver did not find last, and why.
    failure: Option<(String, io::Error)>,
}

/// What one network says.
#[derive(Default)]
struct Said {
    /// By the index of the name in the link.
    addresses: BTreeMap<usize, Vec<IpAddr>>,
    nat64: Vec<Nat64Prefix>,
    /// Whether the advertisements of its routers are listened to for one.
    is_listening: bool,
    is_asked: bool,
    /// When it may be asked again, and how long that was put off.
    next: Option<(Instant, Duration)>,
}

impl Servers {
    pub(crate) fn new(
        named: &[ServerAddress],
        known: &KnownServers,
        mark: Option<u32>,
    ) -> Arc<Self> {
        let (named, known, learnt) = (named.to_vec(), known.clone(), Mutex::default());
        Arc::new(Self { named, known, mark, learnt, news: watch::Sender::new(()) })
    }

    /// Asks for the names of the link over all these networks, and waits for a first address.
    ///
    /// # Errors
    /// [`ConnectError::Resolve`] if none of them has an address.
    pub(crate) async fn resolve(
        self: &Arc<Self>,
        bindings: &[LocalBinding],
    ) -> Result<(), ConnectError> {
        let mut news = self.news();
        bindings.iter().for_each(|binding| self.refresh(binding));
        while self.addresses().is_empty() {
            if !self.is_looking() {
                let failure = self.learnt().failure.take();
                let (host, source) = failure.unwrap_or_else(|| {
                    let host = self.named.first().map(|server| server.host.clone());
                    (host.unwrap_or_default(), io::ErrorKind::NotFound.into())
                });
                return Err(ConnectError::Resolve { host, source });
            }
            // The sender lives as long as `self`: no error.
            let _ = news.changed().await;
        }
        Ok(())
    }

    /// Asks the same, and waits until everybody has answered or will not.
    pub(crate) async fn look(self: &Arc<Self>, binding: &LocalBinding) {
        let mut news = self.news();
        self.refresh(binding);
        while self.is_looking() && news.changed().await.is_ok() {}
    }

    /// Tells when something was learnt, or a look-up is over.
    pub(crate) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Whether a name server is being asked.
    pub(crate) fn is_looking(&self) -> bool {
        self.learnt().said.values().any(|said| said.is_asked)
    }

    /// Asks again what the names stand for, the system's resolver and over the path's own network, where
    /// that was not done a moment ago; what was known stays until there are answers.
    pub(crate) fn refresh(self: &Arc<Self>, binding: &LocalBinding) {
        let has_names = self.named.iter().any(|server| server.ip().is_none());
        if has_names && self.begin(None) {
            let servers = self.clone();
            tokio::spawn(async move {
                servers.ask_system().await;
                servers.end(None);
            });
        }
        let Some(interface) = network_of(binding) else { return };
        let wants_nat64 = interface.is_ipv6_only() && self.named.iter().any(may_be_ipv4);
        if wants_nat64 {
            self.listen_for_nat64(&interface.name);
        }
        let name = Some(interface.name.clone());
        if (has_names || wants_nat64) && self.begin(name.clone()) {
            let servers = self.clone();
            tokio::spawn(async move {
                servers.ask_network(interface.name, wants_nat64).await;
                servers.end(name);
            });
        }
    }

    /// Learns the NAT64 that a router of the network advertises next.
    fn listen_for_nat64(self: &Arc<Self>, interface: &str) {
        let network = Some(interface.to_owned());
        let mut learnt = self.learnt();
        let said = learnt.said.entry(network.clone()).or_default();
        if std::mem::replace(&mut said.is_listening, true) {
            return;
        }
        drop(learnt);
        let (servers, mut news) = (Arc::downgrade(self), self.news());
        let interface = interface.to_owned();
        tokio::spawn(async move {
            let unused = async { while news.changed().await.is_ok() {} };
            let prefix = tokio::select! {
                prefix = advertised(&interface) => prefix,
                () = unused => return,
            };
            let Some(servers) = servers.upgrade() else { return };
            let mut learnt = servers.learnt();
            let said = learnt.said.entry(network).or_default();
            said.nat64.extend(prefix.filter(|prefix| !said.nat64.contains(prefix)));
            drop(learnt);
            servers.news.send_replace(());
        });
    }

    fn learnt(&self) -> MutexGuard<'_, Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this network is to be asked now.
    fn begin(&self, network: Option<String>) -> bool {
        let mut learnt = self.learnt();
        let said = learnt.said.entry(network).or_default();
        let is_due = said.next.is_none_or(|(next, _)| next <= Instant::now());
        let begins = is_due && !said.is_asked;
        said.is_asked |= begins;
        begins
    }

    fn end(&self, network: Option<String>) {
        let mut learnt = self.learnt();
        let said = learnt.said.entry(network).or_default();
        said.is_asked = false;
        let knows = !said.addresses.is_empty() || !said.nat64.is_empty();
        let pause = match said.next {
            Some((_, pause)) if !knows => (pause * 2).min(ASK_AGAIN.1),
            _ => ASK_AGAIN.0,
        };
        said.next = Some((Instant::now() + pause, pause));
        drop(learnt);
        self.news.send_replace(());
    }

    async fn ask_system(&self) {
        let names = self.named.iter().enumerate().filter(|(_, server)| server.ip().is_none());
        for (index, server) in names {
            let lookup = lookup_host((server.host.as_str(), server.port));
            match timeout(LOOKUP_TIME, lookup).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
            {
                Ok(found) => {
                    let found: Vec<SocketAddr> = found.collect();
                    self.known.remember(server, &found);
                    self.learn(None, index, found.iter().map(SocketAddr::ip).collect());
                }
                Err(error) => {
                    let host = server.host.clone();
                    tracing::debug!(%host, %error, "a server's name cannot be looked up");
                    self.learnt().failure = Some((host, error));
                }
            }
        }
    }

    /// Asks the name servers of one network, through its own interface.
    async fn ask_network(&self, interface: String, wants_nat64: bool) {
        let network = Network { interface, mark: self.mark };
        if wants_nat64 {
            let prefixes = network.nat64().await;
            let mut learnt = self.learnt();
            let said = learnt.said.entry(Some(network.interface.clone())).or_default();
            for prefix in prefixes {
                if !said.nat64.contains(&prefix) {
                    said.nat64.push(prefix);
                }
            }
        }
        let names = self.named.iter().enumerate().filter(|(_, server)| server.ip().is_none());
        for (index, server) in names {
            let (sender, mut answers) = mpsc::unbounded_channel();
            let asking = network.look_up(&server.host, sender);
            let learning = async {
                let mut all = Vec::new();
                while let Some(answer) = answers.recv().await {
                    for address in answer {
                        if !all.contains(&address) {
                            all.push(address);
                        }
                    }
                    self.learn(Some(network.interface.clone()), index, all.clone());
                }
            };
            tokio::join!(asking, learning);
        }
    }

    fn learn(&self, network: Option<String>, index: usize, addresses: Vec<IpAddr>) {
        if addresses.is_empty() {
            return;
        }
        self.learnt().said.entry(network).or_default().addresses.insert(index, addresses);
        self.news.send_replace(());
    }

    /// The server has answered at this address: it stays known.
    pub(crate) fn prove(&self, remote: SocketAddr) {
        let learnt = self.learnt();
        let of = |(index, server): (usize, &ServerAddress)| {
            let is_name = server.ip().is_none() && server.port == remote.port();
            let known = || self.all_of(&learnt, None, index);
            (is_name && known().contains(&remote.ip())).then(|| server.clone())
        };
        let server = self.named.iter().enumerate().find_map(of);
        drop(learnt);
        if let Some(server) = server {
            self.known.prove(&server, remote);
        }
    }

    /// Where the servers are, as far as it is known.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        let learnt = self.learnt();
        let all = (0..self.named.len()).flat_map(|index| self.all_of(&learnt, None, index));
        let all: Vec<IpAddr> = all.collect();
        let ipv4: Vec<_> = all.iter().filter_map(ipv4).collect();
        let prefixes = learnt.said.values().flat_map(|said| &said.nat64);
        let translated =
            prefixes.flat_map(|prefix| ipv4.iter().map(|address| prefix.embed(*address)));
        let translated: Vec<IpAddr> = translated.map(IpAddr::V6).collect();
        [all, translated].concat()
    }

    /// The addresses of one server for a network, most preferred first: of a name, what the network says
    /// itself, where the server has proven its key, and what others say.
    fn all_of(&self, learnt: &Learnt, network: Option<&str>, index: usize) -> Vec<IpAddr> {
        let Some(server) = self.named.get(index) else { return Vec::new() };
        if let Some(ip) = server.ip() {
            return vec![ip];
        }
        let said = |said: &Said| said.addresses.get(&index).cloned().unwrap_or_default();
        let mut own = Vec::new();
        let mut others = learnt.said.get(&None).map(said).unwrap_or_default();
        for (name, answers) in learnt.said.iter().filter(|(name, _)| name.is_some()) {
            let list = if name.as_deref() == network { &mut own } else { &mut others };
            list.extend(said(answers));
        }
        let known = self.known.addresses(server);
        let known: Vec<IpAddr> = known.iter().map(SocketAddr::ip).collect();
        own.sort_by_key(|address| !known.contains(address));
        let mut all: Vec<IpAddr> = Vec::new();
        for address in own.into_iter().chain(known).chain(others) {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }

    /// The addresses for the `index`-th path, most preferred first: its own server, or the link's
    /// from the `index`-th on, those that its network reaches. Of several addresses of one name, which
    /// may be several servers, it begins with the one that opened the session.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn candidates(
        &self,
        index: usize,
        spec: &PathSpec,
        opener: Option<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, NoServer> {
        if let Some((ip, port)) = spec.server {
            let port = port.or_else(|| self.named.first().map(|server| server.port));
            return Ok(port.map(|port| SocketAddr::new(ip, port)).into_iter().collect());
        }
        let interface = network_of(&spec.local);
        let network = interface.as_ref().map(|interface| interface.name.as_str());
        let learnt = self.learnt();
        let count = self.named.len().max(1);
        let mut all = Vec::new();
        for index in (0..self.named.len()).map(|place| (place + index) % count) {
            let port = self.named[index].port;
            let of = self.all_of(&learnt, network, index);
            let mut of: Vec<_> = of.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
            of.sort_by_key(|address| Some(*address) != opener);
            all.extend(of);
        }
        let said = network.and_then(|name| learnt.said.get(&Some(name.to_owned())));
        let reach = Reach::of(&spec.local, interface.as_ref(), said);
        reach.candidates(&all).ok_or_else(|| match all.is_empty() {
            true => NoServer::Unresolved(self.named.iter().map(|s| s.host.clone()).collect()),
            false => reach.why_none(&all),
        })
    }
}

/// Which addresses a path can dial.
struct Reach {
    ipv4: bool,
    ipv6: bool,
    nat64: Vec<Nat64Prefix>,
    /// Whether its network is being asked for a NAT64 for the first time.
    is_asked: bool,
}

impl Reach {
    fn of(local: &LocalBinding, interface: Option<&Interface>, said: Option<&Said>) -> Self {
        let (ipv4, ipv6) = match (local, interface) {
            (LocalBinding::Address(own), _) => (own.is_ipv4(), own.is_ipv6()),
            (LocalBinding::Interface(_), Some(interface)) => {
                let has = |is_ipv4| interface.addresses.iter().any(|own| own.is_ipv4() == is_ipv4);
                (has(true), has(false))
            }
            // What is not known to be impossible is tried.
            _ => (true, true),
        };
        let nat64 = said.map(|said| said.nat64.clone()).unwrap_or_default();
        Self {
            ipv4,
            ipv6,
            nat64,
            is_asked: said.is_some_and(|said| said.is_asked && said.next.is_none()),
        }
    }

    fn candidates(&self, all: &[SocketAddr]) -> Option<Vec<SocketAddr>> {
        let fits = |address: &&SocketAddr| if address.is_ipv4() { self.ipv4 } else { self.ipv6 };
        let mut found: Vec<SocketAddr> = all.iter().filter(fits).copied().collect();
        if !self.ipv4 {
            let behind = |address: &SocketAddr| {
                let (ip, port) = (ipv4(&address.ip()), address.port());
                let embedded = move |(prefix, ip): (&Nat64Prefix, _)| (prefix.embed(ip), port);
                ip.into_iter().flat_map(move |ip| self.nat64.iter().map(move |p| embedded((p, ip))))
            };
            let translated = all.iter().flat_map(behind).map(SocketAddr::from);
            found.extend(translated);
        }
        (!found.is_empty()).then_some(found)
    }

    fn why_none(&self, all: &[SocketAddr]) -> NoServer {
        let servers = all.iter().map(SocketAddr::ip).collect();
        match (self.ipv4, self.is_asked) {
            (true, _) => NoServer::NoIpv6(servers),
            (false, true) => NoServer::AskingForNat64(servers),
            (false, false) => NoServer::NoNat64(servers),
        }
    }
}

/// Whether IPv6-only networks reach it by a NAT64, if at all.
fn may_be_ipv4(server: &ServerAddress) -> bool {
    server.ip().is_none_or(|ip| ip.is_ipv4())
}

fn ipv4(address: &IpAddr) -> Option<std::net::Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Some(*v4),
        IpAddr::V6(_) => None,
    }
}

/// The interface into whose network a path leads, where that is known.
fn network_of(local: &LocalBinding) -> Option<Interface> {
    match local {
        LocalBinding::Any => None,
        LocalBinding::Address(own) => interfaces::with_address(*own),
        LocalBinding::Interface(name) => {
            interfaces::usable().ok()?.into_iter().find(|interface| interface.name == *name)
        }
    }
}

#[cfg(test)]
#[path = "servers_tests.rs"]
mod tests;
