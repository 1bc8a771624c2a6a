//! OTIAS: each segment is queued where it is expected to arrive first (Yang,
//! Wang, Amer, WAINA 2014).

use alloc::collections::{BTreeMap, VecDeque};
use core::ops::Range;

use fbdt_proto::{Direction, Needs, PathId, PathView, PlacementRequest, Scheduler, StreamId};

use crate::assigned::take_assigned;

/// Segments are assigned in order, each to the path with the smallest
/// T = (waits + 0.5) x srtt, where waits is the number of RTTs until the
/// path's queue has left: (queued - room) / window. Queues build at the paths.
#[derive(Debug, Default)]
pub(crate) struct Otias {
    stream: Option<StreamId>,
    queues: BTreeMap<PathId, VecDeque<Range<u64>>>,
    /// Everything unsent below this is in a queue.
    assigned: u64,
}

impl Scheduler for Otias {
    fn name(&self) -> &'static str {
        "otias"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        // Queues are kept for one stream: another one's turn drops them, and
        // it is assigned anew; as what waits for a path that it may not use any more.
        if self.stream != Some(request.stream) || self.is_stranded(request.paths) {
            *self = Self { stream: Some(request.stream), ..Self::default() };
        }
        let own = request.own()?.id;
        let unsent = request.unsent;
        loop {
            let queue = self.queues.entry(own).or_default();
            if let Some(range) = take_assigned(queue, unsent, request.frame) {
                return Some(range);
            }
            let next = unsent.first_within(self.assigned..request.bound)?;
            let best = self.earliest(request.paths)?;
            let segment = next.start..next.end.min(next.start + best.frame.max(1));
            self.assigned = segment.end;
            self.queues.entry(best.id).or_default().push_back(segment);
        }
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::Assigned
    }

    fn needs(&self) -> Needs {
        Needs { defers: true, looks_ahead: true, repeats: None }
    }

    fn path_failed(&mut self, _path: PathId) {
        // What was queued there is assigned anew, and what is behind it too.
        self.queues.clear();
        self.assigned = 0;
    }
}

impl Otias {
    fn is_stranded(&self, paths: &[PathView]) -> bool {
        let unusable = |id: &PathId| paths.iter().any(|path| path.id == *id && !path.usable);
        self.queues.iter().any(|(id, queue)| !queue.is_empty() && unusable(id))
    }

    fn earliest<'a>(&self, paths: &'a [PathView]) -> Option<&'a PathView> {
        let usable = paths.iter().filter(|p| p.usable);
        usable.min_by(|a, b| self.arrival(a).total_cmp(&self.arrival(b)))
    }

    /// T of the next segment on this path, in seconds.
    #[allow(clippy::cast_precision_loss)]
    fn arrival(&self, path: &PathView) -> f64 {
        let queue = self.queues.get(&path.id);
        let queued: u64 = queue.into_iter().flatten().map(|r| r.end - r.start).sum();
        // What the path holds beyond its window waits as well.
        let late = (queued + path.held).saturating_sub(path.window);
        let waits = late as f64 / path.window.max(1) as f64;
        (waits + 0.5) * path.srtt.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, path};
    use alloc::vec;

    #[test]
    fn segments_queue_at_the_fast_path_until_the_slow_one_is_earlier() {
        // T is 15 ms on the slow path, and on the fast one 5 ms while its
        // window has room, then 5, 10, 15, 20 ms.
        let paths = vec![path(0, 10, 20_000), path(1, 30, 50_000)];
        let mut f = Fixture::new(Otias::default(), paths, 100_000);
        assert_eq!(f.send(1), Some(50_000..60_000), "five segments queue at the fast path");
        assert_eq!(f.send(0), Some(0..10_000));
        assert_eq!(f.send(0), Some(10_000..20_000));
        // Three queue there still and two are on their way.
        assert_eq!(f.send(1), Some(60_000..70_000));
    }

    #[test]
    fn a_slow_path_gets_nothing_of_a_short_flow() {
        let paths = vec![path(0, 10, 20_000), path(1, 100, 50_000)];
        let mut f = Fixture::new(Otias::default(), paths, 60_000);
        assert_eq!(f.send(1), None);
        assert_eq!(f.send(0), Some(0..10_000));
        f.paths[0].usable = false;
        f.scheduler.path_failed(PathId(0));
        assert_eq!(f.send(1), Some(10_000..20_000), "its queue is assigned anew");
    }

    #[test]
    fn what_a_stream_may_not_use_any_more_keeps_nothing_of_it() {
        let paths = vec![path(0, 10, 20_000), path(1, 100, 50_000)];
        let mut f = Fixture::new(Otias::default(), paths, 60_000);
        assert_eq!(f.ask(1), None, "all is queued at the fast path");
        f.paths[0].usable = false;
        assert_eq!(f.ask(1), Some(0..10_000));
    }
}
