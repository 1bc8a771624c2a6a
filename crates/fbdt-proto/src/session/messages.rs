//! Messages of streams: whole, out of order, on the path that delivers first (F16).

use alloc::boxed::Box;
use core::ops::Range;

use bytes::Bytes;
use fbdt_units::{Class, Instant, Space, StreamId};
use fbdt_wire::{AckFrame, Frame, Outgoing};

use super::{Session, Stream};
use crate::error::{MessageError, SessionError, StreamError};
use crate::event::Event;
use crate::message::{FIRST_MESSAGE_WINDOW, MESSAGE_OVERHEAD, MessageOptions};
use crate::receive::ReceiveMessages;
use crate::stats::MessageStats;
use crate::stream::SendMessages;

/// This part of the session's window is what the windows of messages may grow by together.
const POOL: u64 = 16;

/// Both halves of a stream's messages.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) out: SendMessages,
    pub(super) input: ReceiveMessages,
}

impl Channel {
    fn new(id: StreamId) -> Box<Self> {
        let input = ReceiveMessages::new(Space::Messages(id).to_wire());
        Box::new(Self { out: SendMessages::new(), input })
    }

    pub(super) const fn stats(&self) -> MessageStats {
        self.out.counts.plus(self.input.counts)
    }
}

impl Stream {
    /// Its messages; nobody reads those of a stream whose handle was dropped.
    fn channel(&mut self, id: StreamId) -> &mut Channel {
        let released = self.released;
        self.messages.get_or_insert_with(|| {
            let mut channel = Channel::new(id);
            if released {
                channel.input.discard();
            }
            channel
        })
    }

    /// What of `range` of the stream's bytes, or of its message space, is not acknowledged.
    pub(super) fn owed(&self, space: Space, range: Range<u64>) -> Option<Range<u64>> {
        if space.is_messages() {
            return self.messages.as_ref()?.out.unacknowledged(range);
        }
        self.send.unacknowledged(range)
    }

    /// The acknowledgement of the stream's bytes, or of its message space.
    pub(super) fn acknowledgement(&self, space: Space) -> AckFrame {
        if !space.is_messages() {
            return self.receive.acknowledgement();
        }
        match &self.messages {
            Some(channel) => channel.input.acknowledgement(),
            None => ReceiveMessages::new(space.to_wire()).acknowledgement(),
        }
    }
}

impl Session {
    /// Whether both ends know messages (F16).
    #[must_use]
    pub const fn has_messages(&self) -> bool {
        self.with_messages
    }

    /// Longest message that the peer takes, in bytes.
    #[must_use]
    pub const fn longest_message(&self) -> u32 {
        self.peer_limits.max_frame
    }

    /// Takes a message for the peer's end of the stream. It is delivered whole, on its own and
    /// not in order with other messages or the stream's bytes; or not at all, as `options` say.
    ///
    /// # Errors
    /// [`MessageError::Blocked`]: wait for [`Event::MessageWritable`]. Others say why never.
    pub fn send_message(
        &mut self,
        now: Instant,
        id: StreamId,
        bytes: Bytes,
        options: MessageOptions,
    ) -> Result<(), MessageError> {
        if let Some(reason) = &self.close {
            return Err(StreamError::Closed(reason.clone()).into());
        }
        if !self.with_messages {
            return Err(MessageError::Unavailable);
        }
        let limit = self.longest_message();
        if bytes.len() > limit as usize {
            return Err(MessageError::TooLong { size: bytes.len(), limit });
        }
        let stream = self.streams.get_mut(&id).filter(|_| id != StreamId::CONTROL);
        let stream = stream.ok_or(StreamError::Unknown(id))?;
        let channel = stream.messages.get_or_insert_with(|| Channel::new(id));
        if stream.released || channel.out.over || stream.send.is_given_up() {
            return Err(StreamError::Finished(id).into());
        }
        if !channel.out.push(now, bytes, options) {
            self.recount(id);
            return Err(MessageError::Blocked);
        }
        self.talking.insert(id);
        self.recount(id);
        self.level_messages(id);
        self.news += 1;
        Ok(())
    }

