//! The receiving half of a stream and its acknowledgements (F8).

use alloc::vec::Vec;

use bytes::Bytes;
use fbdt_units::{Instant, StreamId};
use fbdt_wire::{AckFrame, MAX_ACK_RANGES};

use super::{Assembler, Inserted, ReceiveWindow};
use crate::error::{SessionError, StreamError};
use crate::ranges::MAX_BYTE_RANGES;

/// Bytes coming in on one stream.
#[derive(Debug)]
pub(crate) struct ReceiveStream {
    id: StreamId,
    /// What has been put together so far.
    pub assembler: Assembler,
    /// The advertised limit.
    pub window: ReceiveWindow,
    /// Highest offset that arrived, for the session's limit.
    pub highest: u64,
    end: Option<u64>,
    /// The code with which the peer gave up sending.
    pub reset: Option<u32>,
    discarding: bool,
    end_seen: bool,
}

impl ReceiveStream {
    /// A stream that nothing has arrived on.
    pub(crate) fn new(id: StreamId, window: ReceiveWindow) -> Self {
        Self {
            id,
            assembler: Assembler::default(),
            window,
            highest: 0,
            end: None,
            reset: None,
            discarding: false,
            end_seen: false,
        }
    }

    /// Bytes up to the highest that arrived which the application has not taken.
    pub(crate) const fn untaken(&self) -> u64 {
        self.highest.saturating_sub(self.window.consumed)
    }

    /// Counts those as taken: how many they are, and whether the limit moved.
    pub(crate) const fn take_rest(&mut self) -> (u64, bool) {
        let rest = self.untaken();
        (rest, self.window.consume(rest))
    }

