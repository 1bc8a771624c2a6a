//! Memory that a session takes, for a driver that shares some among sessions.
//!
//! Rule: F2.

use fbdt_units::StreamId;

use super::{Session, Stream};

/// Memory of a stream beside its bytes: its state here, and the task that serves it.
const STREAM_OVERHEAD: u64 = 8 << 10;

impl Stream {
    /// Memory that the stream takes: bytes of both directions, messages, and what it costs to keep
    /// account of them.
    fn memory_now(&self) -> u64 {
        let messages = self.messages.as_ref().map_or(0, |channel| channel.out.memory());
        STREAM_OVERHEAD + self.receive_memory() + self.send.memory() + messages
    }

    /// The part of it that is held for receiving.
    pub(super) fn receive_memory(&self) -> u64 {
        let bytes = &self.receive.assembler;
        let input = self.messages.as_ref().map(|channel| &channel.input);
        let messages = input.map_or(0, |input| input.ready_bytes + input.overhead());
        bytes.memory() + bytes.range_overhead() + messages
    }

    /// Replaces the memory that `total` counts for this stream by what it takes now.
    pub(super) fn recount(&mut self, total: &mut u64) {
        let now = self.memory_now();
        *total = total.saturating_sub(core::mem::replace(&mut self.memory, now)) + now;
    }
}

impl Session {
    /// Memory that the session's streams take, in bytes: unread and out of order, unsent and
    /// unacknowledged, messages, and a fixed amount for each stream.
    #[must_use]
    pub const fn memory(&self) -> u64 {
        self.memory
    }

    /// Sums the memory of all streams; tests compare it with `memory`.
    #[must_use]
    pub fn counted_memory(&self) -> u64 {
        self.streams.values().map(Stream::memory_now).sum()
    }

    /// Bytes by which [`Self::memory`] may grow from now on. With none, no window grows, the peer's
    /// session window falls to a sixteenth as it is used up, and writers leave little (F2). What the
    /// peer was told before stays true.
    pub const fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// Returns true while the driver has no memory left for this session.
    pub(super) const fn lacks_memory(&self) -> bool {
        self.room == 0
    }

    pub(super) fn add_stream(&mut self, id: StreamId, mut stream: Stream) {
        stream.recount(&mut self.memory);
        self.streams.insert(id, stream);
    }

    /// Recounts a stream that may have changed.
    pub(super) fn recount(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.recount(&mut self.memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use bytes::Bytes;

    use super::*;
    use crate::config::Config;
    use fbdt_units::Instant;
    use fbdt_units::{Class, PathId, Role, SubflowId};
    use fbdt_wire::Frame;
    use fbdt_wire::Limits;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);
    const FIRST: StreamId = StreamId(1);
    const SHORT_PART: u64 = 16;

    fn server() -> (Session, SubflowId) {
        let session = Session::new(NOW, Role::Server, Config::default(), Limits::default());
        let mut session = session.unwrap().with_messages();
        let subflow = session.subflow_up(NOW, PathId(0), "a");
        (session, subflow)
    }

    fn data(stream: StreamId, offset: u64, size: usize) -> Frame {
        Frame::Data { stream, offset, fin: false, payload: Bytes::from(vec![0; size]) }
    }

    fn memory(session: &Session) -> u64 {
        assert_eq!(session.memory(), session.counted_memory());
        session.memory() / 1024
    }

    #[test]
    fn f2_memory_is_what_the_peer_makes_it_hold() {
        let (mut session, subflow) = server();
        let empty = memory(&session);
        let take = |session: &mut Session, frame| {
            session.handle_frame(NOW, subflow, frame).unwrap();
            memory(session)
        };
        let opened = take(&mut session, data(FIRST, 1024, 50 << 10));
        assert!((empty + 58..empty + 60).contains(&opened), "a stream and 50 KiB: {opened}");
        assert_eq!(take(&mut session, data(FIRST, 1024, 50 << 10)), opened, "nothing new");
        let message = Frame::Message { stream: FIRST, offset: 0, payload: vec![0; 8 << 10].into() };
        assert!((opened + 8..opened + 10).contains(&take(&mut session, message)));
        assert!(session.read_message(NOW, FIRST).is_ok());
        assert_eq!(memory(&session), opened);
        assert_eq!(session.write(NOW, FIRST, &[0; 100 << 10]), Ok(100 << 10));
        assert_eq!(memory(&session), opened + 100);
        session.release_stream(NOW, FIRST);
        assert!(memory(&session) < empty + 10, "nobody holds its bytes any more");
    }

    #[test]
    fn f2_windows_grow_only_by_the_room_that_is_left() {
        let (mut session, subflow) = server();
        session.handle_frame(NOW, subflow, data(FIRST, 0, 1)).unwrap();
        session.read(NOW, FIRST, 1).unwrap();
        let want = Frame::Want { stream: FIRST, window: 64 << 20 };
        for (room, grown) in [(0, 0), (4 << 20, 2 << 20)] {
            session.set_room(room);
            session.handle_frame(NOW, subflow, want.clone()).unwrap();
            assert_eq!(session.credit.grown, grown);
        }
    }

    #[test]
    fn f2_without_room_the_session_window_falls_as_it_is_used() {
        let (mut session, _) = server();
        let window = session.config.limits.session_window;
        session.set_room(0);
        session.consume_credit(window / 2);
        assert_eq!(session.credit.receive_limit, window, "what the peer was told stays true");
        session.consume_credit(window / 2);
        assert_eq!(session.credit.receive_limit, window + window / SHORT_PART);
        session.set_room(1);
        session.consume_credit(1);
        assert_eq!(session.credit.receive_limit, 2 * window + 1);
    }

    #[test]
    fn f2_without_room_writers_leave_little() {
        let (mut session, _) = server();
        session.set_room(0);
        let id = session.open_stream(NOW, Class::Background).unwrap();
        assert_eq!(session.write(NOW, id, &[0; 1 << 20]), Ok(16 << 10));
    }
}
