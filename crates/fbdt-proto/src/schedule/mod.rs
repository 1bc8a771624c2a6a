//! Which bytes a path sends next (F3b).
//!
//! A scheduler answers with a byte range, not only with a path. It sees the
//! paths as immutable [`PathView`]s and one stream's [`Windows`].

mod just_in_time;
pub mod redundancy;
mod two_ended;

pub use just_in_time::JustInTime;
pub use two_ended::TwoEnded;

use alloc::boxed::Box;
use core::fmt::Debug;
use core::ops::Range;

use crate::config::Placement;
use crate::path::PathView;
use crate::units::{Direction, PathId};
use crate::window::{WindowSize, Windows};

/// Everything that a placement is decided on.
#[derive(Debug)]
pub struct PlacementRequest<'a> {
    /// All paths.
    pub paths: &'a [PathView],
    /// Which of them asks.
    pub path: usize,
    /// The stream's unsent bytes and open windows.
    pub windows: &'a mut Windows,
    /// Offset up to which the stream may be sent now.
    pub bound: u64,
    /// Offset of the first byte that is not acknowledged.
    pub acked: u64,
    /// Most bytes that one frame takes.
    pub frame: u64,
    /// Size and number of windows.
    pub size: WindowSize,
    /// Streams, with this one, that take turns.
    pub sharing: u64,
}

/// A policy of placement. Pure: the same request gives the same answer.
pub trait Scheduler: Debug + Send {
    /// The name used in flags and reports.
    fn name(&self) -> &'static str;

    /// New bytes for the asking path: a non-empty part of what is unsent
    /// below the bound, at most one frame long; `None` if it should wait.
    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>>;

    /// From which end `path` sends, for people.
    fn direction(&self, path: PathId) -> Direction;

    /// A path became suspect or dead: the front must not wait for it.
    fn path_failed(&mut self, path: PathId);
}

/// The scheduler for a placement.
#[must_use]
pub fn scheduler(placement: Placement) -> Box<dyn Scheduler> {
    match placement {
        Placement::TwoEnded => Box::new(TwoEnded::default()),
        Placement::JustInTime => Box::new(JustInTime),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::tests::view;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn paths(rates: &[f64]) -> Vec<PathView> {
        rates.iter().enumerate().map(|(i, r)| view(i as u8, *r, i as f64)).collect()
    }

    proptest! {
        /// Whatever asks, each byte is handed out once, within bound and
        /// frame, and all of them as long as one path takes.
        #[test]
        fn every_byte_is_placed_once(
            placement in prop::sample::select(&[Placement::TwoEnded, Placement::JustInTime][..]),
            rates in prop::collection::vec(1e5..1e8f64, 1..6),
            asks in prop::collection::vec(0..6usize, 0..60),
            total in 1..5_000_000u64,
        ) {
            let mut scheduler = scheduler(placement);
            let paths = paths(&rates);
            let mut windows = Windows::default();
            windows.written(0..total);
            let size = WindowSize { bytes: 300_000, depth: 4 };
            let mut acked = 0;
            let mut order = asks.into_iter().map(|a| a % rates.len()).chain((0..rates.len()).cycle());
            let mut idle = 0;
            while !windows.unsent().is_empty() {
                let path = order.next().unwrap();
                let unsent = windows.unsent().clone();
                let request = PlacementRequest {
                    paths: &paths, path, windows: &mut windows, bound: total, acked, frame: 65536, size, sharing: 1,
                };
                match scheduler.place(request) {
                    Some(range) => {
                        idle = 0;
                        prop_assert!(range.start < range.end && range.end - range.start <= 65536);
                        prop_assert!(unsent.covers(range.clone()), "placed twice: {range:?}");
                        windows.take(range);
                    }
                    None => {
                        idle += 1;
                        prop_assert!(idle <= 2 * rates.len(), "nobody takes the rest");
                        acked = windows.unsent().first().map_or(total, |r| r.start);
                        windows.close(|w| w.range.end <= acked);
                    }
                }
            }
        }
    }
}
