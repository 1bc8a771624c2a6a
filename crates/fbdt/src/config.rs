//! What a client and a server can be told.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fbdt_proto::{PathLabel, PathPolicy, Priority};
use ipnet::IpNet;
use rustls::pki_types::DnsName;

use crate::dial_memory::DialMemory;
use crate::identity::{Link, ServerAddress, ServerState};
use crate::interfaces::PathInterfaces;
use crate::known_servers::KnownServers;
use crate::left_out::LeftOutInterfaces;
use crate::policies::PathPolicies;
use crate::socket::{CongestionControl, Coupling, LocalBinding};

/// One path of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathSpec {
    /// Name in statistics, at most 32 bytes; usually the interface's or the radio's.
    pub name: String,
    /// Where its sockets leave this machine.
    pub local: LocalBinding,
    /// The server address to use on this path, and its port if not the link's first one; absent:
    /// the link's addresses in turn.
    pub server: Option<(IpAddr, Option<u16>)>,
    /// Whether it carries bytes or stands by for others (F15). With a backup's priority the name may
    /// be at most 24 bytes long.
    pub priority: Priority,
}

impl PathSpec {
    /// What the server is told of it; a policy of its name counts before its own priority.
    pub(crate) fn label(&self, policies: &PathPolicies) -> PathLabel {
        let own = || PathPolicy::of_priority(self.priority);
        let policy = policies.get(&self.name).unwrap_or_else(own);
        PathLabel { name: self.name.clone(), policy }
    }
}

/// A client's configuration. Build it with [`ClientConfig::new`] and change fields.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The server's join link.
    pub link: Link,
    /// The paths. Empty: every usable interface, followed as interfaces come and go.
    pub paths: Vec<PathSpec>,
    /// Interfaces with one of these addresses are no paths when `paths` is empty: those of tunnels.
    pub excluded_addresses: Vec<IpAddr>,
    /// Interfaces that are no paths when `paths` is empty, by name.
    pub excluded_interfaces: Vec<String>,
    /// Interfaces that are paths when `paths` is empty, even where they are tunnels, by name.
    pub wanted_interfaces: Vec<String>,
    /// Is told which interfaces are no paths, and why, when `paths` is empty.
    pub left_out: LeftOutInterfaces,
    /// Where the link's servers have answered, and what their names were last said to stand for.
    pub known_servers: KnownServers,
    /// The name that networks see in TLS's handshake (SNI); absent: the first host of the link that is
    /// one, else none.
    pub server_name: Option<String>,
    /// Application protocols that networks see in TLS's handshake, which the server must know too;
    /// empty: FBDT's own.
    pub alpn: Vec<String>,
    /// What was learnt by dialling the paths: their budgets of attempts hold for all sessions (F18).
    pub dial_memory: DialMemory,
    /// Decides how interfaces are used that become paths when `paths` is empty.
    pub path_interfaces: Option<Arc<dyn PathInterfaces>>,
    /// Interfaces that stand by for others when `paths` is empty, by name or pattern (F15).
    pub backup_interfaces: Vec<(String, Priority)>,
    /// How paths are used, by name; may be changed while sessions live.
    pub policies: PathPolicies,
    /// Congestion control of every socket.
    pub congestion_control: CongestionControl,
    /// Is told which sockets belong to one session; for a congestion control that couples them.
    pub coupling: Option<Arc<dyn Coupling>>,
    /// SO_MARK of every socket (needs CAP_NET_ADMIN), so that routing rules can exempt them.
    pub socket_mark: Option<u32>,
    /// The protocol's parameters.
    pub proto: fbdt_proto::Config,
    /// Lab only: no TLS, no protection from anybody on the way. The link must say so too.
    pub insecure_plaintext: bool,
    /// How long [`connect`](crate::connect) waits for a first path.
    pub connect_timeout: Duration,
}

