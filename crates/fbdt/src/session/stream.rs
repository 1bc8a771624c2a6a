//! A stream as an application holds it.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use fbdt_proto::{Class, Instant, Session as Protocol, StreamError, StreamId, StreamStats};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Anchor;
use super::Messages;
use super::inner::Side;
use super::shared::Shared;

/// Bytes taken from the session at once, whatever the caller's buffer: fewer turns at the lock.
const READ_AHEAD: usize = 64 * 1024;
/// Bytes copied into the session in one turn at the lock.
const WRITE_AT_ONCE: usize = 256 * 1024;
/// Bytes that a stream is given before other tasks get a turn: a writer that goes on as long as the
/// session takes its bytes would have sent them all before another stream's writer begins.
const WRITE_IN_A_ROW: usize = 256 * 1024;

/// One ordered byte stream of a session, in both directions.
///
/// [`Stream::finish`], or shutting down as tokio does, ends the sending direction; what was written is
/// delivered even if the stream and the session's handles are dropped. Dropping a stream that was not
/// finished resets it. [`Stream::into_split`] gives its directions to different tasks.
pub struct Stream {
    send: SendStream,
    receive: RecvStream,
}

/// The sending direction of a stream. Dropping it before it is finished resets it.
pub struct SendStream {
    handle: Arc<Handle>,
    /// Bytes written since other tasks had a turn.
    in_a_row: usize,
    /// It was finished or reset.
    is_over: bool,
}

/// The receiving direction of a stream. Dropping it before its end tells the peer to stop.
pub struct RecvStream {
    handle: Arc<Handle>,
    /// Taken from the session and not yet by the application.
    ahead: Bytes,
    /// It was read to its end, or stopped.
    is_over: bool,
}

/// What both directions need; the session may forget the stream when it is dropped.
struct Handle {
    shared: Arc<Shared>,
    _anchor: Arc<Anchor>,
    id: StreamId,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let id = self.id;
        self.shared.update(|inner, now| {
            inner.protocol.release_stream(now, id);
            inner.forget(id);
        });
    }
}

/// Sets a stream's class (F11), and tells what speaks for one.
#[derive(Clone)]
pub struct ClassHandle {
    shared: Arc<Shared>,
    id: StreamId,
}

impl fmt::Debug for ClassHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClassHandle({})", self.id)
    }
}

impl ClassHandle {
    /// Gives the stream this class; nothing happens once it is over.
    pub fn set(&self, class: Class) {
        self.shared.update(|inner, _| inner.protocol.set_class(self.id, class));
    }

    /// The same with a class that is guessed from how the application behaves.
    pub fn guess(&self, class: Class) {
        self.shared.update(|inner, _| inner.protocol.guess_class(self.id, class));
    }

    /// For how long so far the other end held all that it lets this end send of the stream: it had
    /// no reader. Zero once no more will be written.
    pub fn reader_wait(&self) -> Duration {
        let now = self.shared.now();
        self.shared.inspect(|inner| inner.protocol.reader_wait(now, self.id)).unwrap_or_default()
    }
}

impl Handle {
    fn class(&self) -> ClassHandle {
        ClassHandle { shared: self.shared.clone(), id: self.id }
    }

    fn messages(&self) -> Option<Messages> {
        let there = self.shared.inspect(|inner| inner.protocol.has_messages());
        there.then(|| Messages::new(self.shared.clone(), self.id))
    }

    fn stats(&self) -> Option<StreamStats> {
        self.shared.inspect(|inner| inner.protocol.stream_stats(self.id))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.id())
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendStream({})", self.id())
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecvStream({})", self.id())
    }
}

impl Stream {
    pub(super) fn new(shared: Arc<Shared>, anchor: Arc<Anchor>, id: StreamId) -> Self {
        let handle = Arc::new(Handle { shared, _anchor: anchor, id });
        Self {
            send: SendStream { handle: handle.clone(), in_a_row: 0, is_over: false },
            receive: RecvStream { handle, ahead: Bytes::new(), is_over: false },
        }
    }

    /// Its two directions, which end on their own.
    #[must_use]
    pub fn into_split(self) -> (SendStream, RecvStream) {
        (self.send, self.receive)
    }

    /// The stream's number in its session.
    pub fn id(&self) -> StreamId {
        self.send.id()
    }

    /// Gives the stream another class (F11): what this end sends from now on is served by it.
    pub fn set_class(&self, class: Class) {
        self.send.set_class(class);
    }

    /// Sets the stream's class from elsewhere, while the stream is in use.
    pub fn class_handle(&self) -> ClassHandle {
        self.send.class_handle()
    }

