//! The seam between this program and the transport: all that the proxies, the exit and the benchmark
//! need of a session. Tests put in-memory pipes behind it.

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use fbdt::{Class, ClassHandle, Messages};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::crowd::Crowd;
use crate::flows::Flows;
use crate::refusals::Refusals;
use crate::status::SessionReport;

/// Code with which a stream is reset because its other side failed.
pub const ABORT_RELAY_FAILED: u32 = 0x100;

/// A two-way byte stream of a session.
pub trait TunnelStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Gives the stream up in both directions, so that the peer sees a failure and no end of data.
    fn abort(&mut self, code: u32);

    /// The next piece of data, at most `max` bytes, or `None` at the end; without a copy where the
    /// transport can.
    fn read_piece(&mut self, max: usize) -> impl Future<Output = io::Result<Option<Bytes>>> + Send {
        async move {
            let mut piece = BytesMut::with_capacity(max);
            let count = self.read_buf(&mut piece).await?;
            Ok((count > 0).then(|| piece.freeze()))
        }
    }

    /// Takes some bytes off the front of `bytes` and says how many; without a copy where the
    /// transport can.
    fn write_piece(&mut self, bytes: &mut Bytes) -> impl Future<Output = io::Result<usize>> + Send {
        async move {
            let count = self.write(bytes).await?;
            bytes.advance(count);
            Ok(count)
        }
    }

    /// Sets the traffic class of what this end sends, if the transport has classes.
    fn class_setter(&self) -> Option<ClassHandle> {
        None
    }

    /// The stream's messages, if both ends have them.
    fn messages(&self) -> Option<Messages> {
        None
    }

    /// Bytes that were written here and that the other end has not acknowledged yet.
    fn owed(&self) -> u64 {
        0
    }

    /// Delay and stalls of what this end received on the stream, if they are known.
    fn delivery(&self) -> Option<Delivery> {
        None
    }
}

/// What a receiver knows about one stream.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Delivery {
    /// Median time from a byte's arrival to its delivery, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of it.
    pub p99_ms: f64,
    /// Its maximum.
    pub max_ms: f64,
    /// Most bytes that ever waited for earlier ones.
    pub buffer_peak: u64,
}

/// What a stream is used for; the transport derives windows and priority from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A proxied connection, a request, a report.
    Interactive,
    /// A measurement's data.
    Bulk,
    /// What is known to be of this class.
    Known(Class),
}

/// Why no stream could be opened.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// There is no session at the moment.
    #[error("not connected to the server; `sumrate status` shows why")]
    NoSession,
    /// No path may be used, or none reaches the server.
    #[error("{0}")]
    Unreachable(String),
    /// The session did not open a stream.
    #[error("the session opened no stream: {0}")]
    Refused(String),
}

impl From<TunnelError> for io::Error {
    fn from(error: TunnelError) -> Self {
        Self::new(io::ErrorKind::NotConnected, error)
    }
}

/// A session, or something that behaves like one.
pub trait Tunnel: Clone + Send + Sync + 'static {
    /// Its streams.
    type Stream: TunnelStream;

    /// Opens a stream to the other end.
    fn open(&self, purpose: Use) -> impl Future<Output = Result<Self::Stream, TunnelError>> + Send;

    /// Waits until the server cannot be reached, and says why.
    fn unreachable(&self) -> impl Future<Output = String> + Send {
        std::future::pending()
    }

    /// Waits until streams are opened by another session than now.
    fn replaced(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// What the session is doing now.
    fn report(&self) -> Option<SessionReport>;

    /// Where its UDP flows are counted, if anybody wants to know.
    fn flows(&self) -> Option<Arc<Flows>> {
        None
    }

    /// Places of connections that are being made, if their number is bounded.
    fn pending(&self) -> Option<&Arc<Crowd>> {
        None
    }

    /// Where refused destinations are noted, if anybody wants to know.
    fn refusals(&self) -> Option<&Refusals> {
        None
    }
}

/// Where a measurement gets the state of its session from.
pub type ReportSource = Arc<dyn Fn() -> Option<SessionReport> + Send + Sync>;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod in_memory {
    //! A tunnel of in-memory pipes; whoever holds the other end plays the server.

    use tokio::io::DuplexStream;
    use tokio::sync::mpsc;

    use super::{SessionReport, Tunnel, TunnelError, TunnelStream, Use};

    impl TunnelStream for DuplexStream {
        fn abort(&mut self, _code: u32) {}
    }

    #[derive(Clone)]
    pub(crate) struct PipeTunnel(mpsc::UnboundedSender<DuplexStream>);

    /// A tunnel and the streams that it opens, as the server sees them.
    pub(crate) fn pipe_tunnel() -> (PipeTunnel, mpsc::UnboundedReceiver<DuplexStream>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (PipeTunnel(sender), receiver)
    }

    impl Tunnel for PipeTunnel {
        type Stream = DuplexStream;

        async fn open(&self, _purpose: Use) -> Result<DuplexStream, TunnelError> {
            let (here, there) = tokio::io::duplex(64 << 10);
            self.0.send(there).map_err(|_| TunnelError::NoSession)?;
            Ok(here)
        }

        fn report(&self) -> Option<SessionReport> {
            None
        }
    }
}
