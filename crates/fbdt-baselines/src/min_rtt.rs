//! MPTCP's default scheduler as in the public kernel (0.9x): lowest RTT first,
//! opportunistic retransmission and penalisation.

use core::ops::Range;

use fbdt_proto::{
    Direction, Needs, PathId, PathView, PlacementRequest, Repeat, RepeatRequest, Scheduler,
};

use crate::blockers::{BLOCKERS, Blockers, answer};

/// Of the paths whose congestion window has room, the one with the lowest
/// smoothed RTT gets the lowest unsent bytes, then the next one. When a byte is missing that a
/// slower path holds and nothing new may be sent, the picked path sends it
/// too, and that path's window is halved, at most once per RTT.
#[derive(Debug, Default)]
pub(crate) struct MinRtt {
    blockers: Blockers,
}

impl Scheduler for MinRtt {
    fn name(&self) -> &'static str {
        "minrtt"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        request.beyond(room_before(request.paths, request.path))
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::InOrder
    }

    fn needs(&self) -> Needs {
        BLOCKERS
    }

    fn repeat(&mut self, request: &RepeatRequest<'_>) -> Repeat {
        answer(request, |blocked| self.blockers.handle(blocked))
    }
}

/// Whether bytes could go at once: its TCP would send them now.
fn has_room(path: &PathView) -> bool {
    path.usable && path.ready && path.room > 0
}

/// The path with the lowest RTT of all that are usable, with room or not.
#[must_use]
pub(super) fn fastest(paths: &[PathView]) -> Option<usize> {
    let usable = paths.iter().enumerate().filter(|(_, p)| p.usable);
    usable.min_by_key(|(_, p)| p.srtt).map(|(index, _)| index)
}

/// Whether `asking` is the pick: no other path with room has a lower RTT.
#[must_use]
pub(super) fn picked(paths: &[PathView], asking: usize) -> bool {
    let candidates = paths.iter().enumerate().filter(|(i, p)| *i == asking || has_room(p));
    candidates.min_by_key(|(_, p)| p.srtt).is_some_and(|(index, _)| index == asking)
}

/// What the paths that are picked before `asking` have room for. A kernel goes through its subflows
/// at one go, each until it is full; here a path that asks leaves that much to them.
#[must_use]
pub(super) fn room_before(paths: &[PathView], asking: usize) -> u64 {
    let Some(own) = paths.get(asking) else { return 0 };
    let before = |(index, path): &(usize, &PathView)| {
        has_room(path) && (path.srtt, *index) < (own.srtt, asking)
    };
    paths.iter().enumerate().filter(before).map(|(_, path)| path.room).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, path};
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn the_lowest_rtt_with_window_room_is_filled_first() {
        let paths = vec![path(0, 40, 20_000), path(1, 10, 20_000), path(2, 20, 10_000)];
        let mut f = Fixture::new(MinRtt::default(), paths, 30_000);
        assert_eq!(f.send(0), None, "the others have room for all of it");
        assert_eq!(f.send(2), Some(20_000..30_000), "beyond what path 1 has room for");
        assert_eq!(f.send(1), Some(0..10_000));
        assert_eq!(f.send(1), Some(10_000..20_000));
        f.unsent.insert(30_000..100_000);
        assert_eq!(f.send(0), Some(30_000..40_000), "they are full");
        f.paths[1].held = 0;
        f.paths[1].room = 20_000;
        assert_eq!(f.send(0), Some(60_000..70_000), "the fastest has room for 20 kB again");
        f.paths[1].usable = false;
        assert_eq!(f.send(0), Some(40_000..50_000), "a suspect path has none");
    }

    #[test]
    fn who_asks_first_gets_the_same_bytes_as_in_a_kernels_round() {
        for order in [[1, 1, 2, 0, 0], [0, 2, 1, 0, 1], [2, 0, 0, 1, 1]] {
            let paths = vec![path(0, 40, 20_000), path(1, 10, 20_000), path(2, 20, 10_000)];
            let mut f = Fixture::new(MinRtt::default(), paths, 100_000);
            let mut got = vec![Vec::new(); 3];
            for path in order {
                got[path].extend(f.send(path).map(|range| range.start));
            }
            let expected = [vec![30_000, 40_000], vec![0, 10_000], vec![20_000]];
            assert_eq!(got, expected, "{order:?}");
        }
    }
}
