//! The windows of one stream that are open (F5).
//!
//! See also F3, F4.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use fbdt_proto::{OpenWindows, PathId, RangeSet, UnderWay};

use super::segment::{self, Segment};

/// One open window. It may reach beyond what the stream has yet; bytes that
/// the application writes later fill it up.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Its bytes.
    pub(super) range: Range<u64>,
    /// Who sends which part; empty until it is first asked for.
    pub(super) segments: Vec<Segment>,
}

impl Window {
    /// Whether all of it was acknowledged, or is in `copied`.
    fn is_done(&self, sent: &dyn UnderWay, copied: &RangeSet) -> bool {
        let Range { start: mut at, end } = self.range;
        while let Some(gap) = sent.unacknowledged(at..end) {
            if !copied.covers(gap.clone()) {
                return false;
            }
            at = gap.end;
        }
        end <= sent.written()
    }
}

/// The open windows of one stream, oldest first.
#[derive(Debug, Default)]
pub(super) struct Windows {
    open: VecDeque<Window>,
    loaded: u64,
}

impl Windows {
    /// Open windows, oldest first.
    pub(super) const fn open(&self) -> &VecDeque<Window> {
        &self.open
    }

    /// End of the newest window.
    pub(super) const fn loaded(&self) -> u64 {
        self.loaded
    }

    /// Opens the next window of `size` bytes.
    pub(super) fn load(&mut self, size: u64) {
        let range = self.loaded..self.loaded.saturating_add(size.max(1));
        self.loaded = range.end;
        self.open.push_back(Window { range, segments: Vec::new() });
    }

    /// Closes the oldest windows that are acknowledged, or handed over twice as in the paper (R11).
    pub(super) fn close(&mut self, sent: &dyn UnderWay, copied: &RangeSet) {
        while self.open.front().is_some_and(|window| window.is_done(sent, copied)) {
            self.open.pop_front();
        }
    }

    /// What is open once acknowledged windows are closed.
    pub(super) fn picture(&self, sent: &dyn UnderWay) -> OpenWindows {
        let none = RangeSet::new();
        let open = self.open.iter().skip_while(|window| window.is_done(sent, &none));
        OpenWindows { count: open.count(), end: self.loaded }
    }

    /// Lays window `index` out over what is unsent in it below `bound` (F3,
    /// F4; equations 4.4 and 4.5, Algorithm 1): sizes by rate, the most
    /// reliable path lowest.
    pub(super) fn align(
        &mut self,
        index: usize,
        unsent: &RangeSet,
        bound: u64,
        order: &[(PathId, f64)],
    ) {
        let Some(window) = self.open.get_mut(index) else {
            return;
        };
        let within = window.range.start..window.range.end.min(bound);
        window.segments = segment::align(unsent, within, order);
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use fbdt_proto::testing::Acknowledged;

    fn two_windows() -> Windows {
        let mut windows = Windows::default();
        windows.load(100);
        windows.load(100);
        windows
    }

    #[test]
    fn an_acknowledged_window_is_closed_and_the_next_one_opens_behind_the_last() {
        let mut windows = two_windows();
        assert_eq!(windows.loaded(), 200);
        let sent = Acknowledged { written: 200, below: 100 };
        assert_eq!(windows.picture(&sent), OpenWindows { count: 1, end: 200 });
        windows.close(&sent, &RangeSet::new());
        assert_eq!(windows.open().len(), 1);
        windows.load(50);
        assert_eq!(windows.loaded(), 250);
        windows.close(&Acknowledged { written: 220, below: 220 }, &RangeSet::new());
        assert_eq!(windows.open().len(), 1, "bytes that are written later fill it up");
    }

    #[test]
    fn r11_a_window_that_was_handed_over_twice_is_closed() {
        let (mut windows, mut copied) = (two_windows(), RangeSet::new());
        let sent = Acknowledged { written: 200, below: 60 };
        windows.close(&sent, &copied);
        assert_eq!(windows.open().len(), 2);
        copied.insert(60..100);
        windows.close(&sent, &copied);
        assert_eq!(windows.open().len(), 1);
    }
}
