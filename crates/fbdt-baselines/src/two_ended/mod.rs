//! The paper's placement: forward from the front, backward from segment tops
//! (F3, F4, F5).

mod order;
mod segment;
mod windows;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use fbdt_proto::{
    Config, Direction, Needs, OpenWindows, PathId, PlacementRequest, RangeSet, Redundancy,
    Scheduler, StreamId, UnderWay, WindowMode, WindowSize, lead,
};

use self::order::by_reliability;
use self::segment::Segment;
use self::windows::Windows;

/// Windows served from both ends, oldest first; a path that finds nothing
/// unsent goes on into the next one.
#[derive(Debug)]
pub(crate) struct TwoEnded {
    config: Config,
    forward: Option<PathId>,
    /// The windows of each stream.
    windows: BTreeMap<StreamId, Windows>,
}

impl Scheduler for TwoEnded {
    fn name(&self) -> &'static str {
        "two-ended"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        let mut windows = self.windows.remove(&request.stream).unwrap_or_default();
        windows.close(request.under_way, &self.closing(&request));
        let placed = self.place_in(&mut windows, &request);
        self.windows.insert(request.stream, windows);
        placed
    }

    fn direction(&self, path: PathId) -> Direction {
        if self.forward == Some(path) { Direction::Forward } else { Direction::Backward }
    }

    fn needs(&self) -> Needs {
        Needs { looks_ahead: true, ..Needs::default() }
    }

    fn open_windows(&self, stream: StreamId, sent: &dyn UnderWay) -> OpenWindows {
        self.windows.get(&stream).map(|windows| windows.picture(sent)).unwrap_or_default()
    }

    fn path_failed(&mut self, path: PathId) {
        if self.forward == Some(path) {
            self.forward = None;
        }
    }

    fn stream_over(&mut self, stream: StreamId) {
        self.windows.remove(&stream);
    }
}

impl TwoEnded {
    /// No window is open; their sizes and number are the configuration's.
    #[must_use]
    pub(crate) fn new(config: &Config) -> Self {
        Self { config: config.clone(), forward: None, windows: BTreeMap::new() }
    }

    /// Bytes that close a window without being acknowledged: in the paper's mode those that were
    /// handed over twice (R11).
    fn closing(&self, request: &PlacementRequest<'_>) -> RangeSet {
        let Config { window_mode, redundancy, .. } = self.config;
        if window_mode == WindowMode::Thesis && redundancy == Redundancy::RttWait {
            request.under_way.copied()
        } else {
            RangeSet::new()
        }
    }

    fn place_in(
        &mut self,
        windows: &mut Windows,
        request: &PlacementRequest<'_>,
    ) -> Option<Range<u64>> {
        let size = WindowSize::of(&self.config, request.all_paths, request.frame);
        let lead = lead(request.paths, request.path);
        // One window at a time leaves no other to serve: then it takes its end of that one.
        if lead > size.bytes && size.depth > 1 {
            return late_path(windows, request, size, lead);
        }
        let unsent = request.unsent;
        // The others would have sent all of it before this path's bytes come.
        if lead > 0 && unsent.total_within(0..request.bound) <= lead {
            return None;
        }
        let own = request.paths.get(request.path)?.id;
        let mut index = 0;
        loop {
            if let Some(window) = windows.open().get(index) {
                let within = window.range.start..window.range.end.min(request.bound);
                if let Some(lowest) = unsent.first_within(within.clone()) {
                    if self.forward_path(request) == Some(own) {
                        return Some(lowest.start..lowest.end.min(lowest.start + request.frame));
                    }
                    return self.backward(windows, request, index, within, own);
                }
                index += 1;
            } else if !self.load(windows, request, size) {
                return None;
            }
        }
    }

    /// The path that has the front; a survivor takes it at once (F3).
    fn forward_path(&mut self, request: &PlacementRequest<'_>) -> Option<PathId> {
        let usable = |id| request.paths.iter().any(|p| p.id == id && p.usable);
        if !self.forward.is_some_and(usable) {
            self.forward = by_reliability(request.now, request.paths, None).first().map(|p| p.id);
        }
        self.forward
    }

