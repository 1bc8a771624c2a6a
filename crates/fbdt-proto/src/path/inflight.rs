//! What a path owes: stream bytes given to its subflow and not acknowledged.

use alloc::collections::VecDeque;
use core::ops::Range;

use fbdt_units::{Instant, StreamId};

/// One data frame's worth of stream bytes. The end of a stream counts as one
/// more byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The stream.
    pub stream: StreamId,
    /// Its bytes.
    pub range: Range<u64>,
    /// When it was handed over.
    pub sent: Instant,
    /// When it was expected to arrive.
    pub expected: Instant,
    /// Up to here another path carries the bytes too.
    pub copied: u64,
    /// Nothing had come on its path for a while: the radio may have been asleep (F10).
    pub cold: bool,
}

/// A path's chunks in the order in which it sends them; a subflow delivers in
/// order, so they are acknowledged in about that order too.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    chunks: VecDeque<Chunk>,
}

impl InFlight {
    /// One more chunk leaves.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.chunks.push_back(chunk);
    }

    /// Drops what `done` says is acknowledged, from the oldest on; says how
    /// many chunks went.
    pub(crate) fn settle(&mut self, mut done: impl FnMut(&Chunk) -> bool) -> usize {
        let before = self.chunks.len();
        while self.chunks.front().is_some_and(&mut done) {
            self.chunks.pop_front();
        }
        // A peer may leave the first one unacknowledged for ever: others go before memory grows.
        if self.chunks.len() == self.chunks.capacity() {
            self.chunks.retain(|chunk| !done(chunk));
        }
        before - self.chunks.len()
    }

    /// All chunks, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter()
    }

    /// All chunks, oldest first.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Chunk> {
        self.chunks.iter_mut()
    }

    /// Takes every chunk out: the subflow is gone.
    pub(crate) fn take(&mut self) -> VecDeque<Chunk> {
        core::mem::take(&mut self.chunks)
    }

    /// Whether the path owes nothing.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}
