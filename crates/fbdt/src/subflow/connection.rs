//! A socket with its record layer and buffers.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::BufMut;
use fbdt_proto::Outgoing;
use socket2::SockRef;
use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;

use crate::auth::Exporter;
use crate::tls::{RecordError, RecordLayer, SocketWriter};

/// Bytes asked for in one system call: while it authenticates, and afterwards.
const HANDSHAKE_BUFFER: usize = 4 * 1024;
const BUFFER: usize = 256 * 1024;

/// The connection cannot be used any further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// The peer closed it.
    #[error("the peer closed the connection")]
    Closed,
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The records cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// What one read brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received<B> {
    /// This many bytes from the socket.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The sink wanted no more.
    Stopped(B),
}

/// A non-blocking TCP connection that carries records.
pub(crate) struct Connection {
    socket: Arc<TcpStream>,
    /// The peer, where a proxy stands in between.
    peer: Option<SocketAddr>,
    records: RecordLayer,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream, records: RecordLayer) -> Self {
        let buffer = vec![0; HANDSHAKE_BUFFER];
        Self { socket: Arc::new(socket), peer: None, records, buffer }
    }

    /// The same, whose peer has this address.
    pub(crate) fn from(self, peer: SocketAddr) -> Self {
        Self { peer: Some(peer), ..self }
    }

    /// Reads with large buffers from now on: the peer is known.
    pub(crate) fn grow(&mut self) {
        self.buffer = vec![0; BUFFER];
    }

    pub(crate) fn socket(&self) -> &Arc<TcpStream> {
        &self.socket
    }

    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        self.peer.or_else(|| self.socket.peer_addr().ok())
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.records.is_handshaking()
    }

    pub(crate) fn exporter(&self) -> Result<Exporter, ConnectionError> {
        Ok(self.records.exporter()?)
    }

    /// The version of the wire format that both ends speak here.
    pub(crate) fn version(&self) -> Result<u16, ConnectionError> {
        Ok(self.records.version()?)
    }

    /// One system call's worth of bytes, at most `most`, decrypted and handed to `sink`.
    pub(crate) fn read<B>(
        &mut self,
        most: usize,
        sink: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<Received<B>, ConnectionError> {
        let most = most.min(self.buffer.len());
        let count = match outcome(self.socket.try_read(&mut self.buffer[..most]))? {
            Some(count) => count,
            None => return Ok(Received::Nothing),
        };
        Ok(match self.records.receive(&self.buffer[..count], sink)? {
            ControlFlow::Continue(()) => Received::Bytes(count),
            ControlFlow::Break(value) => Received::Stopped(value),
        })
    }

    /// Whether what the socket gives are the peer's bytes as they are.
    pub(crate) fn is_plain(&self) -> bool {
        self.records.is_plain()
    }

    /// One system call's worth of bytes as they are, read to where they stay.
    pub(crate) fn read_to<B>(
        &self,
        room: &mut impl BufMut,
    ) -> Result<Received<B>, ConnectionError> {
        let count = outcome(self.socket.try_read_buf(room))?;
        Ok(count.map_or(Received::Nothing, Received::Bytes))
    }

    /// Reads and forgets; for a connection that is being closed.
    pub(crate) fn discard(&mut self) -> io::Result<usize> {
        self.socket.try_read(&mut self.buffer)
    }

    /// Encrypts `bytes` (one frame or a few small ones) and writes what the socket takes.
    pub(crate) fn send(&mut self, bytes: &mut Outgoing) -> Result<(), ConnectionError> {
        self.records.send(bytes)?;
        self.flush()
    }

    /// Writes what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> Result<(), ConnectionError> {
        while self.records.wants_write() {
            match self.records.write_to(&mut SocketWriter(&self.socket)) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Bytes in user space that the socket has not taken.
    pub(crate) fn pending(&self) -> usize {
        self.records.pending()
    }

    /// Waits until the socket can be read, or written if something waits for that.
    pub(crate) async fn ready(&self) -> io::Result<Ready> {
        let interest = if self.records.wants_write() {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        self.socket.ready(interest).await
    }

    /// Waits until the socket can be read.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Waits until the socket can be written.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.socket.writable().await
    }

    /// Sends the end: nothing follows from this side.
    pub(crate) fn finish(&mut self) -> Result<(), ConnectionError> {
        self.records.send_close();
        self.flush()?;
        if !self.records.wants_write() {
            SockRef::from(&*self.socket).shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    /// Makes closing a reset: what the socket still holds is never sent (F9b).
    pub(crate) fn reset_on_close(&self) {
        crate::socket::reset_on_close(&self.socket);
    }
}

/// Bytes that a read brought; `None` if there is nothing now.
fn outcome(result: io::Result<usize>) -> Result<Option<usize>, ConnectionError> {
    match result {
        Ok(0) => Err(ConnectionError::Closed),
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}
