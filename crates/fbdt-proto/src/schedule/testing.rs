//! Paths and streams for the tests of schedulers.

use core::ops::Range;

use fbdt_units::{Instant, RangeSet, StreamId};

use super::{PlacementRequest, UnderWay};
use crate::path::PathView;

/// A stream of which everything below an offset is acknowledged, and nothing else was sent.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Bytes that the application wrote.
    pub written: u64,
    /// The first byte that is not acknowledged.
    pub below: u64,
}

const NOTHING: Acknowledged = Acknowledged { written: 0, below: 0 };

impl UnderWay for Acknowledged {
    fn written(&self) -> u64 {
        self.written
    }

    fn sent_end(&self) -> u64 {
        self.below
    }

    fn unacknowledged(&self, range: Range<u64>) -> Option<Range<u64>> {
        let start = range.start.max(self.below);
        (start < range.end).then_some(start..range.end)
    }

    fn sent_by(&self, _path: usize, _byte: u64) -> Option<Range<u64>> {
        None
    }

    fn copied(&self) -> RangeSet {
        RangeSet::new()
    }
}

/// What a path asks for of a stream that has room for everything: 10 kB at a time.
#[must_use]
pub fn request<'a>(
    paths: &'a [PathView],
    path: usize,
    unsent: &'a RangeSet,
) -> PlacementRequest<'a> {
    PlacementRequest {
        now: Instant::ZERO,
        paths,
        all_paths: paths,
        path,
        stream: StreamId(1),
        unsent,
        under_way: &NOTHING,
        bound: 1 << 40,
        limit: 1 << 40,
        acked: 0,
        frame: 10_000,
        sharing: 1,
    }
}