    /// Takes a data frame.
    ///
    /// # Errors
    /// Data beyond the advertised limit or the stream's end, or too many
    /// separate pieces.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        offset: u64,
        fin: bool,
        payload: &Bytes,
    ) -> Result<Inserted, SessionError> {
        let end = offset + payload.len() as u64;
        self.window.check(self.id, end)?;
        self.check_end(end, fin)?;
        if fin {
            self.end = Some(end);
        }
        self.highest = self.highest.max(end);
        let mut inserted = self.assembler.insert(now, offset, payload);
        if self.is_discarding() {
            self.assembler.discard();
            inserted.delivered = false;
        }
        let count = self.assembler.pieces();
        if count > MAX_BYTE_RANGES {
            return Err(SessionError::Fragments { stream: self.id, count });
        }
        Ok(inserted)
    }

    fn check_end(&self, end: u64, fin: bool) -> Result<(), SessionError> {
        let stream = self.id;
        match self.end {
            Some(known) if end > known || (fin && end != known) => {
                Err(SessionError::FinalSize { stream, end, known })
            }
            None if fin && end < self.highest => {
                Err(SessionError::FinalSize { stream, end, known: self.highest })
            }
            _ => Ok(()),
        }
    }

    /// The peer gave up sending, having sent up to `end`.
    ///
    /// # Errors
    /// An end that contradicts what is known.
    pub(crate) fn peer_reset(&mut self, code: u32, end: u64) -> Result<(), SessionError> {
        let end = end.max(self.highest);
        self.check_end(end, false)?;
        self.window.check(self.id, end)?;
        if !self.is_complete() {
            self.highest = end;
            self.reset = Some(code);
            self.assembler.discard();
        }
        Ok(())
    }

    /// Bytes for the application; `Ok(None)` at the end of the stream.
    ///
    /// # Errors
    /// [`StreamError::Blocked`] if nothing is there yet, or the peer's reset.
    pub(crate) fn read(&mut self, max: usize) -> Result<Option<Bytes>, StreamError> {
        if let Some(code) = self.reset {
            self.end_seen = true;
            return Err(StreamError::Reset { stream: self.id, code });
        }
        match self.assembler.read(max) {
            Some(bytes) => Ok(Some(bytes)),
            None if self.is_complete() => {
                self.end_seen = true;
                Ok(None)
            }
            None => Err(StreamError::Blocked),
        }
    }

    /// Nobody will read this stream any more.
    pub(crate) fn discard(&mut self) {
        self.discarding = true;
        self.end_seen = true;
        self.assembler.discard();
    }

    /// Whether what arrives is thrown away.
    pub(crate) const fn is_discarding(&self) -> bool {
        self.discarding || self.reset.is_some()
    }

    /// Whether every byte and the end have arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.end == Some(self.assembler.cumulative)
    }

    /// Whether nothing more will come: it was reset, or is complete.
    fn is_over(&self) -> bool {
        self.reset.is_some() || self.is_complete()
    }

    /// Whether the application has nothing more to learn from this half.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_over() && self.end_seen
    }

    /// Whether there is something for the application to see.
    pub(crate) fn is_readable(&self) -> bool {
        self.is_over() || self.assembler.ready_bytes > 0
    }

    /// The acknowledgement that describes this half (F8). The end counts as
    /// one more byte.
    pub(crate) fn acknowledgement(&self) -> AckFrame {
        let (stream, limit) = (self.id, self.window.limit);
        if self.is_over() {
            return AckFrame { stream, cumulative: u64::MAX, limit, ranges: Vec::new() };
        }
        let mut ranges: Vec<_> = self.assembler.received.iter().take(MAX_ACK_RANGES).collect();
        if let (Some(end), Some(last)) = (self.end, ranges.last_mut())
            && last.end == end
        {
            last.end += 1;
        }
        AckFrame { stream, cumulative: self.assembler.cumulative, limit, ranges }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn stream() -> ReceiveStream {
        ReceiveStream::new(StreamId(1), ReceiveWindow::new(100, 100))
    }

    fn insert(s: &mut ReceiveStream, offset: u64, n: usize, fin: bool) -> Result<(), SessionError> {
        s.insert(Instant::ZERO, offset, fin, &Bytes::from(alloc::vec![0; n])).map(|_| ())
    }

    #[test]
    fn data_beyond_the_limit_or_the_end_is_refused() {
        let mut s = stream();
        assert_eq!(insert(&mut s, 0, 100, false), Ok(()));
        assert!(matches!(insert(&mut s, 100, 1, false), Err(SessionError::StreamLimit { .. })));
        let mut s = stream();
        assert_eq!(insert(&mut s, 10, 10, true), Ok(()));
        assert!(matches!(insert(&mut s, 20, 1, false), Err(SessionError::FinalSize { .. })));
        assert!(matches!(insert(&mut s, 0, 5, true), Err(SessionError::FinalSize { .. })));
        let mut s = stream();
        assert_eq!(insert(&mut s, 10, 10, false), Ok(()));
        assert!(matches!(insert(&mut s, 0, 5, true), Err(SessionError::FinalSize { .. })));
    }

    #[test]
    fn f8_the_end_is_acknowledged_as_one_more_byte() {
        let mut s = stream();
        insert(&mut s, 10, 10, true).unwrap();
        assert_eq!(s.acknowledgement().ranges, [10..21]);
        assert_eq!(s.read(9), Err(StreamError::Blocked));
        insert(&mut s, 0, 10, false).unwrap();
        assert_eq!(s.acknowledgement().cumulative, u64::MAX);
        assert!(!s.is_finished(), "the application has not seen the end");
        while let Ok(Some(_)) = s.read(7) {}
        assert!(s.is_finished());
    }

    #[test]
    fn an_empty_stream_ends() {
        let mut s = stream();
        insert(&mut s, 0, 0, true).unwrap();
        assert_eq!(s.read(9), Ok(None));
        assert!(s.is_finished());
    }

    #[test]
    fn a_reset_drops_what_is_held() {
        let mut s = stream();
        insert(&mut s, 10, 10, false).unwrap();
        s.peer_reset(7, 30).unwrap();
        assert_eq!(s.assembler.memory(), 0);
        assert_eq!(s.read(9), Err(StreamError::Reset { stream: StreamId(1), code: 7 }));
        assert_eq!(s.acknowledgement().cumulative, u64::MAX);
    }
}
