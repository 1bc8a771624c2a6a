//! What the application calls.

use bytes::Bytes;
use fbdt_units::{Class, Instant, Space, StreamId};
use fbdt_wire::ControlMessage;

use super::Session;
use crate::error::{OpenError, StreamError};
use crate::stream::{SendState, SendStream};

impl Session {
    /// Opens a stream; the peer sees it with its first bytes.
    ///
    /// # Errors
    /// The session is over, or the peer's number of streams is used up.
    pub fn open_stream(&mut self, _now: Instant, class: Class) -> Result<StreamId, OpenError> {
        if self.is_ending() {
            return Err(OpenError::Closed);
        }
        let limit = self.counts.local_limit;
        let id = StreamId::nth(self.role, self.counts.local)
            .filter(|_| self.counts.local < limit)
            .ok_or(OpenError::Limit(limit))?;
        self.counts.local += 1;
        let stream = self.new_stream(id, class);
        self.add_stream(id, stream);
        self.send_control(ControlMessage::Open { stream: id, class });
        Ok(id)
    }

    /// Gives a stream another class (F11): what this end sends from now on is served by it. The
    /// peer decides for what it sends itself.
    pub fn set_class(&mut self, id: StreamId, class: Class) {
        if id == StreamId::CONTROL {
            return;
        }
        // Among its new peers it has had as much as the one that had least.
        let least = self.least_served(id, class);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.has_class = true;
            stream.class_guessed = false;
            if stream.send.class != class {
                stream.send.class = class;
                stream.send.served = least;
                if let Some(channel) = &mut stream.messages {
                    channel.out.served = least;
                }
            }
            self.news += 1;
            self.refresh_turn(id);
        }
    }

    /// The same with a class that is guessed from how the application behaves, as
    /// [`crate::StreamStats`] then says.
    pub fn guess_class(&mut self, id: StreamId, class: Class) {
        self.set_class(id, class);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.class_guessed = true;
        }
    }

    /// Takes what fits of `data`; says how many bytes.
    ///
    /// # Errors
    /// [`StreamError::Blocked`]: wait for [`crate::Event::Writable`].
    pub fn write(
        &mut self,
        _now: Instant,
        id: StreamId,
        data: &[u8],
    ) -> Result<usize, StreamError> {
        self.write_by(id, |send| send.write(data))
    }

    /// The same without copying: takes what fits off the front of `data`.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_bytes(
        &mut self,
        _now: Instant,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, StreamError> {
        self.write_by(id, |send| send.write_bytes(data))
    }

    fn write_by(
        &mut self,
        id: StreamId,
        write: impl FnOnce(&mut SendStream) -> Result<usize, StreamError>,
    ) -> Result<usize, StreamError> {
        self.check_open()?;
        let (lacks_memory, least) = (self.lacks_memory(), self.least_capacity());
        let stream = self.streams.get_mut(&id).ok_or(StreamError::Unknown(id))?;
        // Buffers are sized now and then; until then many writers would fill what they had.
        if lacks_memory && stream.send.state == SendState::Open && stream.send.backlog() >= least {
            stream.send.writer_blocked = true;
            return Err(StreamError::Blocked);
        }
        let size = write(&mut stream.send)?;
        self.room = self.room.saturating_sub(size as u64);
        if size > 0 {
            self.mark_busy(id);
        }
        Ok(size)
    }

    /// Up to `max` bytes in order; `Ok(None)` at the end of the stream.
    ///
    /// # Errors
    /// [`StreamError::Blocked`]: wait for [`crate::Event::Readable`].
    pub fn read(
        &mut self,
        _now: Instant,
        id: StreamId,
        max: usize,
    ) -> Result<Option<Bytes>, StreamError> {
        let closed = self.check_open();
        let stream = self.streams.get_mut(&id).ok_or(StreamError::Unknown(id))?;
        // Part of it was thrown away: never a clean end.
        if let Err(error) = &closed
            && !stream.receive.is_complete()
        {
            return Err(error.clone());
        }
        let bytes = match stream.receive.read(max) {
            Ok(Some(bytes)) => bytes,
            Err(StreamError::Blocked) => {
                closed?;
                stream.reader_blocked = true;
                return Err(StreamError::Blocked);
            }
            end => return end,
        };
        let size = bytes.len() as u64;
        let window = &mut stream.receive.window;
        let (moved, short) = (window.consume(size), window.is_short());
        stream.recount(&mut self.memory);
        if moved {
            self.announce(Space::bytes_of(id));
        }
        if moved && short {
            // The peer's sender waits for the limit: acknowledgements leave without a pause (F8).
            self.subflows().for_each(|subflow| subflow.ack_hurries = true);
        }
        self.consume_credit(size);
        Ok(Some(bytes))
    }

    /// Says that nothing more will be written.
    pub fn finish(&mut self, _now: Instant, id: StreamId) {
        if self.close.is_some() {
            return;
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.send.finish();
            self.mark_busy(id);
        }
    }

    /// Gives up sending; the peer's reader gets `code`.
    pub fn reset(&mut self, now: Instant, id: StreamId, code: u32) {
        self.give_up(id, SendState::Reset, code);
        self.recount(id);
        self.reap(id);
        self.leave(now);
    }

    /// Sends nothing more of the stream; says whether that is news to the peer, which gets `code`.
    pub(super) fn give_up(&mut self, id: StreamId, state: SendState, code: u32) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let end = stream.send.highest_sent();
        if let Some(channel) = &mut stream.messages {
            channel.out.abandon();
            if channel.out.wakes_writer() || state != SendState::Reset {
                self.events.push_back(crate::Event::MessageWritable(id));
            }
            self.talking.remove(&id);
        }
        let is_news = stream.send.reset(state);
        if is_news {
            self.send_control(ControlMessage::Reset { stream: id, code, end });
        }
        is_news
    }

    /// Gives up receiving; the peer's writer gets `code`.
    pub fn stop_sending(&mut self, _now: Instant, id: StreamId, code: u32) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let over = stream.receive.is_complete() || stream.receive.is_finished();
        self.discard_input(id);
        if !over {
            self.send_control(ControlMessage::Stop { stream: id, code });
        }
        self.reap(id);
    }

    /// The application dropped its handle: what is not finished is given up.
    pub fn release_stream(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.released = true;
        let unfinished = stream.send.state == SendState::Open;
        let unread = !stream.receive.is_finished();
        let moved = stream.messages.as_mut().is_some_and(|channel| channel.input.discard());
        stream.recount(&mut self.memory);
        if moved {
            self.announce(Space::Messages(id));
        }
        if unfinished {
            self.reset(now, id, 0);
        }
        if unread {
            self.stop_sending(now, id, 0);
        }
        self.reap(id);
    }

    /// Drops what the stream holds and counts it as taken.
    pub(super) fn discard_input(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.receive.discard();
        let (before, now) = stream.count_holes();
        let (rest, moved) = stream.receive.take_rest();
        stream.recount(&mut self.memory);
        self.credit.holes = self.credit.holes.saturating_sub(before) + now;
        if moved {
            self.announce(Space::bytes_of(id));
        }
        self.consume_credit(rest);
    }

    fn check_open(&self) -> Result<(), StreamError> {
        match &self.close {
            Some(reason) => Err(StreamError::Closed(reason.clone())),
            None => Ok(()),
        }
    }
}
