//! rustls configurations of both ends.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{Ticketer, cipher_suite, default_provider};
use rustls::{ClientConfig, Error, ServerConfig};

use super::pinned::PinnedKey;
use super::{protocols, protocols_with};
use crate::identity::{KeyFingerprint, ServerKey};

/// Tickets that the server hands out on each connection, and that a client keeps: a redial uses
/// one per attempt.
const TICKETS: usize = 4;

/// rustls refused the configuration.
#[derive(Debug, Clone, thiserror::Error)]
#[error("TLS cannot be configured: {0}")]
pub struct TlsConfigError(#[from] Error);

/// AES-128-GCM first: the cheapest on every processor with AES instructions.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = default_provider();
    provider.cipher_suites = vec![
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    Arc::new(provider)
}

/// A client that trusts one key, tells networks the server's name or not, and offers other application
/// protocols than FBDT's if there are any. Sessions resume; there is no early data, which could be
/// replayed.
pub(crate) fn client_config(
    pinned: KeyFingerprint,
    tells_name: bool,
    alpn: &[String],
) -> Result<Arc<ClientConfig>, TlsConfigError> {
    let provider = provider();
    let verifier = Arc::new(PinnedKey::new(pinned, provider.clone()));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = match alpn {
        [] => protocols(),
        names => names.iter().map(|name| name.clone().into_bytes()).collect(),
    };
    config.enable_sni = tells_name;
    config.enable_early_data = false;
    config.resumption = Resumption::in_memory_sessions(2 * TICKETS);
    Ok(Arc::new(config))
}

/// A server with its one key, stateless tickets and no early data, that also takes these application
/// protocols for FBDT's newest.
pub(crate) fn server_config(
    key: &ServerKey,
    alpn: &[String],
) -> Result<Arc<ServerConfig>, TlsConfigError> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![key.certificate().clone()], key.private_key())?;
    config.alpn_protocols = protocols_with(alpn);
    config.ticketer = Ticketer::new()?;
    config.send_tls13_tickets = TICKETS;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}
