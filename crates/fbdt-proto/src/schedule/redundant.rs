//! All bytes on all paths.

use core::ops::Range;

use super::{PlacementRequest, Scheduler};
use crate::units::{Direction, PathId};

/// Every path sends the stream from its first unacknowledged byte on, as
/// fast as it can; what was acknowledged meanwhile it skips.
#[derive(Debug)]
pub struct Redundant;

impl Scheduler for Redundant {
    fn name(&self) -> &'static str {
        "redundant"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        request.front()
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::InOrder
    }

    fn is_redundant(&self) -> bool {
        true
    }

    fn defers(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::tests::{Fixture, path};
    use alloc::vec;

    // What a path sends again is `tests/redundant.rs`'s.
    #[test]
    fn whoever_comes_first_sends_it_first() {
        let paths = vec![path(0, 40, 50_000), path(1, 10, 20_000)];
        let mut f = Fixture::new(Redundant, paths, 100_000);
        assert!(f.scheduler.is_redundant());
        assert_eq!(f.send(0), Some(0..10_000));
        assert_eq!(f.send(1), Some(10_000..20_000));
    }
}
