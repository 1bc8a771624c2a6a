//! A stream's messages as an application holds them.
//!
//! Rule: F16.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fbdt_proto::{MessageError, MessageOptions, StreamError, StreamId};

use super::inner::Side;
use super::shared::Shared;

/// Sends and receives the messages of one stream. It keeps neither the stream nor the session
/// open: once they are over, both directions say so.
#[derive(Clone)]
pub struct Messages {
    shared: Arc<Shared>,
    id: StreamId,
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messages({})", self.id)
    }
}

impl Messages {
    pub(super) fn new(shared: Arc<Shared>, id: StreamId) -> Self {
        Self { shared, id }
    }

    /// Longest message that the peer takes, in bytes.
    pub fn longest(&self) -> usize {
        self.shared.inspect(|inner| inner.protocol.longest_message()) as usize
    }

    /// Gives the session a message; waits while too many wait there already.
    ///
    /// # Errors
    /// [`MessageError`]: why it will never be sent.
    pub async fn send(&self, bytes: Bytes, options: MessageOptions) -> Result<(), MessageError> {
        std::future::poll_fn(|cx| self.poll_send(cx, &bytes, options)).await
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// [`MessageError::Blocked`] if too many wait; others say why it will never be sent.
    pub fn try_send(&self, bytes: Bytes, options: MessageOptions) -> Result<(), MessageError> {
        self.shared.update(|inner, now| inner.protocol.send_message(now, self.id, bytes, options))
    }

    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        bytes: &Bytes,
        options: MessageOptions,
    ) -> Poll<Result<(), MessageError>> {
        let turn = ready!(tokio::task::coop::poll_proceed(cx));
        let result = self.shared.update(|inner, now| {
            let result = inner.protocol.send_message(now, self.id, bytes.clone(), options);
            if result == Err(MessageError::Blocked) {
                inner.wait(self.id, Side::WriteMessage, cx.waker());
            }
            result
        });
        if result == Err(MessageError::Blocked) {
            return Poll::Pending;
        }
        turn.made_progress();
        Poll::Ready(result)
    }

    /// The next message, whichever arrived first.
    ///
    /// # Errors
    /// [`StreamError`]: why none will come.
    pub async fn receive(&self) -> Result<Bytes, StreamError> {
        std::future::poll_fn(|cx| self.poll_receive(cx)).await
    }

    fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Result<Bytes, StreamError>> {
        let turn = ready!(tokio::task::coop::poll_proceed(cx));
        let result = self.shared.update(|inner, now| {
            let result = inner.protocol.read_message(now, self.id);
            if result == Err(StreamError::Blocked) {
                inner.wait(self.id, Side::ReadMessage, cx.waker());
            }
            result
        });
        if result == Err(StreamError::Blocked) {
            return Poll::Pending;
        }
        turn.made_progress();
        Poll::Ready(result)
    }
}
