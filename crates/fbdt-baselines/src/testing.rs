//! Paths and streams for the tests of schedulers.

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use fbdt_proto::testing::{Acknowledged, request, view};
use fbdt_proto::{Instant, PathView, PlacementRequest, RangeSet, Scheduler, StreamId};

/// One stream and a scheduler, for worked cases.
pub(crate) struct Fixture<S> {
    /// The scheduler.
    pub(crate) scheduler: S,
    /// All paths.
    pub(crate) paths: Vec<PathView>,
    /// Bytes that no path has been given yet.
    pub(crate) unsent: RangeSet,
    /// Now.
    pub(crate) now: Instant,
    /// The stream.
    pub(crate) stream: StreamId,
    /// Offset of the first byte that is not acknowledged.
    pub(crate) acked: u64,
    /// Offset up to which the peer lets the stream be sent.
    pub(crate) limit: u64,
    /// Most bytes that one frame takes.
    pub(crate) frame: u64,
}

impl<S: Scheduler> Fixture<S> {
    /// A stream of `written` bytes, of which none was sent.
    pub(crate) fn new(scheduler: S, paths: Vec<PathView>, written: u64) -> Self {
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
    pub(crate) fn ask(&mut self, path: usize) -> Option<Range<u64>> {
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
    pub(crate) fn send(&mut self, path: usize) -> Option<Range<u64>> {
        let range = self.ask(path)?;
        let view = &mut self.paths[path];
        view.held += range.end - range.start;
        view.room = view.window.saturating_sub(view.held);
        Some(range)
    }
}

/// A path with this RTT and congestion window.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn path(id: u8, rtt_ms: u64, window: u64) -> PathView {
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
