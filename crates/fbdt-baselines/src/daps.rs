//! DAPS: bytes are assigned ahead so that they arrive in order (Kuhn et al.,
//! ICC 2014; Sarwar et al., AINA 2013).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use fbdt_proto::{
    Direction, Needs, PathId, PathView, PlacementRequest, RangeSet, Scheduler, StreamId,
};

use crate::assigned::take_assigned;

/// Most windows of one path in a schedule.
const ROUNDS: u32 = 512;

/// A schedule spans the largest RTT: path i is expected to send one window
/// every RTT, which arrives half an RTT later. In the order of these arrivals
/// the windows get the unsent bytes. Paths follow the schedule; when one has
/// done its part, the next schedule is made.
#[derive(Debug, Default)]
pub(crate) struct Daps {
    stream: Option<StreamId>,
    schedule: BTreeMap<PathId, VecDeque<Range<u64>>>,
}

impl Scheduler for Daps {
    fn name(&self) -> &'static str {
        "daps"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        let unsent = request.unsent;
        let own = request.own()?.id;
        // One schedule at a time: another stream's turn begins a new one.
        if self.stream == Some(request.stream)
            && let Some(queue) = self.schedule.get_mut(&own)
            && let Some(range) = take_assigned(queue, unsent, request.frame)
            && range.end <= request.bound
        {
            return Some(range);
        }
        self.stream = Some(request.stream);
        self.schedule = schedule(request.paths, unsent, request.bound);
        take_assigned(self.schedule.get_mut(&own)?, unsent, request.frame)
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::Assigned
    }

    fn needs(&self) -> Needs {
        Needs { defers: true, looks_ahead: true, repeats: None }
    }

    fn path_failed(&mut self, _path: PathId) {
        self.schedule.clear();
    }
}

/// Who sends which of the unsent bytes below `bound` within the largest RTT.
fn schedule(
    paths: &[PathView],
    unsent: &RangeSet,
    bound: u64,
) -> BTreeMap<PathId, VecDeque<Range<u64>>> {
    let usable = || paths.iter().filter(|p| p.usable && p.window > 0);
    let horizon = usable().map(|p| p.srtt).max().unwrap_or(Duration::ZERO);
    let mut windows: Vec<(Duration, &PathView)> = Vec::new();
    for path in usable() {
        let rtt = path.srtt.max(Duration::from_micros(50));
        for round in 0..ROUNDS {
            let sent = rtt * round;
            if round > 0 && sent >= horizon {
                break;
            }
            windows.push((sent + rtt / 2, path));
        }
    }
    windows.sort_by_key(|(arrival, path)| (*arrival, path.srtt, path.id));
    let mut schedule: BTreeMap<PathId, VecDeque<Range<u64>>> = BTreeMap::new();
    let mut at = 0;
    for (_, path) in windows {
        let mut left = path.window;
        while left > 0 {
            let Some(piece) = unsent.first_within(at..bound) else {
                return schedule;
            };
            let range = piece.start..piece.end.min(piece.start + left);
            at = range.end;
            left -= range.end - range.start;
            schedule.entry(path.id).or_default().push_back(range);
        }
    }
    schedule
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, path};
    use alloc::vec;

    #[test]
    fn the_slow_path_gets_what_comes_due_when_its_bytes_arrive() {
        // Arrivals: fast at 5, 15, 25 ms, slow at 15 ms (later of two).
        let paths = vec![path(0, 10, 20_000), path(1, 30, 30_000)];
        let mut f = Fixture::new(Daps::default(), paths, 1_000_000);
        assert_eq!(f.send(1), Some(40_000..50_000));
        assert_eq!(f.send(0), Some(0..10_000));
        assert_eq!(f.send(1), Some(50_000..60_000));
        assert_eq!(f.ask(0), Some(10_000..20_000));
        assert_eq!(f.ask(0), Some(20_000..30_000));
        assert_eq!(f.ask(0), Some(30_000..40_000));
        assert_eq!(f.ask(0), Some(70_000..80_000), "above the slow path's part");
    }

    #[test]
    fn a_path_that_has_done_its_part_makes_the_next_schedule() {
        let paths = vec![path(0, 10, 10_000), path(1, 20, 10_000)];
        let mut f = Fixture::new(Daps::default(), paths, 1_000_000);
        // Fast at 5 and 15 ms, slow at 10 ms.
        assert_eq!(f.ask(0), Some(0..10_000));
        assert_eq!(f.ask(0), Some(20_000..30_000));
        // The slow path's part of the first schedule is left: the fast one
        // begins with it in the next.
        assert_eq!(f.ask(0), Some(10_000..20_000));
        assert_eq!(f.ask(1), Some(30_000..40_000));
    }

    #[test]
    fn a_short_rest_is_the_fast_paths_alone() {
        let paths = vec![path(0, 10, 20_000), path(1, 200, 50_000)];
        let mut f = Fixture::new(Daps::default(), paths, 60_000);
        assert_eq!(f.ask(1), None, "ten windows of the fast path arrive before");
        assert_eq!(f.ask(0), Some(0..10_000));
        f.paths[0].usable = false;
        f.scheduler.path_failed(PathId(0));
        assert_eq!(f.ask(1), Some(10_000..20_000));
    }
}
