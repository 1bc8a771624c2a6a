//! All bytes on all paths.

use alloc::collections::BTreeMap;
use core::ops::Range;

use fbdt_proto::{
    Direction, Needs, PathId, PlacementRequest, Repeat, RepeatRequest, Repeats, Scheduler,
    StreamId, SubflowId,
};

/// Every path sends the stream from its first unacknowledged byte on, as
/// fast as it can; what was acknowledged meanwhile it skips.
#[derive(Debug, Default)]
pub(crate) struct Redundant {
    /// How far each subflow has carried each stream.
    carried: BTreeMap<StreamId, BTreeMap<SubflowId, u64>>,
}

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

    fn needs(&self) -> Needs {
        let repeats = Some(Repeats::BeforeNew);
        Needs { looks_ahead: true, repeats, ..Needs::default() }
    }

    /// A path goes on where it is in the stream: bytes that others sent and nobody acknowledged
    /// yet come before new ones.
    fn repeat(&mut self, request: &RepeatRequest<'_>) -> Repeat {
        let carried = self.carried.get(&request.stream);
        let at = carried.and_then(|subflows| subflows.get(&request.subflow)).copied().unwrap_or(0);
        let sent = request.under_way;
        Repeat { range: sent.unacknowledged(at..sent.sent_end()), punish: None }
    }

    fn sent(&mut self, stream: StreamId, subflow: SubflowId, range: &Range<u64>) {
        self.carried.entry(stream).or_default().insert(subflow, range.end);
    }

    fn stream_over(&mut self, stream: StreamId) {
        self.carried.remove(&stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, path};
    use alloc::vec;

    // What a path sends again is `tests/redundant.rs`'s.
    #[test]
    fn whoever_comes_first_sends_it_first() {
        let paths = vec![path(0, 40, 50_000), path(1, 10, 20_000)];
        let mut f = Fixture::new(Redundant::default(), paths, 100_000);
        assert_eq!(f.send(0), Some(0..10_000));
        assert_eq!(f.send(1), Some(10_000..20_000));
    }
}