    /// As [`SendStream::messages`].
    pub fn messages(&self) -> Option<Messages> {
        self.send.messages()
    }

    /// Counters of the stream; `None` once the session has forgotten it.
    pub fn stats(&self) -> Option<StreamStats> {
        self.send.stats()
    }

    /// As [`SendStream::finish`].
    ///
    /// # Errors
    /// The same.
    pub fn finish(&mut self) -> io::Result<()> {
        self.send.finish()
    }

    /// As [`SendStream::delivered`].
    ///
    /// # Errors
    /// The same.
    pub async fn delivered(&mut self) -> io::Result<()> {
        self.send.delivered().await
    }

    /// As [`SendStream::reset`].
    pub fn reset(&mut self, code: u32) {
        self.send.reset(code);
    }

    /// As [`RecvStream::stop_sending`].
    pub fn stop_sending(&mut self, code: u32) {
        self.receive.stop_sending(code);
    }

    /// As [`RecvStream::read_chunk`].
    ///
    /// # Errors
    /// The same.
    pub async fn read_chunk(&mut self, max: usize) -> io::Result<Option<Bytes>> {
        self.receive.read_chunk(max).await
    }

    /// As [`SendStream::write_chunk`].
    ///
    /// # Errors
    /// The same.
    pub async fn write_chunk(&mut self, bytes: Bytes) -> io::Result<()> {
        self.send.write_chunk(bytes).await
    }

    /// As [`SendStream::poll_write_chunk`].
    ///
    /// # Errors
    /// The same.
    pub fn poll_write_chunk(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<io::Result<usize>> {
        self.send.poll_write_chunk(cx, bytes)
    }
}

impl SendStream {
    /// The stream's number in its session.
    pub fn id(&self) -> StreamId {
        self.handle.id
    }

    /// Gives the stream another class (F11): what this end sends from now on is served by it.
    pub fn set_class(&self, class: Class) {
        self.handle.class().set(class);
    }

    /// Sets the stream's class from elsewhere.
    pub fn class_handle(&self) -> ClassHandle {
        self.handle.class()
    }

    /// The stream's messages (F16), beside its bytes: a message overtakes them and others. `None` if the
    /// peer speaks a version of the wire format that has none. Of several handles that wait the last one
    /// is woken. Resetting the stream drops messages that were not delivered.
    pub fn messages(&self) -> Option<Messages> {
        self.handle.messages()
    }

    /// Counters of the stream; `None` once the session has forgotten it.
    pub fn stats(&self) -> Option<StreamStats> {
        self.handle.stats()
    }

    /// Ends this direction; what was written is delivered after it.
    ///
    /// # Errors
    /// The peer stopped reading, the stream was reset here, or the session is over.
    pub fn finish(&mut self) -> io::Result<()> {
        self.end().map_err(io_error)
    }

    fn end(&mut self) -> Result<(), StreamError> {
        self.is_over = true;
        let id = self.handle.id;
        let state = self.handle.shared.update(|inner, now| {
            inner.protocol.finish(now, id);
            inner.protocol.delivered(id)
        });
        if state == Err(StreamError::Blocked) { Ok(()) } else { state }
    }

    /// Waits until the peer has every byte that was written, and the end if that was. It has not
    /// necessarily been read: only an answer of the peer's application says that. Dropping the future
    /// changes nothing.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub async fn delivered(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_delivered(cx)).await
    }

    fn poll_delivered(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let id = self.handle.id;
        let result = self.handle.shared.update(|inner, _| {
            let result = inner.protocol.delivered(id);
            if result == Err(StreamError::Blocked) {
                inner.wait(id, Side::Write, cx.waker());
            }
            result
        });
        match result {
            Ok(()) => Poll::Ready(Ok(())),
            Err(StreamError::Blocked) => Poll::Pending,
            Err(error) => Poll::Ready(Err(io_error(error))),
        }
    }

    /// Gives up sending: the peer's reader gets an error with this code, unsent bytes are dropped.
    pub fn reset(&mut self, code: u32) {
        self.is_over = true;
        let id = self.handle.id;
        self.handle.shared.update(|inner, now| inner.protocol.reset(now, id, code));
    }

    /// Writes `bytes` without copying them; waits until the session has taken them all. If the future is
    /// dropped, a part may have been taken: use [`Self::poll_write_chunk`] to know which.
    ///
    /// # Errors
    /// What [`StreamError`] says, as an [`io::Error`].
    pub async fn write_chunk(&mut self, mut bytes: Bytes) -> io::Result<()> {
        while !bytes.is_empty() {
            std::future::poll_fn(|cx| self.poll_write_chunk(cx, &mut bytes)).await?;
        }
        Ok(())
    }

