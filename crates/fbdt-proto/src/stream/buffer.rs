//! The bytes of a stream between the application and their acknowledgement.

use alloc::collections::VecDeque;
use core::ops::Range;

use bytes::{Bytes, BytesMut};

/// Memory that small writes share: at first, and after doubling.
const BLOCK: (usize, usize) = (512, 64 << 10);
/// Writes from this size on are not copied when the application gives their
/// memory away.
const LARGE: usize = 4 << 10;

/// A contiguous range of a stream's bytes in pieces, addressed by offset.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    /// Offset and bytes, lowest first, without gaps.
    pieces: VecDeque<(u64, Bytes)>,
    /// What was written last, behind the pieces, with room for more.
    tail: BytesMut,
    /// Size of the memory that was allocated last.
    block: usize,
    /// Offset behind the last byte written.
    pub end: u64,
}

impl SendBuffer {
    /// Appends a copy of `data`.
    pub(crate) fn push(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.tail.len() == self.tail.capacity() {
                self.close_tail();
                self.block = (2 * self.block).max(data.len()).clamp(BLOCK.0, BLOCK.1);
                self.tail = BytesMut::with_capacity(self.block);
            }
            let room = self.tail.capacity() - self.tail.len();
            let (now, rest) = data.split_at(data.len().min(room));
            self.tail.extend_from_slice(now);
            self.end += now.len() as u64;
            data = rest;
        }
    }

    /// Appends `bytes` without copying them, unless they are few.
    pub(crate) fn push_shared(&mut self, bytes: Bytes) {
        if bytes.len() < LARGE {
            return self.push(&bytes);
        }
        self.close_tail();
        let start = self.end;
        self.end += bytes.len() as u64;
        self.pieces.push_back((start, bytes));
    }

    /// What was written last becomes a piece; its memory's rest goes on as
    /// the tail.
    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let start = self.end - self.tail.len() as u64;
            self.pieces.push_back((start, self.tail.split().freeze()));
        }
    }

    /// Hands the bytes of `range` to `take` in order, in as many pieces as
    /// they lie in; what is not held is left out.
    pub(crate) fn share(&mut self, range: Range<u64>, mut take: impl FnMut(Bytes)) {
        if range.end > self.end - self.tail.len() as u64 {
            self.close_tail();
        }
        let first =
            self.pieces.partition_point(|(start, bytes)| start + bytes.len() as u64 <= range.start);
        for (start, bytes) in self.pieces.range(first..) {
            if *start >= range.end {
                return;
            }
            let from = range.start.saturating_sub(*start) as usize;
            let to = ((range.end - start) as usize).min(bytes.len());
            take(bytes.slice(from..to));
        }
    }

    /// Gives up pieces that lie below `bound` as a whole.
    pub(crate) fn release_below(&mut self, bound: u64) {
        while self.pieces.front().is_some_and(|(start, b)| start + b.len() as u64 <= bound) {
            self.pieces.pop_front();
        }
        if bound >= self.end {
            self.tail = BytesMut::new();
        }
    }

    /// Gives up everything.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.tail = BytesMut::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn take(buffer: &mut SendBuffer, range: Range<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        buffer.share(range, |bytes| out.extend_from_slice(&bytes));
        out
    }

    proptest! {
        /// Any pieces written come out at their offsets, also after release.
        #[test]
        fn addresses_by_offset(
            writes in prop::collection::vec((1..90_000usize, any::<bool>(), any::<bool>()), 1..12),
            cut in 0.0..1.0f64,
        ) {
            let mut buffer = SendBuffer::default();
            let mut all = Vec::new();
            for (i, (size, shared, read)) in writes.iter().enumerate() {
                let piece: Vec<u8> = (0..*size).map(|j| (i * 31 + j * 7) as u8).collect();
                all.extend_from_slice(&piece);
                if *shared {
                    buffer.push_shared(piece.into());
                } else {
                    buffer.push(&piece);
                }
                prop_assert_eq!(buffer.end, all.len() as u64);
                if *read {
                    let low = all.len() / 2;
                    prop_assert!(take(&mut buffer, low as u64..all.len() as u64) == all[low..]);
                }
            }
            let low = (cut * all.len() as f64) as usize;
            buffer.release_below(low as u64);
            buffer.push(&[9; 5]);
            all.extend_from_slice(&[9; 5]);
            prop_assert!(take(&mut buffer, low as u64..all.len() as u64) == all[low..]);
            buffer.release_below(all.len() as u64);
            prop_assert!(take(&mut buffer, 0..all.len() as u64).is_empty());
            buffer.push(&[1, 2]);
            let end = all.len() as u64;
            prop_assert_eq!(take(&mut buffer, end..end + 2), [1, 2]);
        }
    }
}
