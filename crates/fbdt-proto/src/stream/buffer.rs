//! The bytes of a stream between the application and their acknowledgement.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// Size of every block but the last.
const BLOCK: usize = 64 << 10;
/// Empty blocks kept for reuse.
const SPARE: usize = 16;

/// A contiguous range of a stream's bytes in blocks, addressed by offset.
#[derive(Debug, Default)]
pub struct SendBuffer {
    blocks: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    /// Offset of the first block's first byte; a multiple of the block size.
    base: u64,
    end: u64,
}

impl SendBuffer {
    /// Offset behind the last byte written.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Appends `data`.
    pub fn push(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.blocks.back().is_none_or(|block| block.len() == BLOCK) {
                self.blocks.push_back(self.spare.pop().unwrap_or_default());
            }
            let Some(block) = self.blocks.back_mut() else {
                return;
            };
            let (now, rest) = data.split_at(data.len().min(BLOCK - block.len()));
            if block.capacity() < BLOCK && block.len() + now.len() > BLOCK / 4 {
                block.reserve_exact(BLOCK - block.len());
            }
            block.extend_from_slice(now);
            self.end += now.len() as u64;
            data = rest;
        }
    }

    /// Appends the bytes of `range` to `out`; what is not held is left out.
    #[allow(clippy::cast_possible_truncation)]
    pub fn copy_to(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let mut at = range.start.max(self.base);
        let end = range.end.min(self.end);
        while at < end {
            let skip = at - self.base;
            let Some(block) = self.blocks.get((skip / BLOCK as u64) as usize) else {
                return;
            };
            let from = (skip % BLOCK as u64) as usize;
            let to = block.len().min(from + (end - at) as usize);
            out.extend_from_slice(&block[from..to]);
            at += (to - from) as u64;
        }
    }

    /// Gives up what lies below `bound`.
    pub fn release_below(&mut self, bound: u64) {
        while self.base + BLOCK as u64 <= bound
            && let Some(mut block) = self.blocks.pop_front()
        {
            self.base += BLOCK as u64;
            if self.spare.len() < SPARE {
                block.clear();
                self.spare.push(block);
            }
        }
        if bound >= self.end {
            self.spare.clear();
        }
    }

    /// Gives up everything.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.spare.clear();
        self.base = self.end / BLOCK as u64 * BLOCK as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any pieces written come out at their offsets, also after release.
        #[test]
        fn addresses_by_offset(sizes in prop::collection::vec(1..90_000usize, 1..12), cut in 0.0..1.0f64) {
            let mut buffer = SendBuffer::default();
            let mut all = Vec::new();
            for (i, size) in sizes.iter().enumerate() {
                let piece: Vec<u8> = (0..*size).map(|j| (i * 31 + j * 7) as u8).collect();
                buffer.push(&piece);
                all.extend_from_slice(&piece);
            }
            prop_assert_eq!(buffer.end(), all.len() as u64);
            let low = (cut * all.len() as f64) as usize;
            buffer.release_below(low as u64);
            buffer.push(&[9; 5]);
            all.extend_from_slice(&[9; 5]);
            let mut out = Vec::new();
            buffer.copy_to(low as u64..all.len() as u64, &mut out);
            prop_assert!(out == all[low..], "the bytes differ");
        }
    }
}