    /// Takes what fits off the front of `bytes` now.
    ///
    /// # Errors
    /// As [`Self::write_chunk`].
    pub fn poll_write_chunk(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |protocol, now, id| protocol.write_bytes(now, id, bytes))
    }

    /// Gives the session bytes by `write`, or waits until it takes some.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut Protocol, Instant, StreamId) -> Result<usize, StreamError>,
    ) -> Poll<io::Result<usize>> {
        // Many busy streams must leave the runtime to the subflows' tasks now and then.
        let turn = ready!(tokio::task::coop::poll_proceed(cx));
        if self.in_a_row >= WRITE_IN_A_ROW {
            self.in_a_row = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let id = self.handle.id;
        let result = self.handle.shared.update(|inner, now| {
            let result = write(&mut inner.protocol, now, id);
            if result == Err(StreamError::Blocked) {
                inner.wait(id, Side::Write, cx.waker());
            }
            result
        });
        match result {
            Ok(count) => {
                turn.made_progress();
                self.in_a_row += count;
                Poll::Ready(Ok(count))
            }
            Err(StreamError::Blocked) => {
                self.in_a_row = 0;
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(io_error(error))),
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.reset(0);
        }
    }
}

impl RecvStream {
    /// The stream's number in its session.
    pub fn id(&self) -> StreamId {
        self.handle.id
    }

    /// Tells the peer that nothing more will be read; its writer gets an error with this code.
    pub fn stop_sending(&mut self, code: u32) {
        self.is_over = true;
        self.ahead.clear();
        let id = self.handle.id;
        self.handle.shared.update(|inner, now| inner.protocol.stop_sending(now, id, code));
    }

    /// Reads the next piece, up to `max` bytes, without copying it; `None` at the end. Dropping the
    /// future loses nothing.
    ///
    /// # Errors
    /// What [`StreamError`] says, as an [`io::Error`].
    pub async fn read_chunk(&mut self, max: usize) -> io::Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx, max)).await
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<io::Result<Option<Bytes>>> {
        // Many busy streams must leave the runtime to the subflows' tasks now and then.
        let turn = ready!(tokio::task::coop::poll_proceed(cx));
        if self.ahead.is_empty() && !ready!(self.poll_fill(cx))? {
            return Poll::Ready(Ok(None));
        }
        turn.made_progress();
        let count = self.ahead.len().min(max);
        Poll::Ready(Ok(Some(self.ahead.split_to(count))))
    }

    /// Takes the next piece from the session; `false` at the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.is_over {
            return Poll::Ready(Ok(false));
        }
        let id = self.handle.id;
        let result = self.handle.shared.update(|inner, now| {
            let result = inner.protocol.read(now, id, READ_AHEAD);
            if result == Err(StreamError::Blocked) {
                inner.wait(id, Side::Read, cx.waker());
            }
            result
        });
        match result {
            Ok(Some(bytes)) => {
                self.ahead = bytes;
                Poll::Ready(Ok(true))
            }
            Ok(None) => {
                self.is_over = true;
                Poll::Ready(Ok(false))
            }
            Err(StreamError::Blocked) => Poll::Pending,
            Err(error) => Poll::Ready(Err(io_error(error))),
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.stop_sending(0);
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let piece = ready!(self.poll_chunk(cx, buf.remaining()))?;
        buf.put_slice(&piece.unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let buf = &buf[..buf.len().min(WRITE_AT_ONCE)];
        self.poll_send(cx, |protocol, now, id| protocol.write(now, id, buf))
    }

    /// Does nothing: what is written leaves at once, and [`SendStream::delivered`] waits for it.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// As [`SendStream::finish`]; that the peer reads no more is no error, as with TCP.
    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.end() {
            Err(StreamError::Stopped { .. }) => Ok(()),
            ended => ended.map_err(io_error),
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.receive).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.send).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.send).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.send).poll_shutdown(cx)
    }
}

fn io_error(error: StreamError) -> io::Error {
    let kind = match &error {
        StreamError::Reset { .. } => io::ErrorKind::ConnectionReset,
        StreamError::Stopped { .. } | StreamError::Finished(_) => io::ErrorKind::BrokenPipe,
        StreamError::Unknown(_) => io::ErrorKind::NotFound,
        StreamError::Blocked => io::ErrorKind::WouldBlock,
        StreamError::Closed(_) => io::ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, error)
}
