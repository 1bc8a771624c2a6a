//! Addresses of names as one of the machine's networks knows them, and of IPv4 servers behind its
//! NAT64. Each network is asked through its own interface: the name server of another one may be out of
//! reach, or answer with addresses that are good there only (a captive portal's).

mod name_servers;
mod nat64;
mod pref64;
mod query;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub(crate) use nat64::Nat64Prefix;
pub(crate) use pref64::advertised;
use query::{Kind, ask};

/// The name with which a NAT64 is found, and its addresses (RFC 7050).
const WELL_KNOWN_NAME: &str = "ipv4only.arpa";

/// One of the machine's networks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Network {
    /// The interface that leads into it.
    pub(crate) interface: String,
    /// SO_MARK of questions, so that rules of this machine can let them out.
    pub(crate) mark: Option<u32>,
}

impl Network {
    /// Asks each name server that there is for a name; sends what each of them says as it comes, and ends
    /// when none is left to answer.
    pub(crate) async fn look_up(&self, host: &str, answers: mpsc::UnboundedSender<Vec<IpAddr>>) {
        let mut asking = self.ask_all(host);
        while let Some(asked) = asking.join_next().await {
            if let Ok((_, Some(found))) = asked
                && !found.is_empty()
            {
                // Whoever asked may have gone.
                let _ = answers.send(found);
            }
        }
    }

    /// Every name server that there is, and what it says of a name; `None` where it does not answer.
    pub(crate) async fn answers(&self, host: &str) -> Vec<(SocketAddr, Option<Vec<IpAddr>>)> {
        let mut known: BTreeMap<SocketAddr, Option<Vec<IpAddr>>> = BTreeMap::new();
        for (server, answer) in self.ask_all(host).join_all().await {
            let said = known.entry(server).or_default();
            if let Some(found) = answer {
                said.get_or_insert_default().extend(found);
            }
        }
        known.into_iter().collect()
    }

    /// Asks each name server that there is, for both families.
    fn ask_all(&self, host: &str) -> JoinSet<(SocketAddr, Option<Vec<IpAddr>>)> {
        let mut asking = JoinSet::new();
        for server in name_servers::of(&self.interface) {
            for kind in [Kind::Ipv4, Kind::Ipv6] {
                let (network, host) = (self.clone(), host.to_owned());
                asking.spawn(async move {
                    let answer = ask(&network, server, &host, kind).await.inspect_err(|error| {
                        let interface = &network.interface;
                        tracing::debug!(%server, %host, interface, %error, "no answer to a name");
                    });
                    (server, answer.ok())
                });
            }
        }
        asking
    }

    /// The prefixes of the network's NAT64, as its name servers know them (RFC 7050).
    pub(crate) async fn nat64(&self) -> Vec<Nat64Prefix> {
        let (answers, mut found) = mpsc::unbounded_channel();
        self.look_up(WELL_KNOWN_NAME, answers).await;
        let mut prefixes: Vec<Nat64Prefix> = Vec::new();
        while let Ok(addresses) = found.try_recv() {
            prefixes.extend(addresses.into_iter().filter_map(Nat64Prefix::of_well_known));
        }
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes
    }
}
