//! Frames that arrive.

use bytes::Bytes;
use fbdt_units::{Class, Instant, Space, StreamId, SubflowId};
use fbdt_wire::plain_text::plain;
use fbdt_wire::{AckFrame, Frame};

use super::{Session, Stream};
use crate::error::{CloseReason, SessionError};
use crate::event::Event;
use crate::path::settle;
use crate::receive::Inserted;

impl Stream {
    /// What its holes cost when they were last counted, and what they cost now.
    pub(super) fn count_holes(&mut self) -> (u64, u64) {
        let messages = self.messages.as_ref().map_or(0, |channel| channel.input.overhead());
        let now = self.receive.assembler.overhead() + messages;
        (core::mem::replace(&mut self.holes, now), now)
    }
}

impl Session {
    /// Takes a frame that arrived on `subflow`. A subflow that was replaced
    /// may still bring frames.
    ///
    /// # Errors
    /// The peer broke a rule: the session is over, and the peer is told so by
    /// the next frames.
    pub fn handle_frame(
        &mut self,
        now: Instant,
        subflow: SubflowId,
        frame: Frame,
    ) -> Result<(), SessionError> {
        if self.close.is_some() {
            return Ok(());
        }
        let result = self.dispatch(now, subflow, frame);
        match &result {
            Err(error) => self.end(CloseReason::Protocol(error.clone())),
            Ok(()) => self.leave(now),
        }
        result
    }

    /// The peer's bytes were no frames.
    pub fn handle_wire_error(&mut self, error: fbdt_wire::WireError) {
        self.end(CloseReason::Protocol(error.into()));
    }

    fn dispatch(
        &mut self,
        now: Instant,
        subflow: SubflowId,
        frame: Frame,
    ) -> Result<(), SessionError> {
        if subflow.0 >= self.next_subflow {
            return Err(SessionError::UnknownSubflow(subflow));
        }
        let path = self.path_of(subflow);
        if let Some(path) = path {
            self.heard(now, path);
        }
        if let Some(kind) = frame.second_version()
            && !self.with_messages
        {
            return Err(fbdt_wire::WireError::Type(kind).into());
        }
        match frame {
            Frame::Message { stream, offset, payload } => {
                self.handle_message(path, stream, offset, &payload)
            }
            Frame::Gap { stream, start, end } => self.handle_gap(path, stream, start..end),
            Frame::Data { stream, offset, fin, payload } => {
                self.handle_data(now, path, stream, offset, fin, &payload)
            }
            Frame::Ack(ack) => self.handle_ack(now, &ack),
            Frame::SessionLimit { limit } => {
                self.credit.send_limit = self.credit.send_limit.max(limit);
                self.news += 1;
                Ok(())
            }
            Frame::Ping { token } => {
                if let Some(subflow) = path.and_then(|p| self.paths[p].subflow.as_mut()) {
                    subflow.pong_due = Some((token, now));
                }
                Ok(())
            }
            Frame::Pong { token, received } => {
                if let Some(path) = path {
                    self.handle_pong(now, path, token, received);
                }
                Ok(())
            }
            Frame::Close { code, reason } => {
                // People read it: nothing in it may move the cursor of their terminal.
                let reason = plain(&reason);
                self.peer_closed(now, path, code, reason);
                Ok(())
            }
            Frame::Want { stream, window } => {
                self.handle_want(stream, window);
                Ok(())
            }
        }
    }

    /// `size` bytes of a stream, or a message of so many, arrived. Their acknowledgement returns by
    /// the path that brought them (F8); by all if that subflow is gone.
    pub(super) fn arrived(
        &mut self,
        path: Option<usize>,
        space: Space,
        size: u64,
        fin: bool,
    ) -> Result<(), SessionError> {
        if space == Space::Messages(StreamId::CONTROL) {
            return Err(SessionError::Control("a message on the control stream"));
        }
        match path.and_then(|p| self.paths[p].subflow.as_mut()) {
            Some(subflow) => subflow.arrived(space.to_wire(), size, fin),
            None => self.announce(space),
        }
        if let Some(path) = path {
            self.paths[path].counters.received += size;
        }
        self.admit_stream(space.stream())?;
        if !self.streams.contains_key(&space.stream()) {
            self.count_duplicate(path, size);
        }
        Ok(())
    }

