//! Streams come and go.

use fbdt_units::{Class, Space, StreamId};
use fbdt_wire::ControlMessage;

use super::{Session, Stream};
use crate::error::SessionError;
use crate::event::Event;
use crate::path::Subflow;
use crate::receive::{ReceiveStream, ReceiveWindow};
use crate::scale::{LEAST_FRAME, TURN};
use crate::stream::{SendStream, Wants};

/// Part of the session's window that a peer gets anew where the driver has no memory left.
const SHORT_WINDOW: u64 = 16;

impl Session {
    pub(super) fn new_stream(&self, id: StreamId, class: Class) -> Stream {
        let limits = &self.config.limits;
        let window = ReceiveWindow::new(limits.stream_window, self.config.max_stream_window);
        let capacity = (4 * TURN).min(self.send_share()).max(self.least_capacity());
        Stream {
            send: SendStream::new(id, class, self.peer_limits.stream_window, capacity),
            receive: ReceiveStream::new(id, window),
            messages: None,
            has_class: id.opener() == Some(self.role),
            class_guessed: false,
            released: false,
            reader_blocked: true,
            wants: Wants::default(),
            asked: 0,
            holes: 0,
            memory: 0,
        }
    }

    /// Bytes that the writers of each busy stream may leave here: all together
    /// no more than this end would hold for reading, beyond the least that
    /// each may.
    pub(super) fn send_share(&self) -> u64 {
        if self.lacks_memory() {
            return 4 * LEAST_FRAME;
        }
        self.config.limits.session_window / (self.busy.len() as u64).max(1)
    }

    /// Bytes that the writers of each busy stream may leave here in any case.
    pub(super) const fn least_capacity(&self) -> u64 {
        if self.lacks_memory() { 4 * LEAST_FRAME } else { TURN }
    }

    /// Makes sure that the stream of an arriving frame exists, unless it did and is over.
    pub(super) fn admit_stream(&mut self, id: StreamId) -> Result<(), SessionError> {
        if self.streams.contains_key(&id) {
            return Ok(());
        }
        let index = id.index();
        let (over, limit) = if id.opener() == Some(self.role) {
            (index < self.counts.local, 0)
        } else {
            (self.counts.peer_seen.covers(index..index + 1), self.counts.peer_limit)
        };
        if id.is_message_space() || (!over && index >= limit) {
            return Err(SessionError::StreamNumber(id));
        }
        if !over {
            self.counts.peer_seen.insert(index..index + 1);
            self.counts.peer += 1;
            let stream = self.new_stream(id, Class::default());
            self.add_stream(id, stream);
            self.events.push_back(Event::StreamOpened(id));
        }
        Ok(())
    }

    /// Notes that a stream has something to send or to be acknowledged.
    pub(super) fn mark_busy(&mut self, id: StreamId) {
        if !self.streams.contains_key(&id) {
            return;
        }
        self.news += 1;
        self.recount(id);
        self.level_bytes(id);
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        // What will not fit the first window asks for a larger one before it
        // has come to its limit: the answer takes an RTT.
        let large = stream.asked == 0 && stream.send.backlog() > stream.send.limit / 2;
        if self.busy.put(id, &stream.send) || large {
            self.near_limit.insert(id);
        }
    }

