//! Bytes that were assigned to a path ahead.

use alloc::collections::VecDeque;
use core::ops::Range;

use fbdt_proto::RangeSet;

/// The first of the ranges assigned to a path that is still unsent, a frame
/// of it; ranges that are not are dropped.
pub(crate) fn take_assigned(
    queue: &mut VecDeque<Range<u64>>,
    unsent: &RangeSet,
    frame: u64,
) -> Option<Range<u64>> {
    while let Some(range) = queue.pop_front() {
        let Some(piece) = unsent.first_within(range.clone()) else {
            continue;
        };
        let end = piece.end.min(piece.start + frame);
        if end < range.end {
            queue.push_front(end..range.end);
        }
        return Some(piece.start..end);
    }
    None
}
