//! Writers and readers that know what every byte must be.
//!
//! They act as a driver's tasks do: one that was told to wait calls again only
//! after the session's event, so that an event that never comes is found.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use fbdt_proto::{Class, Event, Instant, OpenError, Session, StreamError, StreamId};

use crate::violation::Violation;

/// Eight bytes of a stream in one direction, of which the first is at eight times `index`.
const fn word(stream: u32, from_client: bool, index: u64) -> [u8; 8] {
    let salt = (stream as u64) << 1 | from_client as u64;
    let x = index.wrapping_add(salt << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9).to_le_bytes()
}

/// Appends the bytes of a stream in one direction, of which each is known by its offset.
pub(crate) fn extend_pattern(
    stream: u32,
    from_client: bool,
    offsets: Range<u64>,
    out: &mut Vec<u8>,
) {
    let from = out.len();
    let skip = (offsets.start % 8) as usize;
    let words = offsets.start / 8..offsets.end.div_ceil(8);
    out.extend(words.flat_map(|index| word(stream, from_client, index)));
    out.drain(from..from + skip);
    out.truncate(from + usize::try_from(offsets.end - offsets.start).unwrap_or(0));
}

/// So many bytes at a time, so often; without a pace as fast as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) bytes: u64,
    pub(crate) every: Duration,
}

#[derive(Debug, Default)]
struct Writer {
    /// Bytes that the application wants to have sent in all.
    wanted: u64,
    written: u64,
    finish: bool,
    finished: bool,
    /// Given up here, or by the peer's word.
    over: bool,
    /// Waits for the session's event.
    blocked: bool,
}

/// How a reader's stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Clean,
    Error,
}

#[derive(Debug)]
struct Reader {
    read: u64,
    ending: Option<Ending>,
    /// Nobody reads it any more.
    stopped: bool,
    /// Waits for the session's event.
    blocked: bool,
}

/// What goes one way on one stream.
#[derive(Debug)]
struct Half {
    writer: Writer,
    reader: Reader,
    released: bool,
}

impl Default for Half {
    fn default() -> Self {
        let reader = Reader { read: 0, ending: None, stopped: false, blocked: false };
        Self { writer: Writer::default(), reader, released: false }
    }
}

/// One end's application: any number of streams.
#[derive(Debug)]
pub(crate) struct Application {
    client: bool,
    streams: BTreeMap<u32, Half>,
    /// Whether it reads now.
    pub(crate) reading: bool,
    /// Whether all streams, also those to come, are finished.
    finishing: bool,
    /// Whether it drops the handles of streams that are over.
    pub(crate) tidy: bool,
    pub(crate) read_pace: Option<Pace>,
    pub(crate) write_pace: Option<Pace>,
    next_read: Instant,
    next_write: Instant,
    /// Bytes read on all streams.
    pub(crate) delivered: u64,
    /// Something may have become possible since the last run.
    awake: bool,
    chunk: Vec<u8>,
}

impl Application {
    pub(crate) const fn new(client: bool) -> Self {
        Self {
            client,
            streams: BTreeMap::new(),
            reading: true,
            finishing: false,
            tidy: false,
            read_pace: None,
            write_pace: None,
            next_read: Instant::ZERO,
            next_write: Instant::ZERO,
            delivered: 0,
            awake: true,
            chunk: Vec::new(),
        }
    }

    pub(crate) fn open(
        &mut self,
        now: Instant,
        session: &mut Session,
        class: Class,
    ) -> Result<StreamId, OpenError> {
        let id = session.open_stream(now, class)?;
        self.join(id);
        Ok(id)
    }

    /// The peer opened this stream; this end writes nothing unless asked.
    pub(crate) fn join(&mut self, id: StreamId) {
        let half = self.streams.entry(id.0).or_default();
        half.writer.finish |= self.finishing;
        self.awake = true;
    }

    /// Finishes all streams, also those that the peer has yet to open.
    pub(crate) fn finish_all(&mut self) {
        self.awake = true;
        self.finishing = true;
        for half in self.streams.values_mut() {
            half.writer.finish = true;
        }
    }

    pub(crate) fn want(&mut self, id: StreamId, bytes: u64) {
        self.awake = true;
        if let Some(Half { writer, .. }) = self.streams.get_mut(&id.0)
            && (!writer.finish || (self.finishing && writer.wanted == 0 && !writer.finished))
        {
            writer.wanted += bytes;
        }
    }

    pub(crate) fn finish(&mut self, id: StreamId) {
        self.awake = true;
        if let Some(half) = self.streams.get_mut(&id.0) {
            half.writer.finish = true;
        }
    }

