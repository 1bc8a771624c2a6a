//! Lowest RTT first: minRTT without its handling of blocked buffers.

use core::ops::Range;

use fbdt_proto::{Direction, Needs, PathId, PlacementRequest, Scheduler};

use crate::min_rtt::room_before;

/// Of the paths whose congestion window has room, the one with the lowest
/// smoothed RTT gets the lowest unsent bytes, then the next one.
#[derive(Debug)]
pub(crate) struct LowestRttFirst;

impl Scheduler for LowestRttFirst {
    fn name(&self) -> &'static str {
        "lrf"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        request.beyond(room_before(request.paths, request.path))
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::InOrder
    }

    fn needs(&self) -> Needs {
        Needs { defers: true, looks_ahead: true, repeats: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, path};
    use alloc::vec;

    #[test]
    fn the_lowest_rtt_with_room_takes_the_front_and_blockers_are_left_alone() {
        let paths = vec![path(0, 40, 50_000), path(1, 10, 20_000)];
        let mut f = Fixture::new(LowestRttFirst, paths, 20_000);
        assert_eq!(f.send(0), None, "the fast path has room for all of it");
        f.unsent.insert(20_000..100_000);
        assert_eq!(f.send(1), Some(0..10_000));
        assert_eq!(f.send(1), Some(10_000..20_000));
        assert_eq!(f.send(0), Some(20_000..30_000), "its window is full");
        assert_eq!(LowestRttFirst.needs().repeats, None);
    }
}