    /// A stream that comes to wait for its turn has no claim to the time before, whether it had
    /// nothing to say then or its peer did not let it.
    fn level_bytes(&mut self, id: StreamId) {
        let stream = self.streams.get(&id).filter(|stream| self.busy.joins(id, &stream.send));
        let Some(class) = stream.map(|stream| stream.send.class) else { return };
        let least = self.least_served(id, class);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.send.served = stream.send.served.max(least);
        }
    }

    /// Gives a stream whose messages begin to wait no claim to the time before.
    pub(super) fn level_messages(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let class = stream.send.class;
        if !stream.messages.as_mut().is_some_and(|channel| channel.out.joins()) {
            return;
        }
        let least = self.least_served(id, class);
        if let Some(channel) = self.channel_mut(id) {
            channel.out.served = channel.out.served.max(least);
        }
    }

    /// What the least served of the class that wait for their turn has been served, in bytes or in
    /// messages; without one what whoever of it was served last had been. What its receiver's limit
    /// holds back, or what only waits for acknowledgements, says nothing about how far the others are.
    pub(super) fn least_served(&self, id: StreamId, class: Class) -> u64 {
        let others = self.talkers(class).filter(|(other, out)| *other != id && out.in_turn);
        let messages = others.map(|(_, out)| out.served).min();
        let waiting = [self.busy.least_served(id, class), messages];
        waiting.into_iter().flatten().min().unwrap_or_else(|| self.clock.of(class))
    }

    /// Takes in what has changed about a stream's place among the busy ones.
    pub(super) fn refresh_turn(&mut self, id: StreamId) {
        if !self.busy.contains(id) {
            return;
        }
        self.level_bytes(id);
        if let Some(stream) = self.streams.get(&id)
            && self.busy.put(id, &stream.send)
        {
            self.near_limit.insert(id);
        }
    }

    /// Forgets the stream if both halves are over and nobody holds it.
    pub(super) fn reap(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        if stream.send.is_over() {
            self.busy.remove(id);
        }
        let quiet = stream.messages.as_ref().is_none_or(|channel| channel.out.is_quiet());
        let over =
            stream.send.is_over() && stream.receive.is_finished() && stream.released && quiet;
        if !over || id == StreamId::CONTROL {
            return;
        }
        if let Some(mut stream) = self.streams.remove(&id) {
            self.scheduler.stream_over(id);
            let first = self.config.limits.stream_window;
            let grown = stream.receive.window.size.saturating_sub(first);
            self.credit.grown = self.credit.grown.saturating_sub(grown);
            self.credit.holes = self.credit.holes.saturating_sub(stream.holes);
            self.memory = self.memory.saturating_sub(stream.memory);
            if let Some(channel) = stream.messages.take() {
                self.talking.remove(&id);
                let grown = channel.input.grown();
                self.credit.grown_messages = self.credit.grown_messages.saturating_sub(grown);
                self.totals.messages = self.totals.messages.plus(channel.stats());
            }
            self.consume_credit(stream.receive.untaken());
        }
        if id.opener() == Some(self.role.peer()) {
            self.counts.peer_closed += 1;
            self.raise_stream_limit();
        }
    }

    /// Lets the peer open as many streams as have ended, in steps.
    fn raise_stream_limit(&mut self) {
        let max = u64::from(self.config.limits.max_streams);
        let limit = self.counts.peer_closed + max;
        if limit >= self.counts.peer_limit + (max / 4).max(1) {
            self.counts.peer_limit = limit;
            self.send_control(ControlMessage::MaxStreams { count: limit });
        }
    }

    /// Bytes that no longer count against the session's receive limit.
    pub(super) fn consume_credit(&mut self, bytes: u64) {
        self.credit.consumed += bytes;
        let window = self.config.limits.session_window;
        let window = if self.lacks_memory() { window / SHORT_WINDOW } else { window };
        let limit = self.credit.consumed + window;
        if limit >= self.credit.receive_limit + window / 8 {
            self.credit.receive_limit = limit;
            self.subflows().for_each(|subflow| subflow.session_limit_due = true);
        }
    }

    /// The acknowledgement of the space is owed on every live subflow.
    pub(super) fn announce(&mut self, space: Space) {
        self.subflows().for_each(|subflow| subflow.owe(space.to_wire()));
    }

    /// All live subflows.
    pub(super) fn subflows(&mut self) -> impl Iterator<Item = &mut Subflow> {
        self.paths.iter_mut().filter_map(|path| path.subflow.as_mut())
    }
}
