//! The server's end: accepts connections, authenticates them, and gathers them into sessions.
//!
//! Nothing that a stranger sends reaches a session: each connection authenticates itself in a task
//! of its own, within limits of time, bytes and number ([`AcceptLimits`](crate::AcceptLimits)).

mod admission;
mod greet;
mod registry;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::admission::Admission;
use self::greet::Greeter;
use self::registry::Registry;
use crate::config::ServerConfig;
use crate::identity::{Credential, Link, ServerAddress, ServerState};
use crate::interfaces;
use crate::session::Session;
use crate::socket::{self, SocketError, SocketOptions, reset_on_close};
use crate::tls::{self, TlsConfigError};

/// Close code of sessions whose credential was revoked.
pub const CLOSE_REVOKED: u32 = 0x20;

/// How often revocations are looked for.
const REVOCATION_INTERVAL: Duration = Duration::from_millis(500);

/// Pause after the system could not accept (out of descriptors, usually).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server could not start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// No address to listen on.
    #[error("there is no address to listen on; give at least one, for example [::]:4433")]
    NoAddress,
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: SocketError,
    },
    /// The protocol's parameters are wrong.
    #[error(transparent)]
    Config(#[from] fbdt_proto::ConfigError),
    /// TLS cannot be configured.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
}

/// No session can be accepted any more.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AcceptError {
    /// The listener's sockets are gone.
    #[error("the listener is closed")]
    Closed,
}

/// A server that accepts sessions. Dropping it stops accepting; sessions go on, but no new subflow
/// joins them.
pub struct Listener {
    addresses: Vec<SocketAddr>,
    advertise: Vec<SocketAddr>,
    state: ServerState,
    insecure: bool,
    sessions: UnboundedReceiver<Session>,
    /// Aborted when dropped.
    _tasks: JoinSet<()>,
}

