//! How many ranges are kept account of.

/// Separate ranges of a stream's bytes that a receiver may hold out of order.
pub(crate) const MAX_BYTE_RANGES: usize = 16 << 10;

/// Separate ranges of a stream's message space that a receiver may have. What is read above a hole moves
/// the limit on, so holes alone may fill the largest window, and a hole is as long as a message at least.
pub(crate) const MAX_MESSAGE_RANGES: usize = 512 << 10;

/// Memory that a separate range costs: its share of a map node.
pub(crate) const RANGE_OVERHEAD: u64 = 32;