    /// The next message of the stream.
    ///
    /// # Errors
    /// [`StreamError::Blocked`]: wait for [`Event::MessageReadable`]; or none will come.
    pub fn read_message(&mut self, _now: Instant, id: StreamId) -> Result<Bytes, StreamError> {
        let closed = self.close.clone();
        let stream = self.streams.get_mut(&id).filter(|_| id != StreamId::CONTROL);
        let stream = stream.ok_or(StreamError::Unknown(id))?;
        if stream.released {
            return Err(StreamError::Finished(id));
        }
        let channel = stream.messages.get_or_insert_with(|| Channel::new(id));
        if let Some((bytes, moved)) = channel.input.read() {
            self.recount(id);
            if moved {
                self.announce(Space::Messages(id));
            }
            return Ok(bytes);
        }
        if let Some(reason) = closed {
            return Err(StreamError::Closed(reason));
        }
        if let Some(code) = stream.receive.reset {
            return Err(StreamError::Reset { stream: id, code });
        }
        channel.input.reader_blocked = true;
        Err(StreamError::Blocked)
    }

    /// The messages of a space that holds some.
    pub(super) fn channel_of(&self, space: Space) -> Option<&Channel> {
        let stream = self.streams.get(&space.stream()).filter(|_| space.is_messages());
        stream?.messages.as_deref()
    }

    /// The messages of a stream, once there were any.
    pub(super) fn channel_mut(&mut self, id: StreamId) -> Option<&mut Channel> {
        self.streams.get_mut(&id)?.messages.as_deref_mut()
    }

    /// What goes out of messages of the streams of a class that have some on their way.
    pub(super) fn talkers(&self, class: Class) -> impl Iterator<Item = (StreamId, &SendMessages)> {
        self.talking.iter().filter_map(move |id| {
            let stream = self.streams.get(id).filter(|stream| stream.send.class == class)?;
            Some((*id, &stream.messages.as_ref()?.out))
        })
    }

    pub(super) fn handle_message(
        &mut self,
        path: Option<usize>,
        id: StreamId,
        offset: u64,
        bytes: &Bytes,
    ) -> Result<(), SessionError> {
        let size = bytes.len() as u64;
        self.arrived(path, Space::Messages(id), size, false)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let class = stream.send.class as usize;
        let input = &mut stream.channel(id).input;
        let (new, moved) = input.insert(offset, bytes)?;
        let wake = new && core::mem::take(&mut input.reader_blocked);
        let holes = stream.count_holes();
        stream.recount(&mut self.memory);
        if new {
            self.totals.received += size;
            self.totals.classes[class].received += size;
        } else {
            self.totals.classes[class].duplicate += size;
            self.count_duplicate(path, size);
        }
        self.charge_holes(holes)?;
        if moved {
            self.announce(Space::Messages(id));
        }
        if wake {
            self.events.push_back(Event::MessageReadable(id));
        }
        Ok(())
    }

    pub(super) fn handle_gap(
        &mut self,
        path: Option<usize>,
        id: StreamId,
        range: Range<u64>,
    ) -> Result<(), SessionError> {
        self.arrived(path, Space::Messages(id), 0, false)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let moved = stream.channel(id).input.skip(range)?;
        let holes = stream.count_holes();
        stream.recount(&mut self.memory);
        if moved {
            self.announce(Space::Messages(id));
        }
        self.charge_holes(holes)
    }

    pub(super) fn handle_message_ack(
        &mut self,
        id: StreamId,
        ack: &AckFrame,
    ) -> Result<(), SessionError> {
        let Some(stream) = self.streams.get_mut(&id) else { return self.admit_stream(id) };
        let Some(channel) = &mut stream.messages else {
            // It says how far it would take messages; or acknowledges what was never sent.
            return SendMessages::new().acknowledge(ack).map(drop);
        };
        if !channel.out.acknowledge(ack)? {
            return Ok(());
        }
        self.news += 1;
        if channel.out.is_quiet() {
            self.talking.remove(&id);
        }
        if channel.out.wakes_writer() {
            self.events.push_back(Event::MessageWritable(id));
        }
        self.recount(id);
        self.level_messages(id);
        self.settle();
        self.reap(id);
        Ok(())
    }

