//! Records on one connection: TLS, or nothing at all in the plaintext lab mode.
//!
//! Both kinds share one interface, so that the lab mode runs the same code. A record layer owns
//! what has been encrypted and not yet been taken by the kernel; callers hand it one frame at a
//! time and only when nothing is pending, so that little is beyond recall (F7).

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use fbdt_proto::{Outgoing, VERSION};
use rustls::pki_types::ServerName;
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection,
};

use super::pinned::is_key_mismatch;
use super::{KEY_MISMATCH, NO_COMMON_VERSION, SERVER_NAME};
use crate::auth::{EXPORTER_LABEL, Exporter};

/// Largest plaintext of a TLS record, and what encryption adds to each (RFC 8446, section 5.2).
const RECORD_PLAINTEXT: usize = 16 * 1024;
const RECORD_OVERHEAD: usize = 22;
/// Pieces given to one system call, or to TLS at once.
const MAX_SLICES: usize = 64;

/// The peer's records cannot be read, or the connection cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RecordError {
    /// The server has another key than the pinned one.
    #[error("{KEY_MISMATCH}")]
    KeyMismatch,
    /// The ends have no version of FBDT in common.
    #[error("{NO_COMMON_VERSION}")]
    NoCommonVersion,
    /// The peer chose another application protocol, or none.
    #[error("the peer does not speak fbdt/2 or fbdt/1; check the server's address and port")]
    WrongProtocol,
    /// Any other fault of TLS.
    #[error("TLS: {0}")]
    Tls(rustls::Error),
}

impl From<rustls::Error> for RecordError {
    fn from(error: rustls::Error) -> Self {
        match error {
            error if is_key_mismatch(&error) => Self::KeyMismatch,
            // A client is told so by the server's alert, a server finds it out itself.
            rustls::Error::NoApplicationProtocol
            | rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
                Self::NoCommonVersion
            }
            error => Self::Tls(error),
        }
    }
}

/// TLS or plaintext records.
pub(crate) enum RecordLayer {
    /// TLS 1.3.
    Tls(Box<TlsRecords>),
    /// The plaintext lab mode.
    Plain(PlainRecords),
}

/// A TLS connection with a count of what it holds for the socket.
pub(crate) struct TlsRecords {
    connection: Connection,
    pending: usize,
}

/// What waits for the socket, and how much of it the socket has taken.
#[derive(Default)]
pub(crate) struct PlainRecords {
    outgoing: Outgoing,
    written: usize,
}

impl RecordLayer {
    pub(crate) fn client(
        config: &Arc<ClientConfig>,
        name: Option<&str>,
    ) -> Result<Self, RecordError> {
        let name = ServerName::try_from(name.unwrap_or(SERVER_NAME).to_owned())
            .map_err(|_| rustls::Error::General("server name".into()))?;
        let connection = ClientConnection::new(config.clone(), name)?;
        Ok(Self::tls(Connection::Client(connection)))
    }

    pub(crate) fn server(config: &Arc<ServerConfig>) -> Result<Self, RecordError> {
        let connection = ServerConnection::new(config.clone())?;
        Ok(Self::tls(Connection::Server(connection)))
    }

    pub(crate) fn plain() -> Self {
        Self::Plain(PlainRecords::default())
    }

    /// Whether nothing is encrypted.
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    fn tls(mut connection: Connection) -> Self {
        connection.set_buffer_limit(None);
        Self::Tls(Box::new(TlsRecords { connection, pending: 0 }))
    }

