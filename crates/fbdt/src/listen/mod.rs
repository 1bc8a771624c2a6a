//! The server's end: accepts connections, authenticates them, and gathers them into sessions.
//!
//! Nothing that a stranger sends reaches a session: each connection authenticates itself in a task
//! of its own, within limits of time, bytes and number ([`AcceptLimits`](crate::AcceptLimits)).

mod admission;
mod echo;
mod greet;
mod proxied;
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
use self::registry::{Member, Registry};
use crate::config::ServerConfig;
use crate::identity::{Credential, Link, ServerAddress, ServerState};
use crate::interfaces;
use crate::memory::{Excess, Ledger};
use crate::session::{Inner, Session};
use crate::socket::{self, SocketError, SocketOptions};
use crate::tls::{self, TlsConfigError};

/// Close code of sessions whose credential was revoked.
pub const CLOSE_REVOKED: u32 = 0x20;

/// Close code of sessions that hold more memory than the server has for them.
pub const CLOSE_MEMORY: u32 = 0x22;

/// Longest wait for a closed session's memory, before another session is closed.
const RELEASE_TIME: Duration = Duration::from_secs(2);

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
    #[error("cannot listen on {address}: {reason}", reason = reason(.source))]
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

/// Why a socket cannot listen, without the address, which is said already.
fn reason(error: &SocketError) -> String {
    match error {
        SocketError::Address { source, .. } => source.to_string(),
        other => other.to_string(),
    }
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
    advertise: Vec<ServerAddress>,
    state: ServerState,
    insecure: bool,
    sessions: tokio::sync::Mutex<UnboundedReceiver<Session>>,
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
            false => Some(tls::server_config(config.state.key(), &config.alpn)?),
        };
        let (advertise, state) = (config.advertise.clone(), config.state.clone());
        let insecure = config.insecure_plaintext;
        let limits = &config.limits;
        let greeter = Arc::new(Greeter {
            registry: Arc::new(Registry::new(
                limits.max_sessions,
                limits.max_sessions_per_credential,
            )),
            ledger: Ledger::new(limits.max_memory, limits.max_memory_per_credential),
            tls,
            sessions: sender,
            config,
        });
        Ok(Self {
            addresses,
            advertise,
            state,
            insecure,
            sessions: tokio::sync::Mutex::new(sessions),
            _tasks: start(greeter, listeners, &options),
        })
    }

    /// The addresses listened on, with their ports.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The join link for a credential, with the addresses to advertise. Where a listener has the
    /// unspecified address, the addresses of this machine's interfaces stand for it.
    pub fn link(&self, credential: &Credential) -> Link {
        let servers = match self.advertise.as_slice() {
            [] => {
                let addresses = self.addresses.iter().flat_map(|address| reachable(*address));
                addresses.map(ServerAddress::from).collect()
            }
            given => given.to_vec(),
        };
        let fingerprint = (!self.insecure).then(|| self.state.fingerprint());
        Link::new(servers, fingerprint, credential)
    }

    /// The next session that a client opened. Several tasks may wait; each session goes to one of them.
    /// Dropping the future loses none.
    ///
    /// # Errors
    /// [`AcceptError`] if there will be none.
    pub async fn accept(&self) -> Result<Session, AcceptError> {
        self.sessions.lock().await.recv().await.ok_or(AcceptError::Closed)
    }
}