impl Listener {
    /// Listens on every address of the configuration.
    ///
    /// # Errors
    /// [`BindError`] if one of them, the congestion control or TLS cannot be had.
    #[allow(clippy::unused_async)] // needs tokio's context, which an async function has
    pub async fn bind(config: ServerConfig) -> Result<Self, BindError> {
        config.proto.validate()?;
        let options = SocketOptions {
            congestion_control: config.congestion_control.clone(),
            mark: config.socket_mark,
        };
        let listeners = config
            .listen
            .iter()
            .map(|&address| {
                socket::listen(address, &options)
                    .map_err(|source| BindError::Listen { address, source })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<SocketAddr> =
            listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        if addresses.is_empty() {
            return Err(BindError::NoAddress);
        }
        let (sender, sessions) = unbounded_channel();
        let tls = match config.insecure_plaintext {
            true => None,
            false => Some(tls::server_config(config.state.key())?),
        };
        let (advertise, state) = (config.advertise.clone(), config.state.clone());
        let insecure = config.insecure_plaintext;
        let greeter = Arc::new(Greeter {
            registry: Arc::new(Registry::new(config.limits.max_sessions)),
            tls,
            sessions: sender,
            config,
        });
        Ok(Self {
            addresses,
            advertise,
            state,
            insecure,
            sessions,
            _tasks: start(greeter, listeners, options),
        })
    }

    /// The addresses listened on, with their ports.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The join link for a credential, with the addresses to advertise. Where a listener has the
    /// unspecified address, the addresses of this machine's interfaces stand for it.
    pub fn link(&self, credential: &Credential) -> Link {
        let addresses = match self.advertise.as_slice() {
            [] => self.addresses.iter().flat_map(|a| reachable(*a)).collect(),
            given => given.to_vec(),
        };
        let servers = addresses.into_iter().map(ServerAddress::from).collect();
        let fingerprint = (!self.insecure).then(|| self.state.fingerprint());
        Link::new(servers, fingerprint, credential)
    }

    /// The next session that a client opened.
    ///
    /// # Errors
    /// [`AcceptError`] if there will be none.
    pub async fn accept(&mut self) -> Result<Session, AcceptError> {
        self.sessions.recv().await.ok_or(AcceptError::Closed)
    }
}

fn reachable(address: SocketAddr) -> Vec<SocketAddr> {
    if !address.ip().is_unspecified() {
        return vec![address];
    }
    let found: Vec<SocketAddr> = interfaces::usable()
        .into_iter()
        .flat_map(|interface| interface.addresses)
        .filter(|ip| ip.is_ipv4() == address.is_ipv4())
        .map(|ip| SocketAddr::new(ip, address.port()))
        .take(8)
        .collect();
    if found.is_empty() { vec![address] } else { found }
}

fn start(
    greeter: Arc<Greeter>,
    listeners: Vec<TcpListener>,
    options: SocketOptions,
) -> JoinSet<()> {
    let limits = &greeter.config.limits;
    let admission = Admission::new(limits.max_pending, limits.max_pending_per_source);
    let mut tasks = JoinSet::new();
    tasks.spawn(watch_revocations(greeter.clone()));
    for listener in listeners {
        tasks.spawn(accept_loop(listener, greeter.clone(), admission.clone(), options.clone()));
    }
    tasks
}

async fn accept_loop(
    listener: TcpListener,
    greeter: Arc<Greeter>,
    admission: Arc<Admission>,
    options: SocketOptions,
) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => receive(&greeter, &admission, &options, stream, peer),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn receive(
    greeter: &Arc<Greeter>,
    admission: &Arc<Admission>,
    options: &SocketOptions,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let Some(place) = admission.enter(peer.ip()) else {
        tracing::debug!(%peer, "too many connections are authenticating");
        reset_on_close(&stream);
        return;
    };
    if let Err(error) = socket::accepted(&stream, options) {
        tracing::debug!(%peer, %error, "connection dropped");
        return;
    }
    let (greeter, limit) = (greeter.clone(), greeter.config.limits.handshake_timeout);
    tokio::spawn(async move {
        tokio::select! {
            greeted = timeout(limit, greeter.greet(stream)) => match greeted {
                Ok(Ok(())) => {}
                Ok(Err(error)) if error.is_version() => {
                    tracing::info!(%peer, %error, "a client is refused");
                }
                Ok(Err(error)) => tracing::debug!(%peer, %error, "handshake failed"),
                Err(_) => tracing::debug!(%peer, "handshake took too long"),
            },
            () = place.evicted() => tracing::debug!(%peer, "handshake gave way to another source's"),
        }
    });
}

/// Closes the sessions of credentials that are gone: within a second.
async fn watch_revocations(greeter: Arc<Greeter>) {
    loop {
        tokio::time::sleep(REVOCATION_INTERVAL).await;
        for member in greeter.registry.members() {
            if !greeter.config.state.knows(member.credential) {
                member.shared.close(CLOSE_REVOKED, "the credential was revoked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fbdt_proto::{CloseReason, Config, Limits, Role, Session as Protocol};

    use super::registry::Member;
    use super::*;
    use crate::auth::ProofKey;
    use crate::clock::Clock;
    use crate::identity::CredentialLimits;
    use crate::session::Shared;
    use crate::socket::SessionSockets;

    fn member(credential: &Credential) -> Member {
        let clock = Clock::start();
        let limits = Limits::default();
        let protocol = Protocol::new(clock.now(), Role::Server, Config::default(), limits).unwrap();
        let sockets = SessionSockets::default();
        Member {
            shared: Arc::new(Shared::new(clock, protocol, limits.max_frame, sockets)),
            key: ProofKey::of_credential(&credential.secret),
            credential: credential.id,
        }
    }

    /// Time stands still until everybody waits: the second is counted, not measured.
    #[tokio::test(start_paused = true)]
    async fn sessions_of_a_revoked_credential_end_within_a_second_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let credential = |name| state.new_credential(name, CredentialLimits::default()).unwrap();
        let (revoked, kept) = (credential("revoked"), credential("kept"));
        let registry = Arc::new(Registry::new(8));
        let sessions = [member(&revoked), member(&revoked), member(&kept)];
        for (id, session) in (0..).zip(&sessions) {
            assert!(registry.insert([id; 16], session.clone()));
        }
        let (sender, _opened) = unbounded_channel();
        let config = ServerConfig::new(state.clone(), Vec::new());
        let greeter = Arc::new(Greeter { config, tls: None, registry, sessions: sender });
        let _watching = tokio::spawn(watch_revocations(greeter));
        tokio::time::sleep(Duration::from_millis(1700)).await;
        state.revoke(revoked.id).unwrap();
        for session in &sessions[..2] {
            let reason = timeout(Duration::from_secs(1), session.shared.closed()).await.unwrap();
            assert!(matches!(reason, CloseReason::Local { code: CLOSE_REVOKED, .. }), "{reason}");
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(sessions[2].shared.inspect(|inner| inner.closed().is_none()));
    }
}
