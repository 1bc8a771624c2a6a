//! The exchange that makes a connection part of a session: TLS, one request, one answer.

use fbdt_proto::WireError;
use fbdt_proto::handshake::{HandshakeMessage, RefuseCode};
use std::ops::ControlFlow;

use super::connection::{Connection, ConnectionError, Received};
use crate::tls::RecordError;

/// A connection did not become part of a session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The socket or TLS failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The peer sent what is no handshake message.
    #[error("the peer's handshake cannot be read: {0}")]
    Wire(#[from] WireError),
    /// The peer sent a message that does not belong here.
    #[error("the peer sent `{0}` out of turn")]
    Unexpected(&'static str),
    /// The peer sent more than a handshake needs.
    #[error("more than {0} bytes came before authentication")]
    TooLong(usize),
    /// It took too long.
    #[error("no answer to the handshake within {0:?}")]
    Timeout(std::time::Duration),
    /// The server refused.
    #[error("the server refused: {reason}")]
    Refused {
        /// Why, as a code.
        code: RefuseCode,
        /// Why, in words.
        reason: String,
    },
    /// The peer does not know the secret.
    #[error(
        "the server does not know the credential's secret: it is not the one that made the link"
    )]
    Proof,
    /// The session was closed in the meantime.
    #[error("the session is closed")]
    Closed,
}

impl HandshakeError {
    /// Whether the peer was refused because it did not prove who it is.
    pub(crate) fn is_authentication(&self) -> bool {
        matches!(self, Self::Refused { code: RefuseCode::Authentication, .. })
    }

    /// Whether the ends have no version of the wire format in common.
    pub(crate) fn is_version(&self) -> bool {
        matches!(self, Self::Connection(ConnectionError::Record(RecordError::NoCommonVersion)))
    }
}

/// A connection whose handshake is over, with what came behind the last message.
pub(crate) struct Established {
    pub(crate) connection: Connection,
    pub(crate) rest: Vec<u8>,
}

/// A connection during its handshake: bytes that came and are not used up, and how many may come.
pub(crate) struct Incoming {
    plaintext: Vec<u8>,
    budget: usize,
    limit: usize,
}

impl Incoming {
    fn new(limit: usize) -> Self {
        Self { plaintext: Vec::new(), budget: limit, limit }
    }
}

/// Runs the TLS handshake to its end.
pub(crate) async fn secure(
    connection: &mut Connection,
    limit: usize,
) -> Result<Incoming, HandshakeError> {
    let mut incoming = Incoming::new(limit);
    connection.flush()?;
    while connection.is_handshaking() {
        fill(connection, &mut incoming).await?;
    }
    Ok(incoming)
}

/// Waits for bytes, and takes them in.
async fn fill(connection: &mut Connection, incoming: &mut Incoming) -> Result<(), HandshakeError> {
    connection.ready().await.map_err(ConnectionError::Io)?;
    let result = connection.read(usize::MAX, |piece| -> ControlFlow<()> {
        incoming.plaintext.extend_from_slice(piece);
        ControlFlow::Continue(())
    });
    // What TLS wants to say goes out even if the peer's bytes were wrong: it is the alert.
    let flushed = connection.flush();
    if let Received::Bytes(count) = result? {
        incoming.budget =
            incoming.budget.checked_sub(count).ok_or(HandshakeError::TooLong(incoming.limit))?;
    }
    Ok(flushed?)
}

/// Waits for the next message.
async fn receive(
    connection: &mut Connection,
    incoming: &mut Incoming,
) -> Result<HandshakeMessage, HandshakeError> {
    loop {
        if let Some((message, used)) = HandshakeMessage::decode(&incoming.plaintext)? {
            incoming.plaintext.drain(..used);
            return Ok(message);
        }
        fill(connection, incoming).await?;
    }
}

/// Server: waits for the client's request.
pub(crate) async fn receive_request(
    connection: &mut Connection,
    incoming: &mut Incoming,
) -> Result<HandshakeMessage, HandshakeError> {
    receive(connection, incoming).await
}

/// Sends one message and waits until the socket has it.
pub(crate) async fn send(
    connection: &mut Connection,
    message: &HandshakeMessage,
) -> Result<(), HandshakeError> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    connection.send(&mut bytes.into())?;
    while connection.pending() > 0 {
        connection.writable().await.map_err(ConnectionError::Io)?;
        connection.flush()?;
    }
    Ok(())
}

/// Client: sends the request and waits for the server's Welcome.
pub(crate) async fn exchange(
    connection: &mut Connection,
    incoming: &mut Incoming,
    request: &HandshakeMessage,
) -> Result<fbdt_proto::handshake::Welcome, HandshakeError> {
    send(connection, request).await?;
    match receive(connection, incoming).await? {
        HandshakeMessage::Welcome(welcome) => Ok(welcome),
        HandshakeMessage::Refused(refused) => {
            Err(HandshakeError::Refused { code: refused.code, reason: refused.reason })
        }
        HandshakeMessage::Hello(_) => Err(HandshakeError::Unexpected("Hello")),
        HandshakeMessage::Join(_) => Err(HandshakeError::Unexpected("Join")),
    }
}

impl Incoming {
    /// The connection is part of a session now.
    pub(crate) fn establish(self, mut connection: Connection) -> Established {
        connection.grow();
        Established { connection, rest: self.plaintext }
    }
}
