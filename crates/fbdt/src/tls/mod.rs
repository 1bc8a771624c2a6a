//! TLS 1.3 under every subflow, and the record layer that drives it without a copy too many.

use fbdt_proto::{MESSAGE_VERSION, VERSION};

mod config;
mod pinned;
mod record;

pub use config::TlsConfigError;
pub(crate) use config::{client_config, server_config};
pub(crate) use pinned::KEY_MISMATCH;
pub(crate) use record::{RecordError, RecordLayer, SocketWriter};

/// Name in the server's certificate, and the one that a client without another keeps to itself. It is not
/// checked: the key is pinned.
pub(crate) const SERVER_NAME: &str = "fbdt.invalid";

/// Application protocols, one for each version of the wire format, the best first: the ends agree
/// on a version in TLS's handshake, where nobody in between can lower it.
pub(crate) const ALPN: [(&[u8], u16); 2] = [(b"fbdt/2", MESSAGE_VERSION), (b"fbdt/1", VERSION)];

/// Their names, as TLS wants them.
fn protocols() -> Vec<Vec<u8>> {
    ALPN.iter().map(|(name, _)| name.to_vec()).collect()
}

/// Theirs, and others that stand for the newest version.
fn protocols_with(others: &[String]) -> Vec<Vec<u8>> {
    let others = others.iter().map(|name| name.clone().into_bytes());
    protocols().into_iter().chain(others).collect()
}

/// The version that an agreed protocol stands for: a name that is not FBDT's own was given to both ends.
fn version_of(protocol: &[u8]) -> u16 {
    let known = ALPN.iter().find(|(name, _)| *name == protocol);
    known.map_or(MESSAGE_VERSION, |(_, version)| *version)
}

/// What both ends say when there is no such version.
pub(crate) const NO_COMMON_VERSION: &str = "the peer speaks no version of FBDT that this program does (fbdt/2, fbdt/1); update the older side, or give both ends the same --alpn";
