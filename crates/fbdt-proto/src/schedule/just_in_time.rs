//! Bytes where delivery will be when they arrive (F3b).

use core::ops::Range;

use super::share::share;
use super::{PlacementRequest, Scheduler};
use crate::path::{lead, lead_with_silent};
use crate::units::{Direction, PathId};

/// Least that a late path takes at the bound.
const CRUMB: u64 = 1024;

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
        // One stream whose window some paths could fill alone: a queue on one
        // of them would leave the others without bytes. What paths hold is
        // other streams' while this one has hardly begun.
        let window = request.limit.saturating_sub(request.acked);
        let own = request.paths.get(request.path)?;
        if request.sharing <= 1
            && front.saturating_sub(request.acked) >= window / 2
            && own.held >= share(request.paths, request.path, window, request.frame)
        {
            return None;
        }
        // The front of a stream that takes turns with others moves slower.
        let lead = lead(request.paths, request.path) / request.sharing.max(1);
        // Bytes that do not reach beyond what a silent path would bring wait for nobody.
        let silent = lead_with_silent(request.paths, request.path) / request.sharing.max(1);
        let beyond = |at: u64| at.saturating_add(request.frame) <= request.bound;
        let lead = unsent.skip(front, silent).filter(|at| beyond(*at)).map_or(lead, |_| silent);
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
        if piece.end == request.bound && piece.end - piece.start < CRUMB {
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
    use crate::ranges::RangeSet;
    use crate::schedule::testing::request;
    use core::time::Duration;

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
    fn f3b_a_path_that_has_just_fallen_silent_is_left_its_bytes() {
        let mut late = view(1, 1e7, 0.0);
        late.frame = 1000;
        late.arrival = Duration::from_millis(202);
        let silent = |ms: Option<u64>| {
            let suspect_for = ms.map(Duration::from_millis);
            [PathView { usable: false, suspect_for, ..view(0, 1e6, 0.0) }, late]
        };
        let ahead = |ms| lead_with_silent(&silent(ms), 1);
        // The silent path's frame takes 10 ms, that of the late one 0.1.
        assert_eq!(ahead(Some(50)), 190_100, "1 MB/s x 190.1 ms: it mostly repairs a loss");
        assert_eq!(ahead(Some(51)), 0, "a quarter of what a byte takes that stands in for it");
        assert_eq!(ahead(None), 0, "it is dead, or waits for a better one");
        let [mut fast, late] = silent(Some(1));
        fast.rate = late.rate;
        assert_eq!(lead_with_silent(&[fast, late], 1), 0, "not for so much");
        let mut unsent = RangeSet::new();
        unsent.insert(0..2_000_000);
        let beyond = ask(&mut unsent, &silent(Some(50)), 1, 2_000_000).unwrap();
        assert!((180_100..=190_100).contains(&beyond.start), "{beyond:?}");
        let mut unsent = RangeSet::new();
        unsent.insert(0..100_000);
        assert_eq!(ask(&mut unsent, &silent(Some(50)), 1, 100_000), Some(0..10_000), "its end");
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
        unsent.insert(0..12_000);
        assert_eq!(ask(&mut unsent, &paths, 0, 12_000), Some(8000..12_000));
        assert_eq!(ask(&mut unsent, &paths, 1, 12_000), Some(0..8000));
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
