//! From a connected socket to a subflow of the session: TLS, then Hello or Join.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fbdt_proto::handshake::{HandshakeMessage, Hello, Join, SessionId};
use fbdt_proto::{MESSAGE_VERSION, PathId, PathLabel, Role};
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, oneshot, watch};
use tokio::time::{Instant, timeout};

use super::error::DialError;
use crate::auth::{self, Exporter, ProofKey};
use crate::clock::Clock;
use crate::config::{ClientConfig, PathSpec};
use crate::dial_memory::DialMemory;
use crate::echo::EchoKey;
use crate::session::{Session, Shared};
use crate::socket::{self, CongestionControl, SessionSockets, SocketOptions};
use crate::subflow::{
    Connection, ConnectionError, Established, HandshakeError, Incoming, exchange, secure,
};
use crate::tls::RecordLayer;

/// Bytes that a server may send before it is known to be one.
const MAX_HANDSHAKE_BYTES: usize = 64 * 1024;

/// How long TLS may take, or so many times as long as TCP took on a slow path.
const TLS_TIME: Duration = Duration::from_secs(3);
const TLS_PART: u32 = 8;

/// How long one path may hold up the others with its Hello, or as long as for a join where its
/// handshake took longer.
const HELLO_TIME: Duration = Duration::from_secs(2);

/// The session that paths join, once one of them has opened it.
#[derive(Clone)]
pub(super) struct Membership {
    pub(super) shared: Arc<Shared>,
    id: SessionId,
    key: ProofKey,
}

impl Membership {
    /// What a path is probed with.
    pub(super) fn echo(&self, path: PathId) -> EchoKey {
        EchoKey::new(&self.key, path)
    }
}

/// Brings connections into one session; whoever comes first opens it.
pub(crate) struct Enrolment {
    config: ClientConfig,
    tls: Option<Arc<rustls::ClientConfig>>,
    options: SocketOptions,
    membership: OnceCell<Membership>,
    formed: watch::Sender<bool>,
    opened: Mutex<Option<oneshot::Sender<Session>>>,
}

/// A connection on which TLS is done.
pub(crate) struct Ready {
    connection: Connection,
    incoming: Incoming,
    exporter: Exporter,
    version: u16,
    pub(super) remote: SocketAddr,
}

impl Enrolment {
    pub(crate) fn new(
        config: ClientConfig,
        tls: Option<Arc<rustls::ClientConfig>>,
        opened: oneshot::Sender<Session>,
    ) -> Self {
        let options = SocketOptions {
            congestion_control: config.congestion_control.clone(),
            mark: config.socket_mark,
        };
        let dial_memory = config.dial_memory.of_session();
        Self {
            config: ClientConfig { dial_memory, ..config },
            tls,
            options,
            membership: OnceCell::new(),
            formed: watch::Sender::new(false),
            opened: Mutex::new(Some(opened)),
        }
    }

    /// The session, if there is one yet.
    pub(super) fn membership(&self) -> Option<&Membership> {
        self.membership.get()
    }

    /// What the server is told of a path.
    pub(super) fn label(&self, spec: &PathSpec) -> PathLabel {
        spec.label(&self.config.policies)
    }

    /// A path came up of which the server was told `told`. Where its policy changed meanwhile, the
    /// session may not have listed the path yet: what was missed then is entered now, and told by
    /// another subflow.
    pub(super) fn tell_changes(&self, spec: &PathSpec, told: &PathLabel) {
        let label = self.label(spec);
        if label.policy != told.policy
            && let Some(membership) = self.membership()
        {
            membership.shared.update(|inner, now| inner.set_policy(now, &label.name, label.policy));
        }
    }

    /// What was learnt by dialling.
    pub(super) fn memory(&self) -> &DialMemory {
        &self.config.dial_memory
    }

    /// The mark of all sockets.
    pub(super) fn mark(&self) -> Option<u32> {
        self.options.mark
    }

    /// Waits until a path may be used.
    pub(super) async fn admitted(&self, name: &str) {
        self.config.policies.admitted(name).await;
    }

    /// Waits until a path may not be used.
    pub(super) async fn withheld(&self, name: &str) {
        self.config.policies.withheld(name).await;
    }

    /// Whether a path is not to be dialled.
    pub(super) fn is_withheld(&self, name: &str) -> bool {
        self.config.policies.is_withheld(name)
    }

    /// Waits until there is a session.
    pub(super) async fn formed(&self) {
        let mut formed = self.formed.subscribe();
        // The sender lives as long as `self`: no error.
        let _ = formed.wait_for(|formed| *formed).await;
    }

    /// Waits until there is a session and it is over.
    pub(super) async fn session_over(&self) {
        self.formed().await;
        if let Some(membership) = self.membership.get() {
            membership.shared.closed().await;
        }
    }

