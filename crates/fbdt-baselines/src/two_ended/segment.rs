//! The parts of a window (F4).
//!
//! See also F3.

use alloc::vec::Vec;
use core::ops::Range;

use fbdt_proto::{PathId, RangeSet};

/// One path's part of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The path.
    pub(super) path: PathId,
    /// Its part. The forward path sends it upward, the others downward.
    pub(super) range: Range<u64>,
}

/// Divides the unsent bytes of `within` among `order` (path and rate, the
/// forward path first): sizes proportional to rate (eq. 4.4), offsets as
/// running sums (eq. 4.5, forward at 0). Bytes that are already on their way
/// count for nobody.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn align(
    unsent: &RangeSet,
    within: Range<u64>,
    order: &[(PathId, f64)],
) -> Vec<Segment> {
    let total = unsent.total_within(within.clone());
    let rates: f64 = order.iter().map(|(_, rate)| rate.max(1.0)).sum();
    let mut segments = Vec::with_capacity(order.len());
    let mut start = within.start;
    let mut share = 0.0;
    for (index, (path, rate)) in order.iter().enumerate() {
        share += rate.max(1.0);
        let end = if index + 1 == order.len() {
            within.end
        } else {
            let bytes = (total as f64 * share / rates) as u64;
            unsent.skip(within.start, bytes).unwrap_or(within.end).clamp(start, within.end)
        };
        segments.push(Segment { path: *path, range: start..end });
        start = end;
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn f3_sizes_follow_rates_and_offsets_are_running_sums() {
        let mut unsent = RangeSet::new();
        unsent.insert(0..1000);
        let order = [(PathId(2), 1.0), (PathId(0), 3.0), (PathId(1), 6.0)];
        let segments = align(&unsent, 0..1000, &order);
        let ranges: Vec<_> = segments.iter().map(|s| (s.path.0, s.range.clone())).collect();
        assert_eq!(ranges, [(2, 0..100), (0, 100..400), (1, 400..1000)]);
    }

    #[test]
    fn f4_realignment_divides_only_what_is_unsent() {
        let mut unsent = RangeSet::new();
        unsent.insert(100..200);
        unsent.insert(800..900);
        let segments = align(&unsent, 0..1000, &[(PathId(0), 1.0), (PathId(1), 1.0)]);
        assert_eq!(unsent.total_within(segments[0].range.clone()), 100);
        assert_eq!(unsent.total_within(segments[1].range.clone()), 100);
    }

    proptest! {
        /// Segments tile the window, whatever is unsent in it.
        #[test]
        fn segments_tile(holes in prop::collection::vec((0..999u64, 1..200u64), 0..9),
                         rates in prop::collection::vec(0.0..100.0f64, 1..8)) {
            let mut unsent = RangeSet::new();
            unsent.insert(0..1000);
            for (at, len) in holes { unsent.remove(at..at + len); }
            let order: Vec<_> = rates.iter().enumerate().map(|(i, r)| (PathId(i as u8), *r)).collect();
            let segments = align(&unsent, 0..1000, &order);
            let mut at = 0;
            for segment in &segments {
                prop_assert_eq!(segment.range.start, at);
                prop_assert!(segment.range.end >= at);
                at = segment.range.end;
            }
            prop_assert_eq!(at, 1000);
        }
    }
}
