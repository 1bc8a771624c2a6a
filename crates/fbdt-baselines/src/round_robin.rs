//! Round robin over the paths whose windows have room.

use core::ops::Range;

use fbdt_proto::{Direction, Needs, PathId, PathView, PlacementRequest, Scheduler};

/// Every path with room gets the lowest unsent bytes in turn, pieces of one
/// size.
#[derive(Debug, Default)]
pub(crate) struct RoundRobin {
    last: Option<PathId>,
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        let own = request.own()?.id;
        let ready = |p: &&PathView| p.id == own || (p.usable && p.ready && p.room > 0);
        // The first behind the last one served, in a circle.
        let next = request.paths.iter().filter(ready).min_by_key(|p| {
            let behind = self.last.is_none_or(|last| p.id > last);
            (!behind, p.id)
        })?;
        if next.id != own {
            return None;
        }
        let piece = request.paths.iter().filter(|p| p.usable).map(|p| p.frame).min()?;
        let front = request.front()?;
        self.last = Some(own);
        Some(front.start..front.end.min(front.start + piece.max(1)))
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
    fn paths_with_room_take_turns() {
        let mut paths = vec![path(0, 40, 50_000), path(1, 10, 20_000), path(2, 20, 50_000)];
        paths[0].frame = 5000;
        let mut f = Fixture::new(RoundRobin::default(), paths, 100_000);
        assert_eq!(f.send(1), None, "the first one begins");
        assert_eq!(f.send(0), Some(0..5000), "pieces of one size");
        assert_eq!(f.send(0), None);
        assert_eq!(f.send(2), None);
        assert_eq!(f.send(1), Some(5000..10_000));
        assert_eq!(f.send(2), Some(10_000..15_000));
        f.paths[0].room = 0;
        assert_eq!(f.send(1), Some(15_000..20_000), "who has no room is left out");
        f.paths[2].usable = false;
        assert_eq!(f.send(1), Some(20_000..25_000));
    }
}
