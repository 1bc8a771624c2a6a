//! The server's side of the handshake on one connection.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use fbdt_proto::handshake::{
    HandshakeMessage, Hello, Join, RefuseCode, Refused, SessionId, Welcome,
};
use fbdt_proto::{Config, MESSAGE_VERSION, PathLabel, Role, WireError};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;

use super::registry::{Full, Member, Registry};
use crate::auth::{self, Exporter, ProofKey};
use crate::clock::Clock;
use crate::config::ServerConfig;
use crate::identity::{CredentialId, CredentialInfo, Secret, StateError};
use crate::memory::Ledger;
use crate::session::{Session, Shared};
use crate::socket::{CongestionControl, SessionSockets};
use crate::subflow::{
    Connection, ConnectionError, HandshakeError, Incoming, receive_request, secure, send,
};
use crate::tls::RecordLayer;

/// What every accepted connection needs to know.
pub(super) struct Greeter {
    pub(super) config: ServerConfig,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) registry: Arc<Registry>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) sessions: UnboundedSender<Session>,
}

/// Why the server says no.
pub(super) struct Refusal {
    code: RefuseCode,
    reason: Cow<'static, str>,
}

impl Refusal {
    const fn new(code: RefuseCode, reason: &'static str) -> Self {
        Self { code, reason: Cow::Borrowed(reason) }
    }

    /// A limit is reached that the client can know.
    fn busy(reason: String) -> Self {
        Self { code: RefuseCode::Busy, reason: reason.into() }
    }
}

const STRANGER: Refusal =
    Refusal::new(RefuseCode::Authentication, "unknown credential or session, or wrong proof");
const NO_MEMORY: Refusal = Refusal::new(
    RefuseCode::Busy,
    "the sessions of the server, or of this credential, hold all memory that they may; try again later",
);
const FAULT: Refusal =
    Refusal::new(RefuseCode::Busy, "the server cannot open a session now; its log says why");
const VERSION: Refusal = Refusal::new(
    RefuseCode::Version,
    "this server speaks wire versions 1 and 2; update the older side",
);
const MALFORMED: Refusal =
    Refusal::new(RefuseCode::Malformed, "a field of the request is not possible");

/// A new session that waits for its Welcome to be sent.
struct Opening {
    id: SessionId,
    member: Member,
    welcome: Welcome,
    credential: CredentialInfo,
}

impl Greeter {
    /// Makes the connection part of a session, or refuses it.
    pub(super) async fn greet(
        self: Arc<Self>,
        socket: TcpStream,
        peer: SocketAddr,
    ) -> Result<(), HandshakeError> {
        let records = match &self.tls {
            Some(config) => RecordLayer::server(config).map_err(ConnectionError::Record)?,
            None => RecordLayer::plain(),
        };
        let mut connection = Connection::new(socket, records).from(peer);
        let mut incoming = secure(&mut connection, self.config.limits.max_handshake_bytes).await?;
        let exporter = connection.exporter()?;
        let request = match receive_request(&mut connection, &mut incoming).await {
            Ok(request) => request,
            Err(HandshakeError::Wire(error)) => return turn_away(connection, error).await,
            Err(error) => return Err(error),
        };
        match request {
            HandshakeMessage::Hello(hello) => {
                self.hello(connection, incoming, exporter, hello).await
            }
            HandshakeMessage::Join(join) => self.join(connection, incoming, exporter, join).await,
            HandshakeMessage::Welcome(_) => Err(HandshakeError::Unexpected("Welcome")),
            HandshakeMessage::Refused(_) => Err(HandshakeError::Unexpected("Refused")),
        }
    }

    async fn hello(
        &self,
        mut connection: Connection,
        incoming: Incoming,
        exporter: Exporter,
        hello: Hello,
    ) -> Result<(), HandshakeError> {
        // What TLS agreed on counts: a Hello that says otherwise is no honest one.
        if hello.version != connection.version()? {
            return refuse(connection, VERSION).await;
        }
        let opening = match self.open(&hello, &exporter) {
            Ok(opening) => opening,
            Err(refusal) => return refuse(connection, refusal).await,
        };
        let Opening { id, member, welcome, credential } = opening;
        let shared = member.shared;
        // From here on the session ends itself when nobody holds it.
        let session = Session::new(shared.clone(), Role::Server, id, Some(credential));
        tokio::spawn(shared.clone().drive());
        let (registry, watched) = (self.registry.clone(), shared.clone());
        tokio::spawn(async move {
            watched.closed().await;
            registry.remove(&id);
        });
        send(&mut connection, &HandshakeMessage::Welcome(welcome)).await?;
        let label = PathLabel::decode(&hello.path_name);
        shared.add_subflow(hello.path, &label, incoming.establish(connection));
        // Nobody accepts any more: dropping the session closes it.
        let _ = self.sessions.send(session);
        Ok(())
    }

