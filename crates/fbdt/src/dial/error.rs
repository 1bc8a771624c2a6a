//! Why a client is not connected.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fbdt_proto::handshake::RefuseCode;

use crate::socket::SocketError;
use crate::subflow::{ConnectionError, HandshakeError};
use crate::tls::{KEY_MISMATCH, NO_COMMON_VERSION, RecordError, TlsConfigError};
use crate::trouble::PathTrouble;

/// What became of one path's attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFailure {
    /// The path's name.
    pub path: String,
    /// What its last attempt failed with.
    pub reason: String,
    /// The kind of that.
    pub trouble: PathTrouble,
}

/// A client could not connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The link and the configuration disagree about plaintext.
    #[error(
        "{}",
        if *.link_is_insecure {
            "the link is for the plaintext lab mode; pass the insecure-plaintext option if this really is a lab, else make a link without it"
        } else {
            "plaintext was asked for, but the link is for TLS; leave the insecure-plaintext option out"
        }
    )]
    Insecure {
        /// Whether it is the link that wants plaintext.
        link_is_insecure: bool,
    },
    /// The protocol's parameters are wrong.
    #[error(transparent)]
    Config(#[from] fbdt_proto::ConfigError),
    /// TLS cannot be configured.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// More paths than can be numbered.
    #[error("{0} paths are configured, at most 255 can be used")]
    TooManyPaths(usize),
    /// No host of the link has an address.
    #[error("cannot resolve {host}: {source}; check the link's host and this machine's DNS")]
    Resolve {
        /// The host.
        host: String,
        /// The reason.
        source: io::Error,
    },
    /// There is no usable interface.
    #[error(
        "no network interface is up with a global or private address and a route to the server, after {0:?}: `ip route` shows the routes"
    )]
    NoInterface(Duration),
    /// No path came up in time.
    #[error("no path reached the server within {waited:?}: {}", list(.failures))]
    NoPath {
        /// How long it was tried.
        waited: Duration,
        /// What each path failed with.
        failures: Vec<PathFailure>,
    },
    /// Every path that there is was withheld ([`PathPolicies`](crate::PathPolicies)): nothing was dialled.
    #[error("every path is withheld from use: {}", .paths.join(", "))]
    Withheld {
        /// Their names.
        paths: Vec<String>,
    },
    /// The server has another key than the link says.
    #[error("{attempt}: {KEY_MISMATCH}")]
    WrongKey {
        /// Which server, over which path.
        attempt: Attempt,
    },
    /// The server does not know the credential's secret.
    #[error(
        "{attempt}: the server does not know the credential's secret; the address belongs to somebody else, or the link is damaged"
    )]
    WrongProof {
        /// Which server, over which path.
        attempt: Attempt,
    },
    /// Client and server have no version of the wire format in common.
    #[error("{attempt}: {NO_COMMON_VERSION}")]
    NoCommonVersion {
        /// Which server, over which path.
        attempt: Attempt,
    },
    /// The server refused, at every address that it has.
    #[error("{attempt}: {}", refusal(*.code, .reason))]
    Refused {
        /// Which server, over which path.
        attempt: Attempt,
        /// Why, as a code.
        code: RefuseCode,
        /// Why, in words.
        reason: String,
    },
}

/// One attempt to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The server's address.
    pub server: SocketAddr,
    /// The path's name.
    pub path: String,
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} over {}", self.server, self.path)
    }
}

fn refusal(code: RefuseCode, reason: &str) -> String {
    match code {
        RefuseCode::Authentication => "the server does not accept the link's credential: it was \
             revoked, or it is another server's; `sumrate credential list` on the server shows those \
             that it accepts"
            .to_owned(),
        _ => format!("the server refused: {reason}"),
    }
}

fn silent_advice(elsewhere: bool) -> &'static str {
    if elsewhere {
        ", which another path reaches: this network is silent, or the server limits new connections"
    } else {
        ""
    }
}

fn list(failures: &[PathFailure]) -> String {
    if failures.is_empty() {
        return "no answer on any path".to_owned();
    }
    let each: Vec<String> =
        failures.iter().map(|failure| format!("{}: {}", failure.path, failure.reason)).collect();
    each.join("; ")
}

/// One attempt to bring up a path failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("{remote}: {source}")]
    Handshake { remote: SocketAddr, source: HandshakeError },
    #[error(
        "{remote} answers probes over {path} but no new connection: its firewall may limit them (`ufw limit`); attempts wait longer"
    )]
    Limited { path: String, remote: SocketAddr },
    #[error("no answer from {remote} within {waited:?}{}", silent_advice(*.elsewhere))]
    Silent {
        remote: SocketAddr,
        waited: Duration,
        /// Whether another path reaches the server.
        elsewhere: bool,
    },
    #[error("{remote} does not know this session: another server answers there")]
    OtherServer { remote: SocketAddr },
    #[error(transparent)]
    NoServer(#[from] NoServer),
}

