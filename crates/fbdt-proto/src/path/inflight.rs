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

/// Drops what `done` says is acknowledged, from the oldest on: a subflow delivers in order, so chunks
/// are acknowledged in about that order.
pub(crate) fn settle(chunks: &mut VecDeque<Chunk>, mut done: impl FnMut(&Chunk) -> bool) {
    while chunks.front().is_some_and(&mut done) {
        chunks.pop_front();
    }
    // A peer may leave the first one unacknowledged for ever: others go before memory grows.
    if chunks.len() == chunks.capacity() {
        chunks.retain(|chunk| !done(chunk));
    }
}
