//! The sending half of a stream.

use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;
use fbdt_units::{Class, Instant, RangeSet, StreamId};
use fbdt_wire::{AckFrame, Outgoing};

use super::SendBuffer;
use super::reader::ReaderWait;
use crate::error::{SessionError, StreamError};
use crate::ranges::{MAX_BYTE_RANGES, RANGE_OVERHEAD};
use crate::scale::FRAME;

/// Where the sending half is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendState {
    /// The application may write.
    Open,
    /// It has said that no more comes.
    Finished,
    /// The peer has everything.
    Acknowledged,
    /// Given up here.
    Reset,
    /// The peer does not want it.
    Stopped(u32),
}

/// Bytes going out on one stream. The end of the stream counts as one more
/// byte behind the last, so that its acknowledgement is like any other.
#[derive(Debug)]
pub(crate) struct SendStream {
    id: StreamId,
    /// Traffic class (F11).
    pub class: Class,
    buffer: SendBuffer,
    /// Bytes that no path has been given yet.
    pub unsent: RangeSet,
    /// Sent on a subflow that is gone: to be sent again first.
    pub lost: RangeSet,
    acked: RangeSet,
    /// Everything below this was acknowledged.
    pub cumulative: u64,
    /// End of what was ever sent, the stream's own end included.
    pub sent_end: u64,
    /// Offset up to which the peer allows data.
    pub limit: u64,
    /// Where this half is.
    pub state: SendState,
    /// Whether a writer waits for room.
    pub writer_blocked: bool,
    /// The application waits until the peer has acknowledged everything.
    pub delivery_awaited: bool,
    /// Most bytes that may be here, sent or not.
    pub capacity: u64,
    /// Most bytes that may wait here for a path to take them.
    pub ahead: u64,
    /// New bytes given to paths, for fairness among streams (F12).
    pub served: u64,
    reader: ReaderWait,
}

impl SendStream {
    /// A stream that may be sent up to `limit`.
    pub(crate) fn new(id: StreamId, class: Class, limit: u64, capacity: u64) -> Self {
        Self {
            id,
            class,
            buffer: SendBuffer::default(),
            unsent: RangeSet::new(),
            lost: RangeSet::new(),
            acked: RangeSet::new(),
            cumulative: 0,
            sent_end: 0,
            limit,
            state: SendState::Open,
            writer_blocked: false,
            delivery_awaited: false,
            capacity,
            ahead: u64::MAX,
            served: 0,
            reader: ReaderWait::default(),
        }
    }

    /// Highest offset ever sent, for the session's limit; without the end.
    pub(crate) fn highest_sent(&self) -> u64 {
        self.sent_end.min(self.buffer.end)
    }

    /// Bytes written and not acknowledged in order.
    pub(crate) const fn backlog(&self) -> u64 {
        self.buffer.end.saturating_sub(self.cumulative)
    }

    /// Memory that is kept until the peer has the bytes: they, and the ranges that it has of them.
    pub(crate) fn memory(&self) -> u64 {
        let ranges = RANGE_OVERHEAD * self.acked.count() as u64;
        if self.is_over() { ranges } else { self.backlog() + ranges }
    }

    /// Bytes written so far.
    pub(crate) const fn written(&self) -> u64 {
        self.buffer.end
    }

    /// Offset up to which frames may be made now: the peer's limit, the
    /// session's credit, and the end.
    pub(crate) fn bound(&self, session_credit: u64) -> u64 {
        let data = self.allowance(session_credit);
        // The end costs no credit: it may go out when all data may.
        let end = u64::from(self.state == SendState::Finished && data >= self.buffer.end);
        data.min(self.buffer.end) + end
    }

    /// Offset up to which the peer's limit and the session's credit allow
    /// data, whether there is any or not.
    pub(crate) fn allowance(&self, session_credit: u64) -> u64 {
        self.limit.min(self.highest_sent().saturating_add(session_credit))
    }

    /// Takes what fits of `data`; says how much.
    ///
    /// # Errors
    /// [`StreamError::Blocked`] when nothing fits, or that the stream is over.
    pub(crate) fn write(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        let size = self.admit(data.len())?;
        self.buffer.push(&data[..size]);
        Ok(size)
    }

