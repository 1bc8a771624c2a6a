//! The receiving half of a stream's messages.
//!
//! Rule: F16.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;
use fbdt_units::{RangeSet, StreamId};
use fbdt_wire::{AckFrame, MAX_ACK_RANGES};

use super::ReceiveWindow;
use crate::error::SessionError;
use crate::message::{FIRST_MESSAGE_WINDOW, MESSAGE_OVERHEAD, MOST_MESSAGE_WINDOW};
use crate::ranges::{MAX_MESSAGE_RANGES, RANGE_OVERHEAD};
use crate::stats::MessageStats;

/// Messages coming in on one stream: whole, in the order in which they arrive, each once.
#[derive(Debug)]
pub(crate) struct ReceiveMessages {
    space: StreamId,
    received: RangeSet,
    window: ReceiveWindow,
    ready: VecDeque<Bytes>,
    /// Memory that unread messages take, in bytes.
    pub ready_bytes: u64,
    discarding: bool,
    /// A reader waits.
    pub reader_blocked: bool,
    /// What became of them.
    pub counts: MessageStats,
}

impl ReceiveMessages {
    /// Nothing has arrived on `space`.
    pub(crate) fn new(space: StreamId) -> Self {
        Self {
            space,
            received: RangeSet::new(),
            window: ReceiveWindow::new(FIRST_MESSAGE_WINDOW, MOST_MESSAGE_WINDOW),
            ready: VecDeque::new(),
            ready_bytes: 0,
            discarding: false,
            reader_blocked: true,
            counts: MessageStats::default(),
        }
    }

    /// Takes a message that lies at `offset`; says whether it is new and whether the limit moved.
    ///
    /// # Errors
    /// It lies beyond the limit, or across others; or there are too many holes.
    pub(crate) fn insert(
        &mut self,
        offset: u64,
        bytes: &Bytes,
    ) -> Result<(bool, bool), SessionError> {
        let range = self.check(offset, bytes.len() as u64 + MESSAGE_OVERHEAD)?;
        match self.received.first_gap(range.clone()) {
            None => {
                self.counts.duplicate += 1;
                return Ok((false, false));
            }
            Some(gap) if gap == range => {}
            Some(_) => return Err(SessionError::Message { stream: self.space, offset }),
        }
        let size = range.end - range.start;
        self.received.insert(range);
        self.check_holes()?;
        self.counts.received += 1;
        if self.discarding {
            return Ok((true, self.window.consume(size)));
        }
        self.ready_bytes += size;
        self.ready.push_back(bytes.clone());
        Ok((true, false))
    }

    /// Nothing will come in `range`; says whether the limit moved.
    ///
    /// # Errors
    /// It is no range, or reaches beyond the limit; or there are too many holes.
    pub(crate) fn skip(&mut self, range: Range<u64>) -> Result<bool, SessionError> {
        let range = self.check(range.start, range.end.saturating_sub(range.start))?;
        let known = self.received.total_within(range.clone());
        let missing = range.end - range.start - known;
        self.received.insert(range);
        self.check_holes()?;
        Ok(missing > 0 && self.window.consume(missing))
    }

    fn check_holes(&self) -> Result<(), SessionError> {
        let (stream, count) = (self.space.stream(), self.received.count());
        if count <= MAX_MESSAGE_RANGES {
            Ok(())
        } else {
            Err(SessionError::Fragments { stream, count })
        }
    }

    fn check(&self, offset: u64, size: u64) -> Result<Range<u64>, SessionError> {
        let stream = self.space;
        let end = offset.checked_add(size).filter(|_| size > 0);
        let end = end.ok_or(SessionError::Message { stream, offset })?;
        self.window.check(stream, end)?;
        Ok(offset..end)
    }

    /// The next message, and whether the limit moved.
    pub(crate) fn read(&mut self) -> Option<(Bytes, bool)> {
        let bytes = self.ready.pop_front()?;
        let size = bytes.len() as u64 + MESSAGE_OVERHEAD;
        self.ready_bytes -= size;
        let moved = self.window.consume(size);
        Some((bytes, moved))
    }

    /// Nobody will read them any more; says whether the limit moved.
    pub(crate) fn discard(&mut self) -> bool {
        self.discarding = true;
        self.ready.clear();
        let size = core::mem::take(&mut self.ready_bytes);
        size > 0 && self.window.consume(size)
    }