    /// Opens one more window if the depth allows; the mapping of directions
    /// is decided now (F3).
    fn load(
        &mut self,
        windows: &mut Windows,
        request: &PlacementRequest<'_>,
        size: WindowSize,
    ) -> bool {
        let more = request.unsent.last().is_some_and(|r| r.end > windows.loaded());
        if !more || windows.loaded() >= request.bound || windows.open().len() >= size.depth {
            return false;
        }
        self.forward =
            by_reliability(request.now, request.paths, self.forward).first().map(|p| p.id);
        windows.load(size.bytes);
        true
    }

    /// The top of what is unsent in the path's own segment; when nothing is
    /// left there, the window is realigned (F4).
    fn backward(
        &self,
        windows: &mut Windows,
        request: &PlacementRequest<'_>,
        index: usize,
        within: Range<u64>,
        own: PathId,
    ) -> Option<Range<u64>> {
        for attempt in 0..2 {
            let segments = &windows.open().get(index)?.segments;
            if let Some(top) = own_top(request, segments, &within, own) {
                return Some(top.end.saturating_sub(request.frame).max(top.start)..top.end);
            }
            if attempt == 0 {
                let order: Vec<(PathId, f64)> =
                    by_reliability(request.now, request.paths, self.forward)
                        .iter()
                        .map(|p| (p.id, p.rate))
                        .collect();
                windows.align(index, request.unsent, request.bound, &order);
            }
        }
        // Its share of what is left rounds to nothing: it helps at the top.
        let top = request.unsent.last_within(within)?;
        Some(top.end.saturating_sub(request.frame).max(top.start)..top.end)
    }
}

/// The highest unsent piece of the path's own segment. The topmost segment
/// also takes what was written above it since the window was laid out.
fn own_top(
    request: &PlacementRequest<'_>,
    segments: &[Segment],
    within: &Range<u64>,
    own: PathId,
) -> Option<Range<u64>> {
    let at = segments.iter().position(|s| s.path == own)?;
    let segment = &segments[at].range;
    let top = if at + 1 == segments.len() { within.end } else { segment.end.min(within.end) };
    // The first backward path moves towards the forward one: they meet.
    let low = if at == 1 { within.start } else { segment.start };
    request.unsent.last_within(low..top)
}