    /// Gives up sending.
    pub(crate) fn abandon(&mut self, id: StreamId) {
        self.awake = true;
        if let Some(half) = self.streams.get_mut(&id.0) {
            half.writer.over = true;
        }
    }

    /// Gives up receiving.
    pub(crate) fn stop(&mut self, id: StreamId) {
        self.awake = true;
        if let Some(half) = self.streams.get_mut(&id.0) {
            half.reader.stopped = true;
        }
    }

    /// Drops the handle.
    pub(crate) fn release(&mut self, id: StreamId) {
        self.awake = true;
        if let Some(half) = self.streams.get_mut(&id.0) {
            half.released = true;
            half.reader.stopped |= half.reader.ending.is_none();
            half.writer.over |= !half.writer.finished;
        }
    }

    pub(crate) fn is_released(&self, id: StreamId) -> bool {
        self.streams.get(&id.0).is_some_and(|half| half.released)
    }

    pub(crate) fn streams(&self) -> Vec<StreamId> {
        self.streams.keys().map(|id| StreamId(*id)).collect()
    }

    /// Whether writers or readers still have something to do.
    pub(crate) fn wake(&mut self) {
        self.awake = true;
    }

    /// The session's event for one stream.
    pub(crate) fn handle_event(&mut self, event: &Event) {
        match event {
            Event::StreamOpened(id) => self.join(*id),
            Event::Readable(id) | Event::StreamReset { stream: id, .. } => {
                if let Some(half) = self.streams.get_mut(&id.0) {
                    half.reader.blocked = false;
                    self.awake = true;
                }
            }
            Event::Writable(id) | Event::StreamStopped { stream: id, .. } => {
                if let Some(half) = self.streams.get_mut(&id.0) {
                    half.writer.blocked = false;
                    self.awake = true;
                }
            }
            _ => {}
        }
    }

    /// When a paced reader or writer goes on.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let reads = self.read_pace.is_some()
            && self.reading
            && self.streams.values().any(|h| !h.reader.blocked && h.reader.is_open());
        let writes = self.write_pace.is_some()
            && self.streams.values().any(|h| !h.writer.blocked && h.writer.has_more());
        [reads.then_some(self.next_read), writes.then_some(self.next_write)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether all that this end wants to send has been read by `peer`, or one
    /// of them does not want that any more.
    pub(crate) fn has_reached(&self, peer: &Self) -> bool {
        self.streams.iter().all(|(id, half)| half.writer.has_reached(peer.streams.get(id)))
    }

    /// Streams of which that is not so.
    pub(crate) fn not_reached(&self, peer: &Self) -> Vec<StreamId> {
        let late = |(id, half): (&u32, &Half)| {
            (!half.writer.has_reached(peer.streams.get(id))).then_some(StreamId(*id))
        };
        self.streams.iter().filter_map(late).collect()
    }

    /// Whether every reader has come to an end of some kind.
    pub(crate) fn has_ended(&self) -> bool {
        self.streams.values().all(|h| h.reader.ending.is_some() || h.reader.stopped)
    }

    /// Writes and reads what goes; checks every byte. `now` is this end's
    /// clock, `at` the world's.
    pub(crate) fn run(
        &mut self,
        at: Instant,
        now: Instant,
        session: &mut Session,
        peer: &Self,
    ) -> Result<(), Violation> {
        let due = |pace: Option<Pace>, next: Instant| pace.is_some() && next <= at;
        if !self.awake
            && !due(self.read_pace, self.next_read)
            && !due(self.write_pace, self.next_write)
        {
            return Ok(());
        }
        self.awake = false;
        self.write_all(at, now, session)?;
        if self.reading && (self.read_pace.is_none() || self.next_read <= at) {
            let mut left = u64::MAX;
            if let Some(pace) = self.read_pace {
                left = pace.bytes;
                self.next_read = at + pace.every;
            }
            for (&id, half) in &mut self.streams {
                let theirs = peer.streams.get(&id).map(|half| &half.writer);
                self.delivered += half.reader.run(
                    id,
                    !self.client,
                    now,
                    session,
                    theirs,
                    (&mut self.chunk, &mut left),
                )?;
            }
        }
        if self.tidy {
            self.release_what_is_over(now, session);
        }
        Ok(())
    }

    fn write_all(
        &mut self,
        at: Instant,
        now: Instant,
        session: &mut Session,
    ) -> Result<(), Violation> {
        let mut left = u64::MAX;
        if let Some(pace) = self.write_pace {
            if self.next_write > at {
                return Ok(());
            }
            left = pace.bytes;
            self.next_write = at + pace.every;
        }
        for (&id, half) in &mut self.streams {
            half.writer.run(StreamId(id), self.client, now, session, &mut self.chunk, &mut left)?;
        }
        Ok(())
    }

    fn release_what_is_over(&mut self, now: Instant, session: &mut Session) {
        for (&id, half) in &mut self.streams {
            let read = half.reader.ending.is_some() || half.reader.stopped;
            let written = half.writer.finished || half.writer.over;
            if read && written && !half.released {
                half.released = true;
                session.release_stream(now, StreamId(id));
            }
        }
    }
}

impl Writer {
    const fn has_more(&self) -> bool {
        !self.over && (self.written < self.wanted || (self.finish && !self.finished))
    }