    /// Takes what fits off the front of `data` without copying it; says how
    /// much.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) fn write_bytes(&mut self, data: &mut Bytes) -> Result<usize, StreamError> {
        let size = self.admit(data.len())?;
        self.buffer.push_shared(data.split_to(size));
        Ok(size)
    }

    /// Bytes that may be written now.
    fn room(&self) -> u64 {
        let unsent = self.ahead.saturating_sub(self.unsent.total());
        self.capacity.saturating_sub(self.backlog()).min(unsent)
    }

    /// Whether a writer waits for whom there is room now; it waits no longer then.
    pub(crate) fn wakes_writer(&mut self) -> bool {
        let worth = FRAME.min(self.capacity.min(self.ahead) / 4);
        let wakes = self.writer_blocked && self.room() >= worth;
        self.writer_blocked &= !wakes;
        wakes
    }

    /// How much of a write of `size` bytes fits; so much waits from now on.
    fn admit(&mut self, size: usize) -> Result<usize, StreamError> {
        match self.state {
            SendState::Open => {}
            SendState::Stopped(code) => return Err(StreamError::Stopped { stream: self.id, code }),
            _ => return Err(StreamError::Finished(self.id)),
        }
        let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
        if room == 0 && size > 0 {
            self.writer_blocked = true;
            return Err(StreamError::Blocked);
        }
        let (size, end) = (size.min(room), self.buffer.end);
        self.unsent.insert(end..end + size as u64);
        Ok(size)
    }

    /// No more will be written.
    pub(crate) fn finish(&mut self) {
        if self.state == SendState::Open {
            self.state = SendState::Finished;
            let end = self.buffer.end;
            self.unsent.insert(end..end + 1);
        }
    }

    /// Gives up sending; returns whether that is news to the peer.
    pub(crate) fn reset(&mut self, state: SendState) -> bool {
        if self.is_over() {
            return false;
        }
        self.state = state;
        self.buffer.clear();
        self.unsent = RangeSet::new();
        self.lost = RangeSet::new();
        true
    }

    /// A path takes `range`: appends its bytes to `out` and says whether it
    /// includes the end. The caller has chosen from unsent, lost or owed
    /// bytes.
    pub(crate) fn emit(&mut self, range: Range<u64>, out: &mut Outgoing) {
        let data = range.start..range.end.min(self.buffer.end);
        self.buffer.share(data, |bytes| out.put(bytes));
        self.sent_end = self.sent_end.max(range.end);
    }

    /// Whether `range` includes the end of the stream.
    pub(crate) fn includes_end(&self, range: &Range<u64>) -> bool {
        self.state == SendState::Finished && range.end > self.buffer.end
    }

    /// The lowest part of `range` that is not acknowledged.
    pub(crate) fn unacknowledged(&self, range: Range<u64>) -> Option<Range<u64>> {
        if self.is_over() {
            return None;
        }
        self.acked.first_gap(range.start.max(self.cumulative)..range.end)
    }

    /// The peer's acknowledgement; says whether anything new was in it.
    ///
    /// # Errors
    /// An acknowledgement of what was never sent.
    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        ack: &AckFrame,
    ) -> Result<bool, SessionError> {
        let old_limit = self.limit;
        self.limit = self.limit.max(ack.limit);
        if self.is_over() {
            return Ok(false);
        }
        let all = self.buffer.end + 1;
        let cumulative = if ack.cumulative == u64::MAX { all } else { ack.cumulative };
        let highest = ack.ranges.last().map_or(0, |r| r.end).max(ack.cumulative);
        let over = ack.cumulative == u64::MAX && self.state != SendState::Finished;
        if over || (ack.cumulative != u64::MAX && highest > self.sent_end) {
            let (stream, sent) = (self.id, self.sent_end);
            return Err(SessionError::Acknowledgement { stream, offset: highest, sent });
        }
        let before = (self.cumulative, self.acked.total());
        for range in &ack.ranges {
            // No honest receiver has more of them; it says them again, or passes them.
            if self.acked.count() >= MAX_BYTE_RANGES {
                break;
            }
            self.acked.insert(range.start.max(self.cumulative)..range.end.max(self.cumulative));
        }
        self.advance(cumulative);
        if self.state == SendState::Finished && self.cumulative == all {
            self.state = SendState::Acknowledged;
            self.buffer.clear();
        }
        self.reader.update(now, self.cumulative >= self.limit);
        Ok(before != (self.cumulative, self.acked.total()) || self.limit > old_limit)
    }

    /// For how long so far the peer has held all that its limit lets it be sent:
    /// its application did not read (F11). Zero once no more will be written.
    pub(crate) fn reader_wait(&self, now: Instant) -> Duration {
        if self.state == SendState::Open { self.reader.total(now) } else { Duration::ZERO }
    }

    fn advance(&mut self, cumulative: u64) {
        self.cumulative = self.cumulative.max(cumulative);
        if let Some(first) = self.acked.first()
            && first.start <= self.cumulative
        {
            self.cumulative = self.cumulative.max(first.end);
        }
        self.acked.remove_below(self.cumulative);
        self.lost.remove_below(self.cumulative);
        self.unsent.remove_below(self.cumulative);
        self.buffer.release_below(self.cumulative);
    }

    /// Whether everything written has been given to a path at least once and
    /// what is unacknowledged is at most `bytes` (F10).
    pub(crate) fn is_short_tail(&self, bytes: u64) -> bool {
        self.unsent.is_empty() && self.backlog() <= bytes
    }

    /// Whether everything written so far was acknowledged.
    pub(crate) fn is_quiet(&self) -> bool {
        self.unsent.is_empty() && self.cumulative >= self.sent_end && self.backlog() == 0
    }

    /// Bytes that were written and not acknowledged; the end counts as one.
    pub(crate) fn undelivered(&self) -> u64 {
        match self.state {
            SendState::Open => self.backlog(),
            SendState::Finished => self.backlog() + 1,
            _ => 0,
        }
    }

    /// Whether somebody waits for the delivery that has just come; nobody does then.
    pub(crate) fn tells_delivery(&mut self) -> bool {
        let tells = self.delivery_awaited && self.undelivered() == 0;
        self.delivery_awaited &= !tells;
        tells
    }

    /// Whether sending was given up here or by the peer's word.
    pub(crate) const fn is_given_up(&self) -> bool {
        matches!(self.state, SendState::Reset | SendState::Stopped(_))
    }

    /// Whether the peer needs nothing more of this half.
    pub(crate) const fn is_over(&self) -> bool {
        !matches!(self.state, SendState::Open | SendState::Finished)
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn stream() -> SendStream {
        SendStream::new(StreamId(1), Class::Background, 1000, 500)
    }

    fn ack(cumulative: u64, ranges: Vec<Range<u64>>) -> AckFrame {
        AckFrame { stream: StreamId(1), cumulative, limit: 1000, ranges }
    }

    #[test]
    fn writes_are_taken_up_to_the_capacity_and_come_back_with_acknowledgements() {
        let mut s = stream();
        assert_eq!(s.write(&[1; 600]), Ok(500));
        assert_eq!(s.write(&[1; 1]), Err(StreamError::Blocked));
        assert!(s.writer_blocked);
        let mut out = Outgoing::default();
        s.unsent.remove(0..500);
        s.emit(0..500, &mut out);
        assert_eq!(out.len(), 500);
        assert_eq!(s.acknowledge(Instant::ZERO, &ack(100, vec![200..300])), Ok(true));
        assert_eq!(s.unacknowledged(0..500), Some(100..200));
        assert_eq!(s.acknowledge(Instant::ZERO, &ack(200, vec![])), Ok(true));
        assert_eq!(s.cumulative, 300, "ranges above join the prefix");
        assert_eq!(s.write(&[1; 600]), Ok(300));
    }

    #[test]
    fn writes_are_taken_as_far_ahead_of_the_paths_as_they_may_and_come_back_with_sending() {
        let mut s = stream();
        s.ahead = 80;
        assert_eq!(s.write(&[1; 100]), Ok(80));
        assert_eq!(s.write(&[1; 1]), Err(StreamError::Blocked));
        s.unsent.remove(0..10);
        assert!(!s.wakes_writer(), "less than a quarter is not worth it");
        s.unsent.remove(10..30);
        assert!(s.wakes_writer());
        assert!(!s.wakes_writer(), "once");
        assert_eq!(s.write(&[1; 100]), Ok(30));
    }

    #[test]
    fn acknowledging_what_was_never_sent_is_refused() {
        let mut s = stream();
        s.write(&[1; 100]).unwrap();
        s.emit(0..50, &mut Outgoing::default());
        for bad in [ack(51, vec![]), ack(0, vec![10..51]), ack(u64::MAX, vec![])] {
            let refused = s.acknowledge(Instant::ZERO, &bad);
            assert!(matches!(refused, Err(SessionError::Acknowledgement { .. })));
        }
    }

    #[test]
    fn the_end_is_one_more_byte() {
        let mut s = stream();
        s.write(&[1; 10]).unwrap();
        s.finish();
        assert_eq!(s.bound(1 << 20), 11);
        assert!(s.includes_end(&(0..11)));
        assert!(!s.includes_end(&(0..10)));
        s.emit(0..11, &mut Outgoing::default());
        assert_eq!(s.highest_sent(), 10, "the end costs no credit");
        assert_eq!(s.acknowledge(Instant::ZERO, &ack(u64::MAX, vec![])), Ok(true));
        assert_eq!(s.state, SendState::Acknowledged);
    }

    #[test]
    fn f11_a_reader_that_stops_is_told_from_a_path_that_is_silent() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut s = SendStream::new(StreamId(1), Class::Background, 100, 500);
        s.write(&[1; 300]).unwrap();
        s.emit(0..100, &mut Outgoing::default());
        let limited = |cumulative, limit| AckFrame { limit, ..ack(cumulative, vec![]) };
        s.acknowledge(at(10), &limited(60, 100)).unwrap();
        assert_eq!(s.reader_wait(at(500)), Duration::ZERO, "40 bytes are on their way");
        s.acknowledge(at(500), &limited(100, 100)).unwrap();
        assert_eq!(s.reader_wait(at(800)), Duration::from_millis(300));
        s.acknowledge(at(900), &limited(100, 200)).unwrap();
        assert_eq!(s.reader_wait(at(2000)), Duration::from_millis(400));
        s.emit(100..200, &mut Outgoing::default());
        s.acknowledge(at(2000), &limited(200, 200)).unwrap();
        assert_eq!(s.reader_wait(at(2500)), Duration::from_millis(900));
        s.finish();
        assert_eq!(s.reader_wait(at(3000)), Duration::ZERO, "nothing more is written");
    }

    #[test]
    fn f2_limits_bound_what_is_sent() {
        let mut s = SendStream::new(StreamId(1), Class::Background, 40, 500);
        s.write(&[1; 100]).unwrap();
        s.finish();
        assert_eq!(s.bound(1 << 20), 40, "the stream's limit");
        assert_eq!(s.bound(30), 30, "the session's credit");
    }

    #[test]
    fn f8_a_peer_makes_this_end_remember_no_more_ranges_than_a_receiver_has() {
        let mut s = SendStream::new(StreamId(1), Class::Background, 1 << 20, 1 << 20);
        s.write(&[1; 100_000]).unwrap();
        s.emit(0..100_000, &mut Outgoing::default());
        let every_second = (0..49_000).map(|at| 2 * at + 1..2 * at + 2).collect();
        s.acknowledge(Instant::ZERO, &ack(0, every_second)).unwrap();
        assert_eq!(s.acked.count(), MAX_BYTE_RANGES);
        let known = 2 * MAX_BYTE_RANGES as u64;
        assert_eq!(s.unacknowledged(known..100_000), Some(known..100_000), "the rest is not known");
        for _ in 0..2 {
            s.acknowledge(Instant::ZERO, &ack(1000, vec![99_000..100_000])).unwrap();
        }
        assert_eq!(s.unacknowledged(99_000..100_000), None, "there is room again");
        s.acknowledge(Instant::ZERO, &ack(100_000, vec![])).unwrap();
        assert!(s.is_quiet() && s.acked.count() == 0);
    }
}
