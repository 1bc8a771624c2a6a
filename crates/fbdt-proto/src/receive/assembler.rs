//! Puts a stream's bytes into order (F13).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;
use fbdt_units::{DelayHistogram, Instant, RangeSet};

use crate::ranges::RANGE_OVERHEAD;

/// Memory that a piece costs beside its bytes: map node, handle, allocation.
const PIECE_OVERHEAD: u64 = 128;

/// Pieces below this size share memory while they wait to be read.
const SMALL: usize = 1024;

/// Bytes that arrived above a hole.
#[derive(Clone, Debug)]
struct Piece {
    bytes: Bytes,
    arrived: Instant,
}

/// What an insertion changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// Bytes that were not there before.
    pub new: u64,
    /// Bytes that were received before (F13).
    pub duplicate: u64,
    /// Whether bytes became deliverable.
    pub delivered: bool,
}

/// Holds what arrived above a hole and gives out the prefix at once (F13).
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// Everything below this was received.
    pub cumulative: u64,
    /// Ranges received above that.
    pub received: RangeSet,
    pieces: BTreeMap<u64, Piece>,
    /// Bytes held out of order, and the most that ever were.
    pub held: u64,
    pub held_peak: u64,
    ready: VecDeque<Bytes>,
    /// Small pieces behind `ready`.
    tail: Vec<u8>,
    /// In-order bytes that the application has not read.
    pub ready_bytes: u64,
    /// Time from arrival to delivery, weighted by bytes.
    pub in_order_delay: DelayHistogram,
    last_delivery: Option<Instant>,
    /// Longest time between two deliveries.
    pub longest_stall: core::time::Duration,
}

