//! Sets a stream's class from how its application writes to it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use fbdt::ClassHandle;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Guess, Waited};
use crate::tunnel::TunnelStream;

/// Guesses the class of what is written to a stream.
pub(crate) struct Watch {
    guess: Guess,
    class: ClassHandle,
    /// Total time that the reader at the other end had let the stream wait before the write.
    reader_wait: Duration,
    /// The part of it during the last write.
    unread: Duration,
}

impl Watch {
    pub(crate) fn new(guess: Guess, class: ClassHandle) -> Self {
        class.guess(guess.class());
        Self { guess, class, reader_wait: Duration::ZERO, unread: Duration::ZERO }
    }

    /// Counts `bytes` of the application, which had none for `idle` before.
    pub(crate) fn read(&mut self, idle: Duration, bytes: usize) {
        let waited = Waited { idle, unread: self.unread };
        if let Some(found) = self.guess.sent(Instant::now(), waited, bytes as u64) {
            self.class.guess(found);
        }
        self.reader_wait = self.class.reader_wait();
    }

    /// Ends the write of the bytes that were counted last. A write that takes long waited for a
    /// silent radio, or because nobody reads at the other end.
    pub(crate) fn wrote(&mut self) {
        self.unread = self.class.reader_wait().saturating_sub(self.reader_wait);
    }
}

/// A stream of a session whose class follows what is written to it.
pub(crate) struct WatchedStream<S> {
    stream: S,
    watch: Option<Watch>,
    /// When the last write ended.
    rested_since: Instant,
    /// When the write that is under way began.
    begun: Option<Instant>,
}

impl<S: TunnelStream> WatchedStream<S> {
    /// Watches the writes if there is a guess and the transport has classes.
    pub(crate) fn new(stream: S, guess: Option<Guess>) -> Self {
        let watch = guess.zip(stream.class_setter()).map(|(guess, class)| Watch::new(guess, class));
        Self { stream, watch, rested_since: Instant::now(), begun: None }
    }

    /// The stream, watched no more.
    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: TunnelStream> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: TunnelStream> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let begun = *this.begun.get_or_insert_with(Instant::now);
        let count = ready!(Pin::new(&mut this.stream).poll_write(cx, bytes))?;
        if let Some(watch) = &mut this.watch {
            watch.wrote();
            watch.read(begun - this.rested_since, count);
        }
        (this.begun, this.rested_since) = (None, Instant::now());
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
