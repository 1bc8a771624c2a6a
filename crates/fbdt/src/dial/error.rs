//! Why a client is not connected.

use std::io;
use std::time::Duration;

use fbdt_proto::handshake::RefuseCode;

use crate::socket::SocketError;
use crate::subflow::{ConnectionError, HandshakeError};
use crate::tls::{KEY_MISMATCH, NO_COMMON_VERSION, RecordError, TlsConfigError};

/// What became of one path's attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFailure {
    /// The path's name.
    pub path: String,
    /// What its last attempt failed with.
    pub reason: String,
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
    #[error("{KEY_MISMATCH}")]
    WrongKey,
    /// The server does not know the credential's secret.
    #[error(
        "the server does not know the credential's secret; the address belongs to somebody else, or the link is damaged"
    )]
    WrongProof,
    /// Client and server have no version of the wire format in common.
    #[error("{NO_COMMON_VERSION}")]
    NoCommonVersion,
    /// The server refused.
    #[error("the server refused ({code:?}): {reason}{}", refusal_advice(*.code))]
    Refused {
        /// Why, as a code.
        code: RefuseCode,
        /// Why, in words.
        reason: String,
    },
}

fn refusal_advice(code: RefuseCode) -> &'static str {
    match code {
        RefuseCode::Authentication => "; a revoked credential needs a new link",
        _ => "",
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
pub(super) enum DialError {
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    #[error("no answer from {remote} within {waited:?}")]
    Silent { remote: std::net::SocketAddr, waited: Duration },
    #[error("none of the server's addresses has an address family of this path")]
    NoServer,
}

impl From<ConnectionError> for DialError {
    fn from(error: ConnectionError) -> Self {
        HandshakeError::from(error).into()
    }
}

impl DialError {
    /// The error that trying again will not cure, if this is one.
    pub(super) fn permanent(&self) -> Option<ConnectError> {
        let Self::Handshake(error) = self else {
            return None;
        };
        match error {
            HandshakeError::Connection(ConnectionError::Record(RecordError::KeyMismatch)) => {
                Some(ConnectError::WrongKey)
            }
            HandshakeError::Connection(ConnectionError::Record(RecordError::NoCommonVersion)) => {
                Some(ConnectError::NoCommonVersion)
            }
            HandshakeError::Proof => Some(ConnectError::WrongProof),
            HandshakeError::Refused { code, reason } if *code != RefuseCode::Busy => {
                Some(ConnectError::Refused { code: *code, reason: reason.clone() })
            }
            _ => None,
        }
    }

    /// Whether the server, proven to be the right one, said no for good.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.permanent(), Some(ConnectError::Refused { .. }))
    }
}
