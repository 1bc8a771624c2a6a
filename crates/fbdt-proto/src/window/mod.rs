//! Transmission windows: contiguous ranges of a stream that are sent from
//! both ends (F2, F3, F4, F5).

mod segment;
mod size;

pub use segment::Segment;
pub use size::{WindowSize, unsent_ahead, wanted_buffer};

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use crate::path::PathView;
use crate::ranges::RangeSet;
use crate::units::PathId;

/// One open window. It may reach beyond what the stream has yet; bytes that
/// the application writes later fill it up.
#[derive(Clone, Debug)]
pub struct Window {
    /// Its bytes.
    pub range: Range<u64>,
    /// Who sends which part; empty until it is first asked for.
    pub segments: Vec<Segment>,
}

/// The unsent bytes of one stream and the windows opened over them.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    unsent: RangeSet,
    open: VecDeque<Window>,
    loaded: u64,
}

impl Windows {
    /// The application wrote `range`.
    pub fn written(&mut self, range: Range<u64>) {
        self.unsent.insert(range);
    }

    /// A path takes `range`.
    pub fn take(&mut self, range: Range<u64>) {
        self.unsent.remove(range);
    }

    /// What no path has been given yet.
    #[must_use]
    pub const fn unsent(&self) -> &RangeSet {
        &self.unsent
    }

    /// Open windows, oldest first.
    #[must_use]
    pub const fn open(&self) -> &VecDeque<Window> {
        &self.open
    }

    /// One open window.
    pub fn window_mut(&mut self, index: usize) -> Option<&mut Window> {
        self.open.get_mut(index)
    }

    /// End of the newest window.
    #[must_use]
    pub const fn loaded(&self) -> u64 {
        self.loaded
    }

    /// Opens the next window of `size` bytes.
    pub fn load(&mut self, size: u64) {
        let range = self.loaded..self.loaded.saturating_add(size.max(1));
        self.loaded = range.end;
        self.open.push_back(Window { range, segments: Vec::new() });
    }

    /// Closes windows of which `done` says that they need nothing more.
    pub fn close(&mut self, mut done: impl FnMut(&Window) -> bool) {
        while self.open.front().is_some_and(&mut done) {
            self.open.pop_front();
        }
    }

    /// Nothing below `bound` needs to be sent: it was acknowledged, or the
    /// stream was reset.
    pub fn forget_below(&mut self, bound: u64) {
        self.unsent.remove_below(bound);
    }

    /// Lays window `index` out over what is unsent in it below `bound` (F3,
    /// F4; equations 4.4 and 4.5, Algorithm 1): sizes by rate, the most
    /// reliable path lowest.
    pub fn align(&mut self, index: usize, bound: u64, order: &[(PathId, f64)]) {
        let Some(window) = self.open.get_mut(index) else {
            return;
        };
        let within = window.range.start..window.range.end.min(bound);
        window.segments = segment::align(&self.unsent, within, order);
    }
}

/// Paths by falling reliability, the forward one first (F3). A pinned path
/// leads; else `holder` keeps the front unless another is clearly better.
#[must_use]
pub fn by_reliability(paths: &[PathView], holder: Option<PathId>) -> Vec<PathView> {
    let mut order: Vec<PathView> = paths.iter().filter(|p| p.usable).copied().collect();
    order.sort_by(|a, b| {
        b.pinned.cmp(&a.pinned).then(a.penalty.total_cmp(&b.penalty)).then(a.id.cmp(&b.id))
    });
    let Some(best) = order.first().copied() else {
        return order;
    };
    if best.pinned {
        return order;
    }
    if let Some(at) = order.iter().position(|p| Some(p.id) == holder)
        && !crate::path::Reliability::displaces(best.penalty, order[at].penalty)
    {
        order[..=at].rotate_right(1);
    }
    order
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use core::time::Duration;

    pub(crate) fn view(id: u8, rate: f64, penalty: f64) -> PathView {
        PathView {
            id: PathId(id),
            usable: true,
            suspect_for: None,
            rate,
            delivered_rate: rate,
            arrival: Duration::from_millis(2),
            ramping: false,
            srtt: Duration::from_millis(4),
            rttvar: Duration::ZERO,
            base_rtt: Duration::from_millis(4),
            hold: Duration::ZERO,
            window: 100_000,
            ssthresh: 100_000,
            held: 0,
            room: 100_000,
            ready: true,
            frame: 10_000,
            mss: 1000,
            acknowledged: 0,
            penalty,
            pinned: false,
        }
    }

    #[test]
    fn f3_the_most_reliable_path_is_forward_with_hysteresis() {
        let first = |paths: &[PathView], holder| by_reliability(paths, holder)[0].id;
        let paths = [view(0, 1.0, 0.5), view(1, 9.0, 0.3)];
        assert_eq!(first(&paths, None), PathId(1));
        assert_eq!(first(&paths, Some(PathId(0))), PathId(0), "0.2 better is not enough");
        let paths = [view(0, 1.0, 0.9), view(1, 9.0, 0.3)];
        assert_eq!(first(&paths, Some(PathId(0))), PathId(1));
        let mut pinned = view(2, 1.0, 5.0);
        pinned.pinned = true;
        assert_eq!(first(&[paths[0], paths[1], pinned], None), PathId(2));
        let gone = PathView { usable: false, ..paths[1] };
        assert_eq!(first(&[paths[0], gone], Some(PathId(1))), PathId(0));
    }

    #[test]
    fn windows_open_close_and_take_up_later_bytes() {
        let mut windows = Windows::default();
        windows.written(0..100);
        windows.load(64);
        windows.load(64);
        assert_eq!(windows.loaded(), 128);
        windows.take(0..64);
        windows.written(100..120);
        assert_eq!(windows.unsent().first(), Some(64..120));
        windows.close(|w| w.range.end <= 64);
        assert_eq!(windows.open().len(), 1);
    }
}