    fn has_reached(&self, peer: Option<&Half>) -> bool {
        let Some(Half { reader, .. }) = peer else {
            return self.wanted == 0 && !self.finish && !self.over;
        };
        match (self.over, reader.stopped) {
            (_, true) => true,
            (true, false) => reader.ending.is_some(),
            (false, false) => {
                reader.read == self.wanted && (reader.ending.is_some() || !self.finish)
            }
        }
    }

    fn run(
        &mut self,
        id: StreamId,
        client: bool,
        now: Instant,
        session: &mut Session,
        chunk: &mut Vec<u8>,
        left: &mut u64,
    ) -> Result<(), Violation> {
        while self.written < self.wanted && !self.over && !self.blocked && *left > 0 {
            let size = (self.wanted - self.written).min(64 << 10).min(*left);
            chunk.clear();
            extend_pattern(id.0, client, self.written..self.written + size, chunk);
            match session.write(now, id, chunk) {
                Ok(size) => {
                    self.written += size as u64;
                    *left -= size as u64;
                }
                Err(StreamError::Blocked) => self.blocked = true,
                Err(StreamError::Stopped { .. }) => self.over = true,
                Err(StreamError::Closed(_)) if session.is_closed() => self.over = true,
                Err(error) => return Err(Violation::refused(id, &error)),
            }
        }
        if self.finish && !self.finished && !self.over && self.written == self.wanted {
            self.finished = true;
            session.finish(now, id);
        }
        Ok(())
    }
}

impl Reader {
    const fn is_open(&self) -> bool {
        self.ending.is_none() && !self.stopped
    }

    /// Reads what there is; bytes read.
    fn run(
        &mut self,
        id: u32,
        from_client: bool,
        now: Instant,
        session: &mut Session,
        theirs: Option<&Writer>,
        (chunk, left): (&mut Vec<u8>, &mut u64),
    ) -> Result<u64, Violation> {
        let before = self.read;
        while self.is_open() && !self.blocked && *left > 0 {
            let most = usize::try_from(*left).unwrap_or(usize::MAX);
            match session.read(now, StreamId(id), most) {
                Ok(Some(bytes)) => {
                    chunk.clear();
                    let end = self.read + bytes.len() as u64;
                    extend_pattern(id, from_client, self.read..end, chunk);
                    if chunk[..] != bytes[..] {
                        let same = chunk.iter().zip(bytes.iter()).take_while(|(a, b)| a == b);
                        let offset = self.read + same.count() as u64;
                        return Err(Violation::WrongByte { stream: id, offset });
                    }
                    self.read += bytes.len() as u64;
                    *left -= bytes.len() as u64;
                }
                Ok(None) => {
                    self.ending = Some(Ending::Clean);
                    let (written, finished) =
                        theirs.map_or((0, false), |w| (w.written, w.finished));
                    if !finished || written != self.read {
                        let delivered = self.read;
                        return Err(Violation::WrongEnd { stream: id, delivered, written });
                    }
                }
                Err(StreamError::Blocked) => self.blocked = true,
                Err(error) => {
                    self.ending = Some(Ending::Error);
                    let given_up = theirs.is_none_or(|w| w.over);
                    if !given_up && !session.is_closed() {
                        return Err(Violation::refused(StreamId(id), &error));
                    }
                }
            }
        }
        Ok(self.read - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_known_by_its_stream_direction_and_offset_however_it_is_asked_for() {
        let bytes = |stream, from_client, offsets| {
            let mut bytes = vec![1, 2, 3];
            extend_pattern(stream, from_client, offsets, &mut bytes);
            bytes.split_off(3)
        };
        let all = bytes(5, true, 0..4096);
        for (from, to) in [(0, 1), (7, 9), (8, 16), (13, 13), (1001, 4096)] {
            assert_eq!(bytes(5, true, from..to), all[from as usize..to as usize]);
        }
        assert_ne!(bytes(5, false, 0..64), all[..64]);
        assert_ne!(bytes(6, true, 0..64), all[..64]);
        assert_ne!(all[..2048], all[2048..]);
    }
}