/// A path that is later than a whole window serves the window that the front
/// reaches when its bytes arrive (F2), at any depth that the bound allows: windows are pipelined.
fn late_path(
    windows: &mut Windows,
    request: &PlacementRequest<'_>,
    size: WindowSize,
    lead: u64,
) -> Option<Range<u64>> {
    let front = request.unsent.first()?.start;
    let wanted = request.unsent.skip(front, lead)?;
    if wanted >= request.bound {
        return None;
    }
    while windows.loaded() <= wanted {
        windows.load(size.bytes);
    }
    let window = windows.open().iter().find(|w| w.range.end > wanted)?;
    let within = wanted.max(window.range.start)..window.range.end.min(request.bound);
    let top = request.unsent.last_within(within)?;
    Some(top.end.saturating_sub(request.frame).max(top.start)..top.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use fbdt_proto::PathView;
    use fbdt_proto::testing::{Acknowledged, request, view};

    struct Fixture {
        scheduler: TwoEnded,
        paths: Vec<PathView>,
        unsent: RangeSet,
        sent: Acknowledged,
    }

    impl Fixture {
        fn new(rates: &[f64], written: u64) -> Self {
            // A frame of any takes 10 ms.
            let path = |(i, rate): (usize, &f64)| PathView {
                frame: (rate / 100.0) as u64,
                ..view(i as u8, *rate, i as f64)
            };
            let paths = rates.iter().enumerate().map(path).collect();
            let mut unsent = RangeSet::new();
            unsent.insert(0..written);
            let config = Config { window: (1000, 1000), window_depth: 2, ..Config::default() };
            let sent = Acknowledged { written, below: 0 };
            Self { scheduler: TwoEnded::new(&config), paths, unsent, sent }
        }

        fn ask(&mut self, path: usize) -> Option<Range<u64>> {
            let range = self.scheduler.place(PlacementRequest {
                frame: 100,
                under_way: &self.sent,
                ..request(&self.paths, path, &self.unsent)
            })?;
            self.unsent.remove(range.clone());
            Some(range)
        }
    }

    #[test]
    fn f3_forward_rises_and_backward_falls_until_they_meet() {
        let mut f = Fixture::new(&[1.0, 1.0], 600);
        assert_eq!(f.ask(0), Some(0..100));
        assert_eq!(f.ask(1), Some(500..600));
        assert_eq!(f.ask(1), Some(400..500));
        assert_eq!(f.ask(0), Some(100..200));
        assert_eq!(f.ask(1), Some(300..400));
        assert_eq!(f.ask(1), Some(200..300), "the faster side goes on to the meeting point");
        assert_eq!(f.ask(0), None);
        assert_eq!(f.scheduler.direction(PathId(0)), Direction::Forward);
        assert_eq!(f.scheduler.direction(PathId(1)), Direction::Backward);
    }

    #[test]
    fn f3_three_paths_start_at_the_tops_of_their_segments() {
        let mut f = Fixture::new(&[5.0, 3.0, 2.0], 1000);
        assert_eq!(f.ask(1), Some(700..800));
        assert_eq!(f.ask(2), Some(900..1000));
        assert_eq!(f.ask(0), Some(0..100));
    }

    #[test]
    fn f4_a_path_whose_segment_is_done_realigns_over_what_is_unsent() {
        let mut f = Fixture::new(&[5.0, 3.0, 2.0], 1000);
        assert_eq!(f.ask(2), Some(900..1000));
        assert_eq!(f.ask(2), Some(800..900));
        // 0..800 is unsent: segments of 400, 240, 160 bytes.
        assert_eq!(f.ask(2), Some(700..800));
        assert_eq!(f.ask(1), Some(540..640));
    }

    #[test]
    fn f5_a_path_without_work_goes_on_into_the_next_window() {
        let mut f = Fixture::new(&[1.0], 5000);
        for expected in 0..20u64 {
            assert_eq!(f.ask(0), Some(expected * 100..expected * 100 + 100));
        }
        assert_eq!(f.ask(0), None, "two windows are open and none is acknowledged");
        f.sent.below = 1000;
        assert_eq!(f.ask(0), Some(2000..2100));
    }

    #[test]
    fn f3_the_survivor_takes_the_front_at_once() {
        let mut f = Fixture::new(&[1.0, 1.0], 600);
        assert_eq!(f.ask(0), Some(0..100));
        f.paths[0].usable = false;
        f.scheduler.path_failed(PathId(0));
        assert_eq!(f.ask(1), Some(100..200));
    }

    #[test]
    fn f2_a_path_later_than_a_window_serves_the_window_that_will_be_due() {
        let mut f = Fixture::new(&[10_000.0, 100.0], 100_000);
        f.paths[1].arrival = Duration::from_millis(502);
        let range = f.ask(1).unwrap();
        assert!(range.start >= 5000, "{range:?} would be overtaken");
        assert_eq!(f.ask(0), Some(0..100));
        let mut short = Fixture::new(&[10_000.0, 100.0], 4000);
        short.paths[1].arrival = Duration::from_millis(502);
        assert_eq!(short.ask(1), None, "the fast path is done before that");
    }
    #[test]
    fn f5_one_window_at_a_time_is_one_however_late_a_path_is() {
        let mut f = Fixture::new(&[10_000.0, 100.0], 100_000);
        f.paths[1].arrival = Duration::from_millis(502);
        f.scheduler.config.window_depth = 1;
        assert_eq!(f.ask(1), Some(900..1000), "its end of the one window");
        while let Some(range) = f.ask(0) {
            assert!(range.end <= 1000, "{range:?}");
        }
        assert_eq!(f.ask(1), None);
        assert_eq!(f.scheduler.open_windows(StreamId(1), &f.sent).count, 1);
    }
}