impl ClientConfig {
    /// The defaults for a link: every usable interface, cubic, TLS unless the link says otherwise
    /// (then [`connect`](crate::connect) refuses until `insecure_plaintext` is set), 15 s.
    pub fn new(link: Link) -> Self {
        Self {
            link,
            paths: Vec::new(),
            excluded_addresses: Vec::new(),
            excluded_interfaces: Vec::new(),
            wanted_interfaces: Vec::new(),
            left_out: LeftOutInterfaces::default(),
            known_servers: KnownServers::default(),
            server_name: None,
            alpn: Vec::new(),
            dial_memory: DialMemory::default(),
            path_interfaces: None,
            backup_interfaces: Vec::new(),
            policies: PathPolicies::default(),
            congestion_control: CongestionControl::default(),
            coupling: None,
            socket_mark: None,
            proto: fbdt_proto::Config::default(),
            insecure_plaintext: false,
            connect_timeout: Duration::from_secs(15),
        }
    }

    /// The name to tell networks in TLS's handshake, if there is one that can be told.
    pub(crate) fn server_name(&self) -> Option<&str> {
        let names = self.link.servers().iter().filter(|server| server.ip().is_none());
        let mut names = self.server_name.iter().chain(names.map(|server| &server.host));
        names.find(|name| DnsName::try_from(name.as_str()).is_ok()).map(String::as_str)
    }
}

/// What strangers and clients may use of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptLimits {
    /// Time for a connection to authenticate itself.
    pub handshake_timeout: Duration,
    /// Connections that may be authenticating at once; more are reset.
    pub max_pending: usize,
    /// Connections of one source that may authenticate at a time (an IPv6 /64 is one source).
    pub max_pending_per_source: usize,
    /// Bytes that a connection may send before it is authenticated.
    pub max_handshake_bytes: usize,
    /// Sessions at once.
    pub max_sessions: usize,
    /// Sessions of one credential: one link does not keep all others out.
    pub max_sessions_per_credential: usize,
    /// Paths of one session.
    pub max_paths: usize,
    /// Memory that all sessions may hold together, in bytes: for receiving, for sending, and for
    /// what they are made of.
    pub max_memory: u64,
    /// Memory for the sessions of one credential; above it the largest of them is closed.
    pub max_memory_per_credential: u64,
}

impl Default for AcceptLimits {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(5),
            max_pending: 1024,
            max_pending_per_source: 256,
            max_handshake_bytes: 16 * 1024,
            max_sessions: 1024,
            max_sessions_per_credential: 256,
            max_paths: 16,
            max_memory: 4 << 30,
            max_memory_per_credential: 2 << 30,
        }
    }
}

/// A server's configuration. Build it with [`ServerConfig::new`] and change fields.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Addresses to listen on; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Addresses, or names, to print in links; empty: those listened on.
    pub advertise: Vec<ServerAddress>,
    /// Application protocols that clients may name in TLS's handshake beside FBDT's own.
    pub alpn: Vec<String>,
    /// Proxies in front of this server: their connections begin with a header of the PROXY protocol, and
    /// limits see the client in it. From other addresses a header is none.
    pub proxies: Vec<IpNet>,
    /// Congestion control of every socket.
    pub congestion_control: CongestionControl,
    /// Is told which sockets belong to one session; for a congestion control that couples them.
    pub coupling: Option<Arc<dyn Coupling>>,
    /// SO_MARK of every socket (needs CAP_NET_ADMIN).
    pub socket_mark: Option<u32>,
    /// The protocol's parameters.
    pub proto: fbdt_proto::Config,
    /// What strangers and clients may use.
    pub limits: AcceptLimits,
    /// Lab only: no TLS, no protection from anybody on the way.
    pub insecure_plaintext: bool,
    /// Key and credentials.
    pub state: ServerState,
}

impl ServerConfig {
    /// The defaults for a state directory and addresses to listen on.
    pub fn new(state: ServerState, listen: Vec<SocketAddr>) -> Self {
        Self {
            listen,
            advertise: Vec::new(),
            alpn: Vec::new(),
            proxies: Vec::new(),
            congestion_control: CongestionControl::default(),
            coupling: None,
            socket_mark: None,
            proto: fbdt_proto::Config::default(),
            limits: AcceptLimits::default(),
            insecure_plaintext: false,
            state,
        }
    }
}