impl Assembler {
    /// Separate pieces out of order: held, or known to have arrived and thrown away.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len().max(self.received.count())
    }

    /// What the holes cost beside the bytes that are held: pieces, and the ranges that say where
    /// they lie. The ranges stay where the bytes are thrown away.
    pub(crate) fn overhead(&self) -> u64 {
        PIECE_OVERHEAD * self.pieces.len() as u64 + self.range_overhead()
    }

    /// What the ranges alone cost.
    pub(crate) fn range_overhead(&self) -> u64 {
        RANGE_OVERHEAD * self.received.count() as u64
    }

    /// Memory held: out of order and unread, in bytes, with the cost of each
    /// piece.
    pub(crate) fn memory(&self) -> u64 {
        self.held
            + self.ready_bytes
            + PIECE_OVERHEAD * (self.pieces.len() + self.ready.len()) as u64
    }

    /// Takes `payload`, which starts at `offset`.
    pub(crate) fn insert(&mut self, now: Instant, offset: u64, payload: &Bytes) -> Inserted {
        let end = offset + payload.len() as u64;
        let mut result = Inserted::default();
        let mut at = offset.max(self.cumulative);
        while let Some(gap) = self.received.first_gap(at..end) {
            let from = usize::try_from(gap.start - offset).unwrap_or(usize::MAX);
            let to = usize::try_from(gap.end - offset).unwrap_or(usize::MAX);
            let mut bytes = payload.slice(from..to);
            // A small part must not keep a large frame's memory.
            if bytes.len() < payload.len() / 2 {
                bytes = Bytes::copy_from_slice(&bytes);
            }
            let piece = Piece { bytes, arrived: now };
            result.new += gap.end - gap.start;
            at = gap.end;
            self.pieces.insert(gap.start, piece);
        }
        result.duplicate = payload.len() as u64 - result.new;
        if result.new == 0 {
            return result;
        }
        self.held += result.new;
        self.received.insert(offset.max(self.cumulative)..end);
        result.delivered = self.deliver(now);
        self.held_peak = self.held_peak.max(self.held);
        result
    }

    /// Moves the complete prefix to the application's queue.
    fn deliver(&mut self, now: Instant) -> bool {
        let Some(prefix) = self.received.first().filter(|r| r.start <= self.cumulative) else {
            return false;
        };
        while let Some(entry) = self.pieces.first_entry() {
            if *entry.key() >= prefix.end {
                break;
            }
            let piece = entry.remove();
            let size = piece.bytes.len() as u64;
            self.in_order_delay.record(now.saturating_since(piece.arrived), size);
            self.held -= size;
            self.ready_bytes += size;
            self.queue(piece.bytes);
        }
        self.received.remove_below(prefix.end);
        self.cumulative = prefix.end;
        if let Some(last) = self.last_delivery {
            self.longest_stall = self.longest_stall.max(now.saturating_since(last));
        }
        self.last_delivery = Some(now);
        true
    }

    /// Puts bytes on the application's queue; small ones share memory, so that
    /// a peer's tiny frames cost no more than their bytes.
    fn queue(&mut self, bytes: Bytes) {
        if bytes.len() >= SMALL {
            self.close_tail();
            self.ready.push_back(bytes);
            return;
        }
        self.tail.extend_from_slice(&bytes);
        if self.tail.len() >= 4 * SMALL {
            self.close_tail();
        }
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            self.ready.push_back(Bytes::from(core::mem::take(&mut self.tail)));
        }
    }

    /// Up to `max` in-order bytes; `None` if there are none.
    pub(crate) fn read(&mut self, max: usize) -> Option<Bytes> {
        if self.ready.is_empty() {
            self.close_tail();
        }
        let front = self.ready.front_mut()?;
        let bytes = if front.len() > max { front.split_to(max) } else { self.ready.pop_front()? };
        self.ready_bytes -= bytes.len() as u64;
        Some(bytes)
    }

    /// Forgets all that is held; what arrives later is not kept either.
    pub(crate) fn discard(&mut self) {
        self.pieces.clear();
        self.ready.clear();
        self.tail = Vec::new();
        self.held = 0;
        self.ready_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn f13_the_prefix_is_delivered_at_once_and_duplicates_are_counted() {
        let mut assembler = Assembler::default();
        let data = Bytes::from_static(b"0123456789");
        let first = assembler.insert(at(0), 4, &data.slice(4..10));
        assert_eq!(first, Inserted { new: 6, duplicate: 0, delivered: false });
        assert_eq!(assembler.read(99), None);
        let second = assembler.insert(at(7), 0, &data.slice(0..6));
        assert_eq!(second, Inserted { new: 4, duplicate: 2, delivered: true });
        assert_eq!(assembler.cumulative, 10);
        assert_eq!(assembler.read(3).unwrap(), "012");
        assert_eq!(assembler.read(99).unwrap(), "3456789", "small pieces share memory");
        assert_eq!(assembler.in_order_delay.max().as_millis(), 7);
        assert_eq!(assembler.held_peak, 6);
        assert_eq!(assembler.memory(), 0);
    }

    proptest! {
        /// Pieces in any order, overlapping and repeated, give the stream.
        #[test]
        fn any_order_gives_the_stream(cuts in prop::collection::vec((0..200usize, 1..60usize), 1..60)) {
            let data: Vec<u8> = (0..=255).collect();
            let mut assembler = Assembler::default();
            let mut out = Vec::new();
            let mut have = [false; 256];
            let mut fresh = 0;
            for (from, len) in cuts {
                let to = (from + len).min(256);
                let before = have.iter().filter(|b| **b).count() as u64;
                have[from..to].fill(true);
                let after = have.iter().filter(|b| **b).count() as u64;
                let inserted = assembler.insert(at(1), from as u64, &Bytes::copy_from_slice(&data[from..to]));
                prop_assert_eq!(inserted.new, after - before);
                prop_assert_eq!(inserted.new + inserted.duplicate, (to - from) as u64);
                fresh += inserted.new;
                while let Some(bytes) = assembler.read(17) {
                    out.extend_from_slice(&bytes);
                }
                let prefix = have.iter().position(|b| !b).unwrap_or(256);
                prop_assert_eq!(assembler.cumulative, prefix as u64);
                prop_assert_eq!(&out[..], &data[..prefix]);
            }
            prop_assert_eq!(fresh, have.iter().filter(|b| **b).count() as u64);
        }
    }
}