fn reachable(address: SocketAddr) -> Vec<SocketAddr> {
    if !address.ip().is_unspecified() {
        return vec![address];
    }
    let found: Vec<SocketAddr> = interfaces::usable()
        .into_iter()
        .flatten()
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
    options: &SocketOptions,
) -> JoinSet<()> {
    let limits = &greeter.config.limits;
    let admission = Admission::new(limits.max_pending, limits.max_pending_per_source);
    let mut tasks = JoinSet::new();
    tasks.spawn(watch_revocations(greeter.clone()));
    tasks.spawn(watch_memory(greeter.clone()));
    let addresses: Vec<SocketAddr> =
        listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    for socket in echo::sockets(&addresses, options) {
        tasks.spawn(echo::echo_loop(socket, greeter.registry.echoes()));
    }
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
            Ok((stream, peer)) if proxied::is_proxy(&greeter.config.proxies, peer) => {
                let (greeter, admission) = (greeter.clone(), admission.clone());
                let (options, limit) = (options.clone(), greeter.config.limits.handshake_timeout);
                tokio::spawn(async move {
                    if let Some((stream, peer)) = proxied::introduced(stream, peer, limit).await {
                        receive(&greeter, &admission, &options, stream, peer);
                    }
                });
            }
            Ok((stream, peer)) => {
                receive(&greeter, &admission, &options, stream, peer);
                // A connection that gave way is closed before the next one is accepted.
                tokio::task::yield_now().await;
            }
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
    let place = admission.enter(peer.ip());
    if let Err(error) = socket::accepted(&stream, options) {
        tracing::debug!(%peer, %error, "connection dropped");
        return;
    }
    let (greeter, limit) = (greeter.clone(), greeter.config.limits.handshake_timeout);
    let admission = admission.clone();
    tokio::spawn(async move {
        tokio::select! {
            greeted = timeout(limit, place.paced(greeter.greet(stream, peer))) => match greeted {
                Ok(Ok(())) => {}
                Ok(Err(error)) if error.is_authentication() => {
                    admission.note_impostor(peer.ip());
                    tracing::debug!(%peer, %error, "handshake failed");
                }
                Ok(Err(error)) if error.is_version() => {
                    tracing::info!(%peer, %error, "a client is refused");
                }
                Ok(Err(error)) => tracing::debug!(%peer, %error, "handshake failed"),
                Err(_) => tracing::debug!(%peer, "handshake took too long"),
            },
            () = place.evicted() => tracing::debug!(%peer, "handshake gave way to another one"),
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

/// Closes the largest session of a credential that holds too much memory, and waits for its end:
/// one session at a time, until no limit is exceeded.
async fn watch_memory(greeter: Arc<Greeter>) {
    loop {
        greeter.ledger.exceeded().await;
        while let Some(excess) = greeter.ledger.offender() {
            match close_largest(&greeter.registry, excess) {
                Some(released) => drop(timeout(RELEASE_TIME, released).await),
                // Its sessions are closed already, and hold memory still.
                None => tokio::time::sleep(RELEASE_TIME).await,
            }
        }
    }
}

/// Closes the session that holds most of the credential's memory. The future ends when all of it is
/// free.
fn close_largest(
    registry: &Registry,
    Excess { credential, held, limit }: Excess,
) -> Option<impl Future<Output = ()> + use<>> {
    let open = |member: &Member| member.shared.inspect(|inner| inner.closed().is_none());
    let members = registry.members();
    let own = members.iter().filter(|member| member.credential == credential && open(member));
    let member = own.max_by_key(|member| member.shared.inspect(Inner::memory))?;
    let released = member.shared.inspect(Inner::released)?;
    tracing::warn!(%credential, held, limit, "clients hold too much memory: the largest session of the credential that holds most is closed");
    member.shared.close(CLOSE_MEMORY, "its sessions hold too much of the server's memory");
    Some(released)
}

#[cfg(test)]
mod tests {
    use fbdt_proto::handshake::Join;
    use fbdt_proto::{Class, CloseReason, Config, Limits, PathId, Role, Session as Protocol};

    use super::registry::Full;
    use super::*;
    use crate::auth::ProofKey;
    use crate::clock::Clock;
    use crate::identity::CredentialLimits;
    use crate::memory::{Lease, MemoryReservation};
    use crate::session::Shared;
    use crate::socket::SessionSockets;

    fn shared() -> Shared {
        let clock = Clock::start();
        let limits = Limits::default();
        let protocol = Protocol::new(clock.now(), Role::Server, Config::default(), limits).unwrap();
        Shared::new(clock, protocol, limits.max_frame, SessionSockets::default())
    }

    /// A session that was made so long ago, and has had no path since.
    fn left_alone(age: Duration) -> Shared {
        let (clock, limits) = (Clock::started_before(age), Limits::default());
        let begin = fbdt_proto::Instant::ZERO;
        let protocol = Protocol::new(begin, Role::Server, Config::default(), limits).unwrap();
        Shared::new(clock, protocol, limits.max_frame, SessionSockets::default())
    }

    fn member(credential: &Credential) -> Member {
        of_session(credential, shared())
    }

    fn leased(credential: &Credential, lease: Lease) -> Member {
        of_session(credential, shared().leased(lease))
    }

    fn of_session(credential: &Credential, shared: Shared) -> Member {
        Member {
            shared: Arc::new(shared),
            key: ProofKey::of_credential(&credential.secret),
            credential: credential.id,
        }
    }

    /// Two sessions of a credential above its limit of memory: one has 20 MiB of reservations, the
    /// other one has 1 MiB to send.
    struct Crowded {
        greeter: Arc<Greeter>,
        reserving: Member,
        sending: Member,
        reservation: MemoryReservation,
        _rest: Lease,
    }

    impl Crowded {
        fn new(state: &ServerState) -> Self {
            let credential = state.new_credential("a", CredentialLimits::default()).unwrap();
            let greeter = greeter(state);
            let lease = || greeter.ledger.lease(credential.id).unwrap();
            let [reserving, sending] = [lease(), lease()].map(|lease| leased(&credential, lease));
            for (id, member) in (0..).zip([&reserving, &sending]) {
                greeter.registry.insert([id; 16], member.clone()).unwrap();
            }
            sending.shared.update(|inner, now| {
                let stream = inner.protocol.open_stream(now, Class::Background).unwrap();
                assert_eq!(inner.protocol.write(now, stream, &[0; 1 << 20]), Ok(1 << 20));
            });
            let reservation = reserving.shared.inspect(|inner| inner.reserve(20 << 20)).unwrap();
            let mut rest = lease();
            rest.note(12 << 20, 0);
            Self { greeter, reserving, sending, reservation, _rest: rest }
        }
    }

    fn is_open(member: &Member) -> bool {
        member.shared.inspect(|inner| inner.closed().is_none())
    }

    #[tokio::test(start_paused = true)]
    async fn reservations_count_for_the_largest_session() {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let Crowded { greeter, reserving, sending, reservation, _rest } = Crowded::new(&state);
        let _watching = tokio::spawn(watch_memory(greeter));
        let reason = reserving.shared.closed().await;
        assert!(matches!(reason, CloseReason::Local { code: CLOSE_MEMORY, .. }), "{reason}");
        assert!(is_open(&sending));
        // The relays of its connections end a moment later.
        tokio::time::sleep(RELEASE_TIME / 2).await;
        assert!(is_open(&sending));
        drop(reservation);
        tokio::time::sleep(RELEASE_TIME * 2).await;
        assert!(is_open(&sending), "its memory was enough");
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_session_closes_where_memory_stays_held() {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let crowded = Crowded::new(&state);
        let _watching = tokio::spawn(watch_memory(crowded.greeter));
        crowded.reserving.shared.closed().await;
        let second = crowded.sending.shared.closed();
        assert!(timeout(RELEASE_TIME * 2, second).await.is_ok());
        drop(crowded.reservation);
    }

    /// A server with room for four sessions, two of a credential, of two paths each.
    fn greeter(state: &ServerState) -> Arc<Greeter> {
        let mut config = ServerConfig::new(state.clone(), Vec::new());
        config.limits.max_paths = 2;
        let registry = Arc::new(Registry::new(4, 2));
        let ledger = Ledger::new(64 << 20, 32 << 20);
        let (sessions, _) = unbounded_channel();
        Arc::new(Greeter { config, tls: None, registry, ledger, sessions })
    }

    #[tokio::test]
    async fn one_credential_does_not_take_all_sessions() {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let credential = |name| state.new_credential(name, CredentialLimits::default()).unwrap();
        let [one, two, three] = ["one", "two", "three"].map(credential);
        let greeter = greeter(&state);
        let insert = |id, of| greeter.registry.insert([id; 16], member(of));
        assert_eq!([insert(0, &one), insert(1, &one)], [Ok(()), Ok(())]);
        assert_eq!(insert(2, &one), Err(Full::Credential));
        assert_eq!([insert(3, &two), insert(4, &two)], [Ok(()), Ok(())], "others come in");
        assert_eq!(insert(5, &three), Err(Full::Server));
        greeter.registry.remove(&[0; 16]);
        assert_eq!(insert(6, &one), Ok(()), "a place that is free again");
    }

    /// A client whose machine vanished leaves its session behind; it comes back with another one.
    #[tokio::test]
    async fn sessions_without_a_path_give_way_where_there_is_no_place() {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let credential = |name| state.new_credential(name, CredentialLimits::default()).unwrap();
        let [one, two, three] = ["one", "two", "three"].map(credential);
        let greeter = greeter(&state);
        let left = |of, seconds| of_session(of, left_alone(Duration::from_secs(seconds)));
        let insert = |id, of: &Member| greeter.registry.insert([id; 16], of.clone());
        let (longest, long) = (left(&one, 7), left(&one, 6));
        assert_eq!([insert(0, &longest), insert(1, &long)], [Ok(()), Ok(())]);
        assert_eq!(insert(2, &member(&one)), Ok(()));
        assert!(!is_open(&longest) && is_open(&long), "without a path for longest");
        assert_eq!(insert(3, &member(&one)), Ok(()));
        assert_eq!(insert(4, &left(&one, 1)), Err(Full::Credential), "they may have one soon");
        let other = left(&two, 6);
        assert_eq!([insert(5, &other), insert(6, &member(&two))], [Ok(()), Ok(())]);
        assert_eq!(insert(7, &member(&three)), Ok(()), "of all credentials");
        assert!(!is_open(&other) && greeter.registry.get(&[5; 16]).is_none());
        assert_eq!(insert(8, &member(&three)), Err(Full::Server));
    }

    /// Nobody waits for a connection to be added before the next one is judged.
    #[tokio::test]
    async fn joins_that_come_together_are_counted_together() {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let credential = state.new_credential("a", CredentialLimits::default()).unwrap();
        let (greeter, member) = (greeter(&state), member(&credential));
        let (session, exporter) = ([7; 16], [0; 32]);
        greeter.registry.insert(session, member.clone()).unwrap();
        let admit = |path| {
            let proof = member.key.join(&exporter, PathId(path));
            let join = Join { session, path: PathId(path), path_name: String::new(), proof };
            greeter.admit(&join, &exporter).is_ok()
        };
        assert_eq!([1, 2, 3, 4, 2, 1].map(admit), [true, true, false, false, true, true]);
    }

    /// Time stands still until everybody waits: the second is counted, not measured.
    #[tokio::test(start_paused = true)]
    async fn sessions_of_a_revoked_credential_end_within_a_second_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let credential = |name| state.new_credential(name, CredentialLimits::default()).unwrap();
        let (revoked, kept) = (credential("revoked"), credential("kept"));
        let greeter = greeter(&state);
        let sessions = [member(&revoked), member(&revoked), member(&kept)];
        for (id, session) in (0..).zip(&sessions) {
            greeter.registry.insert([id; 16], session.clone()).unwrap();
        }
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