    /// Checks a Hello and makes its session.
    fn open(&self, hello: &Hello, exporter: &Exporter) -> Result<Opening, Refusal> {
        let fault = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "cannot open a session");
            FAULT
        };
        let id = CredentialId(hello.credential);
        let credential = self.config.state.credential(id).map_err(|error| match error {
            StateError::Unknown(_) => {
                tracing::info!(%error, "a client is refused");
                // The proof is computed as for a known one. What the file of a known one costs to read
                // and parse comes on top: ids are 64 random bits, which no stranger guesses.
                let nobody = ProofKey::of_credential(&Secret::from_bytes([0; Secret::LENGTH]));
                let expected = nobody.hello(exporter, hello.path, &hello.limits);
                let _ = auth::check(&expected, &hello.proof);
                STRANGER
            }
            // A file that cannot be read now (no descriptor is left, say) makes nobody a stranger:
            // a client that is told so never comes back.
            _ => fault(&error),
        })?;
        let key = ProofKey::of_credential(&credential.secret);
        let expected = key.hello(exporter, hello.path, &hello.limits);
        auth::check(&expected, &hello.proof).map_err(|_| STRANGER)?;
        let lease = self.ledger.lease(id).ok_or(NO_MEMORY)?;
        let id = auth::new_session_id().map_err(|error| fault(&error))?;
        let clock = Clock::start();
        let proto = &self.config.proto;
        let window_growth = self.config.congestion_control.window_growth();
        let config = Config { window_growth, ..proto.clone() };
        let protocol = fbdt_baselines::session(clock.now(), Role::Server, config, hello.limits)
            .map_err(|error| fault(&error))?;
        let protocol = match hello.version {
            MESSAGE_VERSION => protocol.with_messages(),
            _ => protocol,
        };
        let automatic = self.config.congestion_control == CongestionControl::Auto;
        let coupling = self.config.coupling.as_ref();
        let sockets = SessionSockets::new(automatic, coupling, &id, Role::Server);
        let shared = Shared::new(clock, protocol, proto.limits.max_frame, sockets).leased(lease);
        let name = PathLabel::decode(&hello.path_name).name;
        shared.update(|inner, _| inner.paths.register(hello.path, &name));
        let member = Member {
            shared: Arc::new(shared),
            key: key.of_session(&id, exporter),
            credential: credential.id,
        };
        let limits = &self.config.limits;
        self.registry.insert(id, member.clone()).map_err(|full| match full {
            Full::Server => Refusal::busy(format!(
                "the server has {} sessions, the most that it takes; try again later",
                limits.max_sessions
            )),
            Full::Credential => Refusal::busy(format!(
                "this credential has {} sessions, the most that one may have; close one, or use another \
                 credential",
                limits.max_sessions_per_credential
            )),
        })?;
        self.registry.answer_probes(&id, hello.path);
        let welcome =
            Welcome { session: id, limits: proto.limits, proof: key.welcome(exporter, &id) };
        Ok(Opening { id, member, welcome, credential: credential.info() })
    }

    async fn join(
        &self,
        mut connection: Connection,
        incoming: Incoming,
        exporter: Exporter,
        join: Join,
    ) -> Result<(), HandshakeError> {
        let member = match self.admit(&join, &exporter) {
            Ok(member) => member,
            Err(refusal) => return refuse(connection, refusal).await,
        };
        let welcome = Welcome {
            session: join.session,
            limits: self.config.proto.limits,
            proof: member.key.welcome(&exporter, &join.session),
        };
        send(&mut connection, &HandshakeMessage::Welcome(welcome)).await?;
        let established = incoming.establish(connection);
        let label = PathLabel::decode(&join.path_name);
        match member.shared.add_subflow(join.path, &label, established) {
            Some(_) => Ok(()),
            None => Err(HandshakeError::Closed),
        }
    }

    /// Checks a Join.
    pub(super) fn admit(&self, join: &Join, exporter: &Exporter) -> Result<Member, Refusal> {
        let member = self.registry.get(&join.session).ok_or(STRANGER)?;
        auth::check(&member.key.join(exporter, join.path), &join.proof).map_err(|_| STRANGER)?;
        if !self.config.state.knows(member.credential) {
            return Err(STRANGER);
        }
        let most = self.config.limits.max_paths;
        // Its place is taken here: others are judged before this one's connection is added.
        let name = PathLabel::decode(&join.path_name).name;
        let fits = member.shared.update(|inner, _| inner.paths.reserve(join.path, &name, most));
        if !fits {
            let words = format!("this session has {most} paths, the most that it may have");
            return Err(Refusal::busy(words));
        }
        self.registry.answer_probes(&join.session, join.path);
        Ok(member)
    }
}

/// A client whose request cannot be read is told why; whoever does not speak FBDT at all is told
/// nothing.
async fn turn_away(connection: Connection, error: WireError) -> Result<(), HandshakeError> {
    match error {
        WireError::Version(version) => {
            tracing::info!(
                version,
                "a client is refused: this server speaks wire versions 1 and 2"
            );
            refuse(connection, VERSION).await
        }
        WireError::Field { kind, .. } if HandshakeMessage::is_request(kind) => {
            refuse(connection, MALFORMED).await
        }
        _ => Err(error.into()),
    }
}

async fn refuse(mut connection: Connection, refusal: Refusal) -> Result<(), HandshakeError> {
    let (code, reason) = (refusal.code, refusal.reason.into_owned());
    let refused = Refused { code, reason: reason.clone() };
    send(&mut connection, &HandshakeMessage::Refused(refused)).await?;
    connection.finish()?;
    Err(HandshakeError::Refused { code, reason })
}