    /// The sender could use a window of `wanted` bytes: grows by at most `pool`, says by how much,
    /// and whether the limit moved.
    pub(crate) fn want(&mut self, wanted: u64, pool: u64) -> (u64, bool) {
        self.window.want(wanted, self.ready_bytes, pool)
    }

    /// By how much the window has grown.
    pub(crate) const fn grown(&self) -> u64 {
        self.window.size - FIRST_MESSAGE_WINDOW
    }

    /// What the holes cost beside that, in bytes: the ranges that say where they lie.
    pub(crate) fn overhead(&self) -> u64 {
        let start = self.received.first().is_some_and(|range| range.start == 0);
        RANGE_OVERHEAD * (self.received.count() as u64 - u64::from(start))
    }

    /// The acknowledgement that describes this half.
    pub(crate) fn acknowledgement(&self) -> AckFrame {
        let mut ranges = self.received.iter().peekable();
        let cumulative = ranges.next_if(|range| range.start == 0).map_or(0, |range| range.end);
        let ranges: Vec<_> = ranges.take(MAX_ACK_RANGES).collect();
        AckFrame { stream: self.space, cumulative, limit: self.window.limit, ranges }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn space() -> ReceiveMessages {
        ReceiveMessages::new(StreamId(1 | StreamId::MESSAGES))
    }

    fn text(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn f16_whole_out_of_order_and_once() {
        let mut m = space();
        assert_eq!(m.insert(67, &text("bcde")), Ok((true, false)));
        assert_eq!(m.acknowledgement().ranges, [67..135]);
        assert_eq!(m.insert(0, &text("abc")), Ok((true, false)));
        assert_eq!(m.insert(67, &text("bcde")), Ok((false, false)));
        assert_eq!(m.acknowledgement().cumulative, 135);
        assert_eq!(m.read().unwrap().0, "bcde");
        assert_eq!(m.read().unwrap().0, "abc");
        assert_eq!(m.read(), None);
        assert_eq!((m.counts.received, m.counts.duplicate, m.ready_bytes), (2, 1, 0));
    }

    #[test]
    fn f16_what_lies_across_others_or_beyond_the_limit_is_refused() {
        let mut m = space();
        m.insert(64, &text("")).unwrap();
        for (offset, bytes) in [(63, ""), (65, ""), (0, "a"), (100, "")] {
            let error = m.insert(offset, &text(bytes)).unwrap_err();
            assert!(matches!(error, SessionError::Message { .. }), "{error}");
        }
        let beyond = m.insert(FIRST_MESSAGE_WINDOW - 63, &text("")).unwrap_err();
        assert!(matches!(beyond, SessionError::StreamLimit { .. }));
        for (offset, size) in [(5, 0), (u64::MAX, 64), (u64::MAX - 1, 1)] {
            assert!(m.skip(offset..offset.saturating_add(size)).is_err());
        }
        assert!(m.insert(u64::MAX - 3, &text("")).is_err());
    }

    #[test]
    fn f16_a_gap_gives_its_credit_back() {
        let mut m = space();
        assert_eq!(m.skip(0..8192), Ok(true));
        assert_eq!(m.acknowledgement().limit, FIRST_MESSAGE_WINDOW + 8192);
        assert_eq!(m.insert(64, &text("late")), Ok((false, false)), "it is not delivered");
        assert_eq!(m.skip(0..8192), Ok(false), "known");
    }

    proptest! {
        /// Whatever arrives, memory stays below the window and the limit never falls.
        #[test]
        fn memory_stays_within_the_window(
            steps in prop::collection::vec((0..40_000u64, 0..900usize, 0..4u8), 1..200),
        ) {
            let mut m = space();
            let mut limit = 0;
            for (offset, size, what) in steps {
                match what {
                    0 => drop(m.read()),
                    1 => drop(m.skip(offset..offset + size as u64)),
                    _ => drop(m.insert(offset, &Bytes::from(alloc::vec![0; size]))),
                }
                prop_assert!(m.ready_bytes <= FIRST_MESSAGE_WINDOW);
                let now = m.acknowledgement().limit;
                prop_assert!(now >= limit);
                limit = now;
            }
        }
    }
}
