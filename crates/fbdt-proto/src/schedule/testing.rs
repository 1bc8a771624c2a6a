//! Paths and streams for the tests of schedulers.

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use super::{PlacementRequest, Scheduler, UnderWay};
use crate::path::PathView;
pub use crate::path::testing::view;
use crate::ranges::RangeSet;
use crate::time::Instant;
use crate::units::StreamId;

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

/// One stream and a scheduler, for worked cases.
pub struct Fixture<S> {
    /// The scheduler.
    pub scheduler: S,
    /// All paths.
    pub paths: Vec<PathView>,
    /// Bytes that no path has been given yet.
    pub unsent: RangeSet,
    /// Now.
    pub now: Instant,
    /// The stream.
    pub stream: StreamId,
    /// Offset of the first byte that is not acknowledged.
    pub acked: u64,
    /// Offset up to which the peer lets the stream be sent.
    pub limit: u64,
    /// Most bytes that one frame takes.
    pub frame: u64,
}

impl<S: Scheduler> Fixture<S> {
    /// A stream of `written` bytes, of which none was sent.
    #[must_use]
    pub fn new(scheduler: S, paths: Vec<PathView>, written: u64) -> Self {
        let mut unsent = RangeSet::new();
        unsent.insert(0..written);
        Self {
            scheduler,
            paths,
            unsent,
            now: Instant::ZERO,
            stream: StreamId(1),
            acked: 0,
            limit: 1 << 40,
            frame: 10_000,
        }
    }

    /// The bytes that the path is given.
    pub fn ask(&mut self, path: usize) -> Option<Range<u64>> {
        let range = self.scheduler.place(PlacementRequest {
            now: self.now,
            stream: self.stream,
            bound: self.limit.min(1 << 40),
            limit: self.limit,
            acked: self.acked,
            frame: self.frame,
            under_way: &Acknowledged { written: 1 << 40, below: self.acked },
            ..request(&self.paths, path, &self.unsent)
        })?;
        self.unsent.remove(range.clone());
        Some(range)
    }

    /// As [`Self::ask`], and the path's window takes the bytes.
    pub fn send(&mut self, path: usize) -> Option<Range<u64>> {
        let range = self.ask(path)?;
        let view = &mut self.paths[path];
        view.held += range.end - range.start;
        view.room = view.window.saturating_sub(view.held);
        Some(range)
    }
}

/// A path with this RTT and congestion window.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn path(id: u8, rtt_ms: u64, window: u64) -> PathView {
    let rtt = Duration::from_millis(rtt_ms);
    PathView {
        srtt: rtt,
        base_rtt: rtt,
        arrival: rtt / 2,
        window,
        room: window,
        ..view(id, window as f64 / rtt.as_secs_f64(), 0.0)
    }
}