    /// Connects a socket, which TCP must do within `patience`, and runs TLS on it.
    pub(crate) async fn connect(
        &self,
        spec: &PathSpec,
        remote: SocketAddr,
        patience: Duration,
    ) -> Result<Ready, DialError> {
        let begun = Instant::now();
        let connecting = socket::connect(&spec.local, remote, &self.options);
        let silent = |_| DialError::Silent { remote, waited: patience, elsewhere: false };
        let socket = timeout(patience, connecting).await.map_err(silent)??;
        let took = begun.elapsed();
        self.memory().of(spec, |known, now| known.connected(now, took));
        limited(TLS_TIME.max(took * TLS_PART), self.secure(socket, remote))
            .await
            .map_err(DialError::at(remote))
    }

    async fn secure(&self, socket: TcpStream, remote: SocketAddr) -> Result<Ready, HandshakeError> {
        let records = match &self.tls {
            Some(config) => {
                let name = self.config.server_name();
                RecordLayer::client(config, name).map_err(ConnectionError::Record)?
            }
            None => RecordLayer::plain(),
        };
        let mut connection = Connection::new(socket, records);
        let incoming = secure(&mut connection, MAX_HANDSHAKE_BYTES).await?;
        let (exporter, version) = (connection.exporter()?, connection.version()?);
        Ok(Ready { connection, incoming, exporter, version, remote })
    }

    /// Makes the connection the path's subflow. If there is no session yet, this path opens it,
    /// and others that come meanwhile wait for its answer: there is one Hello at a time.
    pub(super) async fn enrol(
        &self,
        ready: Ready,
        path: PathId,
        label: &PathLabel,
        patience: Duration,
    ) -> Result<(), DialError> {
        let remote = ready.remote;
        let mut unused = Some(ready);
        let membership = self
            .membership
            .get_or_try_init(async || {
                let ready = unused.take().ok_or(HandshakeError::Closed)?;
                limited(HELLO_TIME.max(patience), self.hello(ready, path, label)).await
            })
            .await
            .map_err(DialError::at(remote))?;
        let Some(ready) = unused else {
            self.formed.send_replace(true);
            return Ok(()); // it opened the session
        };
        let joining = limited(patience, join(membership, ready, path, label));
        let joined = joining.await.map_err(DialError::at(remote))?;
        match membership.shared.add_subflow(path, label, joined) {
            Some(_) => Ok(()),
            None => Err(DialError::at(remote)(HandshakeError::Closed)),
        }
    }

    async fn hello(
        &self,
        mut ready: Ready,
        path: PathId,
        label: &PathLabel,
    ) -> Result<Membership, HandshakeError> {
        let key = ProofKey::of_credential(self.config.link.secret());
        let limits = self.config.proto.limits;
        let hello = HandshakeMessage::Hello(Hello {
            version: ready.version,
            credential: self.config.link.credential_id().0,
            path,
            path_name: label.encode(),
            limits,
            proof: key.hello(&ready.exporter, path, &limits),
        });
        let welcome = exchange(&mut ready.connection, &mut ready.incoming, &hello).await?;
        let expected = key.welcome(&ready.exporter, &welcome.session);
        auth::check(&expected, &welcome.proof).map_err(|_| HandshakeError::Proof)?;
        let clock = Clock::start();
        let window_growth = self.config.congestion_control.window_growth();
        let proto = fbdt_proto::Config { window_growth, ..self.config.proto.clone() };
        let protocol = fbdt_baselines::session(clock.now(), Role::Client, proto, welcome.limits)
            .map_err(|_| HandshakeError::Unexpected("Welcome"))?;
        let protocol = match ready.version {
            MESSAGE_VERSION => protocol.with_messages(),
            _ => protocol,
        };
        let automatic = self.config.congestion_control == CongestionControl::Auto;
        let coupling = self.config.coupling.as_ref();
        let sockets = SessionSockets::new(automatic, coupling, &welcome.session, Role::Client);
        let shared = Arc::new(Shared::new(clock, protocol, limits.max_frame, sockets));
        tokio::spawn(shared.clone().drive());
        let session = Session::new(shared.clone(), Role::Client, welcome.session, None);
        shared.add_subflow(path, label, ready.incoming.establish(ready.connection));
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        // If nobody waits any more, the session is dropped here and closes.
        let _ = opened.map(|opened| opened.send(session));
        Ok(Membership {
            shared,
            id: welcome.session,
            key: key.of_session(&welcome.session, &ready.exporter),
        })
    }
}

async fn join(
    membership: &Membership,
    mut ready: Ready,
    path: PathId,
    label: &PathLabel,
) -> Result<Established, HandshakeError> {
    let join = HandshakeMessage::Join(Join {
        session: membership.id,
        path,
        path_name: label.encode(),
        proof: membership.key.join(&ready.exporter, path),
    });
    let welcome = exchange(&mut ready.connection, &mut ready.incoming, &join).await?;
    let expected = membership.key.welcome(&ready.exporter, &membership.id);
    auth::check(&expected, &welcome.proof).map_err(|_| HandshakeError::Proof)?;
    Ok(ready.incoming.establish(ready.connection))
}

async fn limited<T>(
    limit: Duration,
    future: impl Future<Output = Result<T, HandshakeError>>,
) -> Result<T, HandshakeError> {
    timeout(limit, future).await.unwrap_or(Err(HandshakeError::Timeout(limit)))
}
