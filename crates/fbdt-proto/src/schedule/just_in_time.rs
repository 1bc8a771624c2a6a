//! Bytes where delivery will be when they arrive (F3b).

use core::ops::Range;

use fbdt_units::{Direction, PathId};

use super::{PlacementRequest, Scheduler};
use crate::path::lead;
use crate::scale::LEAST_FRAME;

/// Path k's new bytes lie so far above the front that the other paths will
/// have sent what is below them by the time they arrive. A path whose lead
/// exceeds what may be sent gets nothing new.
#[derive(Debug)]
pub struct JustInTime;

impl Scheduler for JustInTime {
    fn name(&self) -> &'static str {
        "just-in-time"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        let unsent = request.unsent;
        let front = unsent.first()?.start;
        // The front of a stream that takes turns with others moves slower.
        let lead = lead(request.paths, request.path) / request.sharing.max(1);
        if lead == 0 || (request.sharing > 1 && lead < request.frame) {
            let piece = unsent.first_within(front..request.bound)?;
            return Some(piece.start..piece.end.min(piece.start + request.frame));
        }
        let wanted = unsent.skip(front, lead)?;
        // Close to what was placed before, it continues that: chunks must not
        // crumble. Of the last bytes it takes only those that others would bring later.
        let slack = if wanted + request.frame > request.bound { 0 } else { request.frame };
        let near = wanted.saturating_sub(slack).max(front)..wanted + 1;
        let wanted = unsent.last_within(near).map_or(wanted, |piece| piece.start.min(wanted));
        let piece = unsent.first_within(wanted..request.bound)?;
        // Too little room at the bound is left to a path that is early.
        if piece.end == request.bound && piece.end - piece.start < LEAST_FRAME {
            return None;
        }
        Some(piece.start..piece.end.min(piece.start + request.frame))
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::JustInTime
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathView;
    use crate::path::testing::view;
    use crate::schedule::testing::request;
    use core::time::Duration;
    use fbdt_units::RangeSet;

    fn ask(
        unsent: &mut RangeSet,
        paths: &[PathView],
        path: usize,
        bound: u64,
    ) -> Option<Range<u64>> {
        let asked = request(paths, path, unsent);
        let range = JustInTime.place(PlacementRequest { bound, limit: bound, ..asked })?;
        unsent.remove(range.clone());
        Some(range)
    }

    #[test]
    fn f3b_a_late_path_starts_where_the_others_will_be() {
        let mut late = view(1, 1e6, 0.0);
        // A frame of either takes a millisecond.
        late.frame = 1000;
        late.arrival = Duration::from_millis(52);
        let paths = [view(0, 1e7, 0.0), late];
        let mut unsent = RangeSet::new();
        unsent.insert(0..2_000_000);
        // 10 MB/s x 50 ms = 500 kB ahead, to the frame.
        assert_eq!(ask(&mut unsent, &paths, 1, 2_000_000), Some(490_000..500_000));
        // What it has sent already does not count as the others' work.
        assert_eq!(ask(&mut unsent, &paths, 1, 2_000_000), Some(500_000..510_000));
        assert_eq!(ask(&mut unsent, &paths, 0, 2_000_000), Some(0..10_000));
    }

    #[test]
    fn f3b_a_slow_path_is_later_by_what_its_frame_takes() {
        let mut slow = view(1, 1e6, 0.0);
        slow.frame = 4000;
        let mut paths = [view(0, 1e7, 0.0), slow];
        assert_eq!(lead(&paths, 1), 30_000, "3 ms longer than a frame of the fast one");
        assert_eq!(lead(&paths, 0), 0);
        paths[1].ramping = true;
        assert_eq!(lead(&paths, 1), 0, "that may be far too long");
        assert_eq!(lead(&paths, 0), 1000, "while a frame of the fast one takes its millisecond");
    }

    #[test]
    fn f3b_of_the_last_bytes_a_later_path_leaves_what_others_bring_first() {
        let (mut busy, free) = (view(0, 1e7, 0.0), view(1, 1e7, 0.0));
        busy.arrival = free.arrival + Duration::from_micros(800);
        let paths = [busy, free];
        // 8000 bytes ahead: to the frame that is nothing, while there is more to send.
        let mut unsent = RangeSet::new();
        unsent.insert(0..2_000_000);
        assert_eq!(ask(&mut unsent, &paths, 0, 2_000_000), Some(0..10_000));
        let mut unsent = RangeSet::new();
        unsent.insert(0..13_000);
        assert_eq!(ask(&mut unsent, &paths, 0, 13_000), Some(8000..13_000));
        assert_eq!(ask(&mut unsent, &paths, 1, 13_000), Some(0..8000));
    }

    #[test]
    fn f3b_a_path_whose_lead_exceeds_the_buffer_gets_nothing_new() {
        let mut late = view(1, 1e6, 0.0);
        late.arrival = Duration::from_millis(502);
        let paths = [view(0, 1e7, 0.0), late];
        let mut unsent = RangeSet::new();
        unsent.insert(0..2_000_000);
        assert_eq!(ask(&mut unsent, &paths, 1, 2_000_000), None);
        assert_eq!(ask(&mut unsent, &paths, 0, 2_000_000), Some(0..10_000));
    }

    #[test]
    fn f3b_a_stream_that_takes_turns_with_others_is_delivered_slower() {
        let mut late = view(1, 1e7, 0.0);
        late.arrival = Duration::from_millis(100);
        let paths = [view(0, 1e7, 0.0), late];
        let place = |sharing| {
            let mut unsent = RangeSet::new();
            unsent.insert(0..10_000_000);
            let (bound, asked) = (10_000_000, request(&paths, 1, &unsent));
            let asked = PlacementRequest { bound, limit: bound, sharing, ..asked };
            JustInTime.place(asked).map(|range| range.start)
        };
        let alone = place(1).unwrap();
        assert!(alone > 100_000, "{alone}");
        // Up to a frame lower, so that chunks do not crumble.
        let shared = place(2).unwrap();
        assert!((alone / 2 - 10_000..=alone / 2).contains(&shared), "{alone} {shared}");
        assert_eq!(place(1000), Some(0));
    }
}