    fn handle_data(
        &mut self,
        now: Instant,
        path: Option<usize>,
        id: StreamId,
        offset: u64,
        fin: bool,
        payload: &Bytes,
    ) -> Result<(), SessionError> {
        self.arrived(path, Space::bytes_of(id), payload.len() as u64, fin)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let before = stream.receive.highest;
        let inserted = stream.receive.insert(now, offset, fin, payload)?;
        let holes = stream.count_holes();
        let grown = stream.receive.highest - before;
        let held = stream.receive.assembler.held;
        let wake = stream.reader_blocked && stream.receive.is_readable();
        let discarded = stream.receive.is_discarding();
        stream.reader_blocked &= !wake;
        let class = stream.send.class;
        stream.recount(&mut self.memory);
        self.count_inserted(id, class, inserted, held);
        self.count_duplicate(path, inserted.duplicate);
        self.charge_holes(holes)?;
        if id == StreamId::CONTROL {
            return self.read_control(now);
        }
        self.count_received(grown)?;
        if discarded {
            self.discard_input(id);
        }
        if wake {
            self.events.push_back(Event::Readable(id));
        }
        if fin || discarded {
            self.reap(id);
        }
        Ok(())
    }

    fn count_inserted(&mut self, id: StreamId, class: Class, inserted: Inserted, held: u64) {
        self.totals.received += inserted.new;
        if id != StreamId::CONTROL {
            let totals = &mut self.totals.classes[class as usize];
            totals.received += inserted.new;
            totals.duplicate += inserted.duplicate;
        }
        if inserted.new > 0 && !inserted.delivered {
            self.totals.held_peak = self.totals.held_peak.max(held);
        }
    }

    pub(super) fn count_duplicate(&mut self, path: Option<usize>, bytes: u64) {
        self.totals.duplicate += bytes;
        if let Some(path) = path {
            self.paths[path].counters.duplicate += bytes;
        }
    }

    /// Counts bytes against the session's receive limit (F2).
    pub(super) fn count_received(&mut self, grown: u64) -> Result<(), SessionError> {
        self.credit.received += grown;
        if self.credit.received > self.credit.receive_limit {
            return Err(SessionError::SessionLimit {
                used: self.credit.received,
                limit: self.credit.receive_limit,
            });
        }
        Ok(())
    }

    /// Counts what a stream's holes cost now, instead of what they did before.
    pub(super) fn charge_holes(&mut self, (before, now): (u64, u64)) -> Result<(), SessionError> {
        self.credit.holes = self.credit.holes.saturating_sub(before) + now;
        let (cost, limit) = (self.credit.holes, self.config.limits.most_for_holes());
        // Only more of them are anybody's fault.
        if now > before && cost > limit {
            return Err(SessionError::Holes { cost, limit });
        }
        Ok(())
    }

    /// An acknowledgement, by whatever path: it frees bytes on all (F8).
    fn handle_ack(&mut self, now: Instant, ack: &AckFrame) -> Result<(), SessionError> {
        let id = ack.stream;
        if let Space::Messages(id) = Space::of_wire(id)
            && self.with_messages
        {
            return self.handle_message_ack(id, ack);
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            // Late words about a stream that is over; or of none that can be.
            return self.admit_stream(id);
        };
        if !stream.send.acknowledge(now, ack)? {
            return Ok(());
        }
        stream.recount(&mut self.memory);
        self.news += 1;
        if stream.send.wakes_writer() || stream.send.tells_delivery() {
            self.events.push_back(Event::Writable(id));
        }
        if stream.send.is_over() || stream.send.is_quiet() {
            self.busy.remove(id);
        }
        self.refresh_turn(id);
        self.settle();
        self.reap(id);
        Ok(())
    }

    /// Takes acknowledged chunks off every path's account.
    pub(super) fn settle(&mut self) {
        let streams = &self.streams;
        for path in &mut self.paths {
            settle(&mut path.in_flight, |chunk| {
                let space = Space::of_wire(chunk.stream);
                let stream = streams.get(&space.stream());
                stream.is_none_or(|stream| stream.owed(space, chunk.range.clone()).is_none())
            });
        }
    }

    /// Grants a larger window out of half of the session's: the other half
    /// belongs to the first windows of all streams, so that readers that
    /// pause leave room for the others (F2). At most half of what is free goes
    /// to one request, so that who comes later finds some.
    fn handle_want(&mut self, id: StreamId, window: u64) {
        let pool = self.config.limits.session_window / 2;
        let free = pool.saturating_sub(self.credit.grown).min(self.room);
        if let Space::Messages(id) = Space::of_wire(id)
            && self.with_messages
        {
            return self.handle_message_want(id, window);
        }
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let unread = stream.receive.assembler.ready_bytes;
        let (grown, moved) = stream.receive.window.want(window, unread, free.div_ceil(2));
        self.credit.grown += grown;
        if moved {
            self.announce(Space::bytes_of(id));
        }
    }
}