/// Why a path has no address to dial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoServer {
    #[error("no name server knows an address of {}", .0.join(", "))]
    Unresolved(Vec<String>),
    #[error("it has IPv6 only, and its network is asked for a NAT64 to {}", ips(.0))]
    AskingForNat64(Vec<IpAddr>),
    #[error(
        "it has IPv6 only, its network has no NAT64, and the server has IPv4 addresses only ({}): give the server an IPv6 address (`sumrate serve --listen [::]:PORT`) and use its new link",
        ips(.0)
    )]
    NoNat64(Vec<IpAddr>),
    #[error("it has no IPv6 address, and the server has IPv6 addresses only ({})", ips(.0))]
    NoIpv6(Vec<IpAddr>),
}

impl NoServer {
    /// The kind of it.
    pub(crate) const fn trouble(&self) -> PathTrouble {
        match self {
            Self::Unresolved(_) => PathTrouble::Unresolved,
            Self::AskingForNat64(_) | Self::NoNat64(_) => PathTrouble::NoNat64,
            Self::NoIpv6(_) => PathTrouble::NoFamily,
        }
    }
}

fn ips(list: &[IpAddr]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A path's error that trying again at the same address will not cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Permanent {
    WrongKey,
    WrongProof,
    NoCommonVersion,
    Refused { code: RefuseCode, reason: String },
}

impl Permanent {
    /// The same for whoever connects.
    pub(super) fn of(self, attempt: Attempt) -> ConnectError {
        match self {
            Self::WrongKey => ConnectError::WrongKey { attempt },
            Self::WrongProof => ConnectError::WrongProof { attempt },
            Self::NoCommonVersion => ConnectError::NoCommonVersion { attempt },
            Self::Refused { code, reason } => ConnectError::Refused { attempt, code, reason },
        }
    }

    /// Whether the server, proven to be the right one, said no for good.
    pub(super) const fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

impl DialError {
    /// What went wrong with a connection to this address.
    pub(super) fn at(remote: SocketAddr) -> impl FnOnce(HandshakeError) -> Self {
        move |source| Self::Handshake { remote, source }
    }

    /// The error that trying again at the same address will not cure, if this is one.
    pub(super) fn permanent(&self) -> Option<(SocketAddr, Permanent)> {
        let Self::Handshake { remote, source } = self else {
            return None;
        };
        let permanent = match source {
            HandshakeError::Connection(ConnectionError::Record(RecordError::KeyMismatch)) => {
                Permanent::WrongKey
            }
            HandshakeError::Connection(ConnectionError::Record(RecordError::NoCommonVersion)) => {
                Permanent::NoCommonVersion
            }
            HandshakeError::Proof => Permanent::WrongProof,
            HandshakeError::Refused { code, reason } if *code != RefuseCode::Busy => {
                Permanent::Refused { code: *code, reason: reason.clone() }
            }
            _ => return None,
        };
        Some((*remote, permanent))
    }

    /// Whether the server, proven to be the right one, said no for good.
    pub(super) fn is_refusal(&self) -> bool {
        self.permanent().is_some_and(|(_, permanent)| permanent.is_refusal())
    }

    /// The kind of it.
    pub(crate) fn trouble(&self) -> PathTrouble {
        let of_system = |error: &io::Error| match error.kind() {
            io::ErrorKind::ConnectionRefused => PathTrouble::ConnectionRefused,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                PathTrouble::Unreachable
            }
            io::ErrorKind::TimedOut => PathTrouble::NoAnswer,
            _ => PathTrouble::Other,
        };
        match self {
            Self::Socket(SocketError::Connect { source, .. }) => of_system(source),
            Self::Socket(_) => PathTrouble::Other,
            Self::Handshake { source, .. } => match source {
                HandshakeError::Connection(ConnectionError::Record(RecordError::KeyMismatch))
                | HandshakeError::Proof => PathTrouble::OtherKey,
                HandshakeError::Refused { .. } => PathTrouble::Refused,
                HandshakeError::Timeout(_) => PathTrouble::NoAnswer,
                HandshakeError::Connection(ConnectionError::Io(error)) => of_system(error),
                _ => PathTrouble::Other,
            },
            Self::Silent { .. } => PathTrouble::NoAnswer,
            Self::Limited { .. } => PathTrouble::Limited,
            Self::OtherServer { .. } => PathTrouble::OtherServer,
            Self::NoServer(none) => none.trouble(),
        }
    }
}
