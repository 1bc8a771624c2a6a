//! From a connected socket to a subflow of the session: TLS, then Hello or Join.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fbdt_proto::handshake::{HandshakeMessage, Hello, Join, SessionId};
use fbdt_proto::{MESSAGE_VERSION, PathId, PathLabel, Role};
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, oneshot, watch};
use tokio::time::timeout;

use super::error::DialError;
use crate::auth::{self, Exporter, ProofKey};
use crate::clock::Clock;
use crate::config::{ClientConfig, PathSpec};
use crate::session::{Session, Shared};
use crate::socket::{self, CongestionControl, SessionSockets, SocketOptions};
use crate::subflow::{
    Connection, ConnectionError, Established, HandshakeError, Incoming, exchange, secure,
};
use crate::tls::RecordLayer;

/// Bytes that a server may send before it is known to be one.
const MAX_HANDSHAKE_BYTES: usize = 64 * 1024;

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
        Self {
            config,
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

    /// Waits until a path may be used.
    pub(super) async fn admitted(&self, name: &str) {
        self.config.policies.admitted(name).await;
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

    /// Connects a socket and runs TLS on it.
    pub(crate) async fn connect(
        &self,
        spec: &PathSpec,
        remote: SocketAddr,
    ) -> Result<Ready, DialError> {
        let socket = socket::connect(&spec.local, remote, &self.options).await?;
        self.secure(socket, remote).await.map_err(DialError::at(remote))
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
