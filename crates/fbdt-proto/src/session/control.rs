//! Messages between the two sessions, on stream 0.

use alloc::vec::Vec;

use super::Session;
use crate::error::{CloseReason, SessionError};
use crate::event::Event;
use crate::path::Health;
use crate::stream::SendState;
use crate::time::Instant;
use crate::units::{PathId, Role, Space, StreamId};
use crate::wire::ControlMessage;

/// Control messages are few and small: a peer that leaves this much of them
/// unacknowledged is not honest.
const MAX_BACKLOG: u64 = 1 << 20;

impl Session {
    /// Puts a message on the control stream.
    pub(super) fn send_control(&mut self, message: ControlMessage) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        if let Some(control) = self.streams.get_mut(&StreamId::CONTROL) {
            control.send.capacity = u64::MAX;
            let _ = control.send.write(&bytes);
            if control.send.backlog() > MAX_BACKLOG {
                let reason = SessionError::Control("control messages are not acknowledged");
                self.end(CloseReason::Protocol(reason));
                return;
            }
        }
        self.mark_busy(StreamId::CONTROL);
    }

    /// Acts on what has arrived on the control stream.
    pub(super) fn read_control(&mut self, now: Instant) -> Result<(), SessionError> {
        while let Some(control) = self.streams.get_mut(&StreamId::CONTROL)
            && let Ok(Some(bytes)) = control.receive.read(usize::MAX)
        {
            if control.receive.window().consume(bytes.len() as u64) {
                self.announce(Space::Control);
            }
            self.control_input.extend_from_slice(&bytes);
        }
        self.recount(StreamId::CONTROL);
        let input = core::mem::take(&mut self.control_input);
        let mut at = 0;
        while let Some((message, size)) = ControlMessage::decode(&input[at..])? {
            at += size;
            self.handle_control(now, message)?;
        }
        self.control_input = input[at..].to_vec();
        Ok(())
    }

    fn handle_control(
        &mut self,
        now: Instant,
        message: ControlMessage,
    ) -> Result<(), SessionError> {
        match message {
            ControlMessage::Open { stream, class } => {
                if stream.opener() != Some(self.role.peer()) {
                    return Err(SessionError::StreamNumber(stream));
                }
                // It says the first class: it may come late, when this end has chosen another.
                if self.admit_stream(stream)?
                    && self.streams.get(&stream).is_some_and(|stream| !stream.has_class)
                {
                    self.set_class(stream, class);
                }
            }
            ControlMessage::Reset { stream, code, end } => self.peer_reset(stream, code, end)?,
            ControlMessage::Stop { stream, code } => self.peer_stop(stream, code)?,
            ControlMessage::MaxStreams { count } => {
                self.counts.local_limit = self.counts.local_limit.max(count);
            }
            ControlMessage::Redial { path } => self.peer_redial(now, path)?,
            ControlMessage::RedialCancel { path } => {
                self.client_only("redial cancelled by a client")?;
                self.peer_redial_cancel(path);
            }
        }
        Ok(())
    }

    fn client_only(&self, what: &'static str) -> Result<(), SessionError> {
        if self.role == Role::Client { Ok(()) } else { Err(SessionError::Control(what)) }
    }

    fn peer_redial(&mut self, now: Instant, path: PathId) -> Result<(), SessionError> {
        self.client_only("redial asked by a client")?;
        let floor = self.config.suspect_floor;
        if let Some(path) = self.paths.iter_mut().find(|p| p.id == path) {
            // Nobody suspects a subflow so soon: the request is about the one before.
            if path.subflow.as_ref().is_some_and(|s| now.saturating_since(s.since) < floor) {
                return Ok(());
            }
            path.redial_asked = Some(now);
            path.peer_asks = true;
            self.events.push_back(Event::Redial { path: path.id });
        }
        Ok(())
    }

    fn peer_redial_cancel(&mut self, path: PathId) {
        if let Some(path) = self.paths.iter_mut().find(|p| p.id == path) {
            path.peer_asks = false;
            if path.health != Health::Suspect {
                self.events.push_back(Event::RedialCancelled { path: path.id });
            }
        }
    }

    fn peer_reset(&mut self, id: StreamId, code: u32, end: u64) -> Result<(), SessionError> {
        if id == StreamId::CONTROL {
            return Err(SessionError::Control("the control stream was reset"));
        }
        if !self.admit_stream(id)? {
            return Ok(());
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(());
        };
        let before = stream.receive.highest();
        stream.receive.peer_reset(code, end)?;
        let holes = stream.count_holes();
        let grown = stream.receive.highest() - before;
        stream.recount(&mut self.memory);
        self.charge_holes(holes)?;
        self.count_received(grown)?;
        self.discard_input_if_reset(id);
        self.events.push_back(Event::StreamReset { stream: id, code });
        self.events.push_back(Event::Readable(id));
        self.events.push_back(Event::MessageReadable(id));
        self.reap(id);
        Ok(())
    }

    fn discard_input_if_reset(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if stream.receive.is_complete() {
            return;
        }
        let highest = stream.receive.highest();
        let taken = stream.receive.window().consumed();
        let rest = highest.saturating_sub(taken);
        stream.receive.window().consume(rest);
        self.consume_credit(rest);
    }

    fn peer_stop(&mut self, id: StreamId, code: u32) -> Result<(), SessionError> {
        if id == StreamId::CONTROL {
            return Err(SessionError::Control("the control stream was stopped"));
        }
        if !self.admit_stream(id)? {
            return Ok(());
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(());
        };
        if let Some(channel) = &mut stream.messages {
            channel.out.abandon();
            self.talking.remove(&id);
            self.events.push_back(Event::MessageWritable(id));
        }
        let end = stream.send.highest_sent();
        if stream.send.reset(SendState::Stopped(code)) {
            self.send_control(ControlMessage::Reset { stream: id, code, end });
            self.events.push_back(Event::StreamStopped { stream: id, code });
            self.events.push_back(Event::Writable(id));
        }
        self.recount(id);
        self.reap(id);
        Ok(())
    }
}
