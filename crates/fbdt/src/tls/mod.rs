//! TLS 1.3 under every subflow, and the record layer that drives it without a copy too many.

mod config;
mod pinned;
mod record;

pub use config::TlsConfigError;
pub(crate) use config::{client_config, server_config};
pub(crate) use pinned::KEY_MISMATCH;
pub(crate) use record::{RecordError, RecordLayer, SocketWriter};

/// Name in the server's certificate. It is not checked: the key is pinned.
pub(crate) const SERVER_NAME: &str = "fbdt.invalid";

/// Application protocol: a server that speaks something else is told apart at once.
pub(crate) const ALPN: &[u8] = b"fbdt/1";
