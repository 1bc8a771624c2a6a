//! The end of a session that loses nothing: it closes once the peer has everything.

use core::time::Duration;

use fbdt_units::{Instant, StreamId};
use fbdt_wire::close_code;

use super::Session;
use crate::error::{CloseReason, StreamError};
use crate::stream::SendState;

impl Session {
    /// Opens no more streams, and closes the session once the peer has all bytes and messages that were
    /// written, or after `within`. A second call can only shorten that time.
    pub fn shutdown(&mut self, now: Instant, within: Duration) {
        let deadline = now + within;
        self.leaves_at = Some(self.leaves_at.map_or(deadline, |at| at.min(deadline)));
        self.leave(now);
    }

    /// Closes a session that shuts down, if nothing is left to deliver or its time is over.
    pub(super) fn leave(&mut self, now: Instant) {
        let Some(deadline) = self.leaves_at else { return };
        let reason = match self.undelivered() {
            0 => "shut down",
            _ if now >= deadline => "shut down before everything was delivered",
            _ => return,
        };
        self.end(CloseReason::Local { code: close_code::NONE, reason: reason.into() });
    }

    /// Bytes of streams and messages that were written and that the peer has not acknowledged; an end
    /// of a stream counts as one. It stays as it was when the session ends.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        let applications = self.streams.iter().filter(|(id, _)| **id != StreamId::CONTROL);
        let of_each = applications.map(|(_, stream)| {
            let messages = stream.messages.as_ref().map_or(0, |channel| channel.out.undelivered());
            stream.send.undelivered() + messages
        });
        of_each.sum()
    }

    /// Whether the peer has every byte that was written to the stream, and its end if that was.
    ///
    /// # Errors
    /// [`StreamError::Blocked`]: wait for [`crate::Event::Writable`]. Otherwise why it never will.
    pub fn delivered(&mut self, id: StreamId) -> Result<(), StreamError> {
        let stream = self.streams.get_mut(&id).ok_or(StreamError::Unknown(id))?;
        match stream.send.state {
            SendState::Acknowledged => return Ok(()),
            SendState::Reset => return Err(StreamError::Finished(id)),
            SendState::Stopped(code) => return Err(StreamError::Stopped { stream: id, code }),
            SendState::Open | SendState::Finished if stream.send.undelivered() == 0 => {
                return Ok(());
            }
            SendState::Open | SendState::Finished => {}
        }
        if let Some(reason) = &self.close {
            return Err(StreamError::Closed(reason.clone()));
        }
        stream.send.delivery_awaited = true;
        Err(StreamError::Blocked)
    }
}