    /// Whether the TLS handshake goes on.
    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Self::Tls(tls) => tls.connection.is_handshaking(),
            Self::Plain(_) => false,
        }
    }

    /// Keying material that only the two ends of this connection know; zeros in plaintext.
    pub(crate) fn exporter(&self) -> Result<Exporter, RecordError> {
        let Self::Tls(tls) = self else {
            return Ok([0; 32]);
        };
        self.version()?;
        Ok(tls.connection.export_keying_material([0; 32], EXPORTER_LABEL, Some(&[]))?)
    }

    /// The version of the wire format that the ends agreed on; the first in plaintext, where
    /// nothing would keep it from being lowered.
    pub(crate) fn version(&self) -> Result<u16, RecordError> {
        let Self::Tls(tls) = self else {
            return Ok(VERSION);
        };
        let chosen = tls.connection.alpn_protocol();
        chosen.map(super::version_of).ok_or(RecordError::WrongProtocol)
    }

    /// Decrypts `input` and hands the plaintext to `sink` in pieces, until the input is used up
    /// or the sink breaks. Returns the sink's break value.
    pub(crate) fn receive<B>(
        &mut self,
        mut input: &[u8],
        mut sink: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, RecordError> {
        match self {
            Self::Plain(_) => Ok(sink(input)),
            Self::Tls(tls) => {
                while !input.is_empty() {
                    if tls.feed(&mut input)? == 0 {
                        break; // close_notify: what follows is not part of the connection
                    }
                    if let ControlFlow::Break(value) = tls.drain(&mut sink) {
                        return Ok(ControlFlow::Break(value));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Encrypts `frames`, or takes them over in plaintext; they are empty afterwards.
    pub(crate) fn send(&mut self, frames: &mut Outgoing) -> Result<(), RecordError> {
        match self {
            Self::Tls(tls) => tls.send(frames)?,
            Self::Plain(plain) => plain.send(frames),
        }
        Ok(())
    }

    /// Tells the peer that nothing follows (TLS close_notify).
    pub(crate) fn send_close(&mut self) {
        if let Self::Tls(tls) = self {
            tls.connection.send_close_notify();
        }
    }

    /// Whether bytes wait for the socket.
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::Tls(tls) => tls.connection.wants_write(),
            Self::Plain(plain) => plain.written < plain.outgoing.len(),
        }
    }

    /// Bytes that wait for the socket.
    pub(crate) fn pending(&self) -> usize {
        match self {
            Self::Tls(tls) if tls.connection.wants_write() => tls.pending.max(1),
            Self::Tls(_) => 0,
            Self::Plain(plain) => plain.outgoing.len() - plain.written,
        }
    }

    /// Writes what waits, until the socket takes no more.
    pub(crate) fn write_to(&mut self, socket: &mut dyn Write) -> io::Result<usize> {
        match self {
            Self::Tls(tls) => {
                let count = tls.connection.write_tls(socket)?;
                tls.pending = tls.pending.saturating_sub(count);
                if !tls.connection.wants_write() {
                    tls.pending = 0;
                }
                Ok(count)
            }
            Self::Plain(plain) => {
                let count = socket.write_vectored(&slices(&plain.outgoing, plain.written))?;
                plain.written += count;
                Ok(count)
            }
        }
    }
}

impl PlainRecords {
    /// Takes the frames over; without copying them if nothing else waits.
    fn send(&mut self, frames: &mut Outgoing) {
        if self.written < self.outgoing.len() {
            let mut waiting = self.outgoing.to_vec().split_off(self.written);
            waiting.extend(frames.to_vec());
            self.outgoing = waiting.into();
            frames.clear();
        } else {
            self.outgoing.clear();
            std::mem::swap(&mut self.outgoing, frames);
        }
        self.written = 0;
    }
}

/// The bytes from `skip` on, as far as one system call takes them.
fn slices(outgoing: &Outgoing, mut skip: usize) -> Vec<IoSlice<'_>> {
    let rest = outgoing.pieces().filter_map(|piece| {
        let from = skip.min(piece.len());
        skip -= from;
        (from < piece.len()).then(|| IoSlice::new(&piece[from..]))
    });
    rest.take(MAX_SLICES).collect()
}

impl TlsRecords {
    /// Encrypts the frames from where they lie.
    fn send(&mut self, frames: &mut Outgoing) -> Result<(), RecordError> {
        let mut done = 0;
        while done < frames.len() {
            let count = self
                .connection
                .writer()
                .write_vectored(&slices(frames, done))
                .map_err(|error| rustls::Error::General(error.to_string()))?;
            if count == 0 {
                return Err(rustls::Error::General("TLS takes no more bytes".into()).into());
            }
            self.pending += count + count.div_ceil(RECORD_PLAINTEXT) * RECORD_OVERHEAD;
            done += count;
        }
        frames.clear();
        Ok(())
    }

    /// Gives some of the input to TLS; returns how much.
    fn feed(&mut self, input: &mut &[u8]) -> Result<usize, RecordError> {
        let mut source: &mut dyn Read = input;
        let count = self
            .connection
            .read_tls(&mut source)
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        self.connection.process_new_packets()?;
        Ok(count)
    }

    fn drain<B>(&mut self, sink: &mut impl FnMut(&[u8]) -> ControlFlow<B>) -> ControlFlow<B> {
        loop {
            let mut reader = self.connection.reader();
            let count = match reader.fill_buf() {
                Ok([]) | Err(_) => return ControlFlow::Continue(()),
                Ok(piece) => {
                    sink(piece)?;
                    piece.len()
                }
            };
            reader.consume(count);
        }
    }
}

/// Adapts a non-blocking socket's `try_write` calls to [`Write`].
pub(crate) struct SocketWriter<'a>(pub(crate) &'a tokio::net::TcpStream);

impl Write for SocketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plaintext_frames_queue_behind_what_the_socket_has_not_taken() {
        let mut records = RecordLayer::plain();
        let shared: Vec<u8> = (0..5000).map(|index| index as u8).collect();
        let mut all = b"first".to_vec();
        records.send(&mut all.clone().into()).unwrap();
        let mut socket = [0; 3];
        assert_eq!(records.write_to(&mut &mut socket[..]).unwrap(), 3);
        let mut frames = Outgoing::default();
        frames.encoder().extend_from_slice(b"head");
        frames.put(shared.clone().into());
        records.send(&mut frames).unwrap();
        assert!(frames.is_empty());
        all.extend_from_slice(b"head");
        all.extend(shared);
        assert_eq!(records.pending(), all.len() - 3);
        let mut taken = socket.to_vec();
        while records.wants_write() {
            records.write_to(&mut taken).unwrap();
        }
        assert!(taken == all, "the bytes differ");
        assert_eq!(records.pending(), 0);
    }
}