    /// Grants a larger window, out of what all message spaces may grow by together.
    pub(super) fn handle_message_want(&mut self, id: StreamId, window: u64) {
        let pool = self.config.limits.session_window / POOL;
        let free = pool.saturating_sub(self.credit.grown_messages).min(self.room);
        let longest = u64::from(self.config.limits.max_frame) + MESSAGE_OVERHEAD;
        // The control stream has no messages.
        let stream = self.streams.get_mut(&id).filter(|_| id != StreamId::CONTROL);
        let Some(stream) = stream else { return };
        let channel = stream.channel(id);
        // At most half of what is not others': who comes later finds some. But every message that
        // this end has said that it takes must fit.
        let own = channel.input.grown();
        let half = ((free + own) / 2).max(longest.saturating_sub(FIRST_MESSAGE_WINDOW));
        let (grown, moved) = channel.input.want(window, half.saturating_sub(own));
        self.credit.grown_messages += grown;
        if moved {
            self.announce(Space::Messages(id));
        }
    }

    /// All messages of the session so far.
    pub(super) fn message_stats(&self) -> MessageStats {
        let open = self.streams.values().filter_map(|stream| stream.messages.as_ref());
        open.fold(self.totals.messages, |sum, channel| sum.plus(channel.stats()))
    }

    /// When the next message is worth nothing any more.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let streams = self.talking.iter().filter_map(|id| self.streams.get(id));
        streams.filter_map(|stream| stream.messages.as_ref()?.out.expiry).min()
    }

    /// Drops what is worth nothing any more, and wakes whom that gives room.
    pub(super) fn expire_messages(&mut self, now: Instant) {
        let mut quiet = alloc::vec::Vec::new();
        for id in &self.talking {
            let Some(stream) = self.streams.get_mut(id) else { continue };
            let Some(channel) = stream.messages.as_mut() else { continue };
            channel.out.expire(now);
            if channel.out.wakes_writer() {
                self.events.push_back(Event::MessageWritable(*id));
            }
            if channel.out.is_quiet() {
                quiet.push(*id);
            }
            stream.recount(&mut self.memory);
        }
        for id in quiet {
            self.talking.remove(&id);
            self.reap(id);
        }
    }

    /// Drops messages of one stream that are worth nothing any more; says whether there were any.
    pub(super) fn expire_messages_of(&mut self, now: Instant, id: StreamId) -> bool {
        let dropped = self.channel_mut(id).is_some_and(|channel| channel.out.expire(now));
        if dropped {
            self.recount(id);
        }
        dropped
    }

    /// So many bytes of messages of each class may wait, of the streams together that have some, and
    /// all together no more than this end would hold for reading; wakes whom that gives room.
    pub(super) fn size_messages(&mut self, bytes: [u64; Class::ALL.len()]) {
        let share = self.config.limits.session_window / (self.talking.len() as u64).max(1);
        let speaking = Class::ALL.map(|class| self.speaking(class).max(1));
        for id in &self.talking {
            let Some(stream) = self.streams.get_mut(id) else { continue };
            let class = stream.send.class as usize;
            let Some(channel) = stream.messages.as_mut() else { continue };
            channel.out.size((bytes[class] / speaking[class]).min(share));
            if channel.out.wakes_writer() {
                self.events.push_back(Event::MessageWritable(*id));
            }
        }
    }

    /// Asks for larger windows for messages that wait for one.
    pub(super) fn want_for_messages(&mut self, now: Instant, out: &mut Outgoing) {
        for id in &self.talking {
            let stream = self.streams.get_mut(id);
            let Some(channel) = stream.and_then(|stream| stream.messages.as_mut()) else {
                continue;
            };
            let Some(next) = channel.out.short_of() else { continue };
            // What was read above a hole has moved the limit on: it needs no window.
            let settled = channel.out.settled();
            let window = channel.out.limit.saturating_sub(settled);
            if !channel.out.wants.are_due(now, window) {
                continue;
            }
            channel.out.wants.ask(now, window);
            let wanted = 2 * next.saturating_sub(settled);
            let stream = Space::Messages(*id).to_wire();
            Frame::Want { stream, window: wanted }.encode(out.encoder());
        }
    }
}

impl MessageStats {
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            acknowledged: self.acknowledged + other.acknowledged,
            dropped: self.dropped + other.dropped,
            received: self.received + other.received,
            duplicate: self.duplicate + other.duplicate,
        }
    }
}
