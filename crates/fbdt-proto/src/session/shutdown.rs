//! The end of a session that loses nothing: it closes once the peer has everything, and is closed once
//! every subflow has brought what the peer said before.

use alloc::string::String;
use core::time::Duration;

use fbdt_units::{Instant, StreamId};
use fbdt_wire::close_code;

use super::Session;
use crate::error::{CloseReason, StreamError};
use crate::path::Health;
use crate::scale::HICCUP;
use crate::stream::SendState;

impl Session {
    /// Opens no more streams, and closes the session once the peer has all bytes, ends and messages, or
    /// after `within`. A second call can only shorten that time.
    pub fn shutdown(&mut self, now: Instant, within: Duration) {
        let deadline = now + within;
        self.leaves_at = Some(self.leaves_at.map_or(deadline, |at| at.min(deadline)));
        self.leave(now);
    }

    /// Returns true once an end closes the session or shuts it down: it opens no more streams.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        self.close.is_some() || self.leaves_at.is_some() || self.peer_left.is_some()
    }

    /// Returns true once the peer has closed the session: no path is dialled for it.
    #[must_use]
    pub const fn is_left(&self) -> bool {
        self.peer_left.is_some()
    }

    /// When the session ends at the latest, if one of its ends has decided so.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        let peer = self.peer_left.as_ref().map(|(_, at)| *at);
        self.leaves_at.into_iter().chain(peer).min()
    }

    /// Closes a session that shuts down, if nothing is left to deliver or its time is over, or that the
    /// peer has closed, if nothing is left to arrive.
    pub(super) fn leave(&mut self, now: Instant) {
        if let Some((reason, at)) = &self.peer_left {
            let waits = self.paths.iter().any(|path| {
                let subflow = path.subflow.as_ref();
                path.health == Health::Active && subflow.is_some_and(|subflow| !subflow.close_heard)
            });
            if now >= *at || !waits {
                self.end(reason.clone());
            }
        }
        let Some(deadline) = self.leaves_at else { return };
        // The control stream says with which code streams were given up.
        let owes = || self.streams.values().any(|stream| stream.undelivered() > 0);
        let reason = match now >= deadline {
            false if owes() => return,
            true if owes() => "shut down before everything was delivered",
            _ => "shut down",
        };
        self.end(CloseReason::Local { code: close_code::NONE, reason: reason.into() });
    }

    /// The peer's Close: at once if it gives a reason, otherwise when the other subflows that work have
    /// brought theirs. What is in front of them was said before.
    pub(super) fn peer_closed(
        &mut self,
        now: Instant,
        path: Option<usize>,
        code: u32,
        reason: String,
    ) {
        let reason = CloseReason::Peer { code, reason };
        if code != close_code::NONE {
            return self.end(reason);
        }
        if let Some(subflow) = path.and_then(|path| self.paths[path].subflow.as_mut()) {
            subflow.close_heard = true;
        }
        let slowest = self.subflows().map(|subflow| subflow.sample.srtt).max().unwrap_or_default();
        self.peer_left.get_or_insert((reason, now + HICCUP + slowest));
    }

    /// Bytes of streams and messages that were written and that the peer has not acknowledged; an end
    /// of a stream counts as one. Of a session that is over: when it ended.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        if self.close.is_some() {
            return self.left_behind;
        }
        let applications = self.streams.iter().filter(|(id, _)| **id != StreamId::CONTROL);
        applications.map(|(_, stream)| stream.undelivered()).sum()
    }

    /// Succeeds once the peer has acknowledged all bytes that the application wrote, and the end.
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

impl super::Stream {
    /// Bytes and messages that the peer has not acknowledged.
    fn undelivered(&self) -> u64 {
        let messages = self.messages.as_ref().map_or(0, |channel| channel.out.undelivered());
        self.send.undelivered() + messages
    }
}
