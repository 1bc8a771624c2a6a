//! Which bytes a path sends next (F3b).
//!
//! A scheduler answers with a byte range, not only with a path. It sees the
//! paths as immutable [`PathView`]s, and of one stream which bytes are unsent and which are under way.

mod blest;
mod blockers;
mod daps;
mod ecf;
mod just_in_time;
mod lowest_rtt_first;
mod min_rtt;
mod musher;
mod otias;
pub mod redundancy;
mod redundant;
mod round_robin;
mod share;
mod standby;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod two_ended;

pub use blest::Blest;
pub use daps::Daps;
pub use ecf::Ecf;
pub use just_in_time::JustInTime;
pub use lowest_rtt_first::LowestRttFirst;
pub use min_rtt::MinRtt;
pub use musher::MuSher;
pub use otias::Otias;
pub use redundant::Redundant;
pub use round_robin::RoundRobin;
pub use standby::in_service;
pub use two_ended::TwoEnded;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt::Debug;
use core::ops::Range;

use crate::config::{Config, SchedulerKind};
use crate::path::PathView;
use crate::ranges::RangeSet;
use crate::time::Instant;
use crate::units::{Direction, PathId, StreamId, SubflowId};

/// Everything that a placement is decided on.
pub struct PlacementRequest<'a> {
    /// Now.
    pub now: Instant,
    /// All paths; one that the user keeps the stream off is not usable.
    pub paths: &'a [PathView],
    /// All paths as they are for a stream that may use each of them.
    pub all_paths: &'a [PathView],
    /// Which of them asks.
    pub path: usize,
    /// The stream.
    pub stream: StreamId,
    /// Its bytes that no path has been given yet.
    pub unsent: &'a RangeSet,
    /// Its bytes that were sent.
    pub under_way: &'a dyn UnderWay,
    /// Offset up to which the stream may be sent now.
    pub bound: u64,
    /// Offset up to which the peer's limits would allow it.
    pub limit: u64,
    /// Offset of the first byte that is not acknowledged.
    pub acked: u64,
    /// Most bytes that one frame takes.
    pub frame: u64,
    /// Streams, with this one, that take turns.
    pub sharing: u64,
}

impl PlacementRequest<'_> {
    /// The path that asks.
    fn own(&self) -> Option<&PathView> {
        self.paths.get(self.path)
    }

    /// The lowest unsent bytes, a frame of them.
    fn front(&self) -> Option<Range<u64>> {
        self.beyond(0)
    }

    /// The lowest unsent bytes beyond the first `spared` of them, a frame of them.
    fn beyond(&self, spared: u64) -> Option<Range<u64>> {
        let above = self.unsent.skip(0, spared)?;
        let piece = self.unsent.first_within(above..self.bound)?;
        Some(piece.start..piece.end.min(piece.start + self.frame))
    }
}

/// One stream's bytes that were sent.
pub trait UnderWay {
    /// End of what the application wrote.
    fn written(&self) -> u64;

    /// End of what was ever sent.
    fn sent_end(&self) -> u64;

    /// The lowest part of `range` that is not acknowledged.
    fn unacknowledged(&self, range: Range<u64>) -> Option<Range<u64>>;

    /// The bytes around `byte` that path `path` sent together and that are not acknowledged.
    fn sent_by(&self, path: usize, byte: u64) -> Option<Range<u64>>;

    /// Unacknowledged bytes that were sent twice.
    fn copied(&self) -> RangeSet;
}

/// The windows of a stream that a scheduler has laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenWindows {
    /// How many need more to be sent or acknowledged.
    pub count: usize,
    /// End of the newest.
    pub end: u64,
}

/// Everything that a repetition is decided on.
pub struct RepeatRequest<'a> {
    /// Now.
    pub now: Instant,
    /// All paths.
    pub paths: &'a [PathView],
    /// Which of them asks.
    pub path: usize,
    /// The connection that it has now.
    pub subflow: SubflowId,
    /// The stream.
    pub stream: StreamId,
    /// What was sent of the stream.
    pub under_way: &'a dyn UnderWay,
    /// Offset of the first byte that is not acknowledged.
    pub acked: u64,
    /// Bytes from there to the peer's limits.
    pub window: u64,
    /// Bytes that are written and unsent.
    pub unsent: u64,
    /// Whether a full receive or send buffer keeps new bytes of the stream from being sent.
    pub blocked: bool,
}

/// What a scheduler does about bytes that are under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeat {
    /// The asking path sends a frame of these bytes again.
    pub range: Option<Range<u64>>,
    /// The window of this path is halved.
    pub punish: Option<usize>,
}

/// When a scheduler repeats bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Before new bytes.
    BeforeNew,
    /// When a path can send nothing new.
    AfterNew,
}

/// What a scheduler needs beside being asked for new bytes; the same for all its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// It leaves a path without bytes in favour of another: the session asks that path again
    /// whenever another one has taken some.
    pub defers: bool,
    /// It lays out bytes ahead: writers may leave whole windows unsent beyond what is under way.
    pub looks_ahead: bool,
    /// When the session calls [`Scheduler::repeat`].
    pub repeats: Option<Repeats>,
}

/// A policy of placement. Pure: the same requests in the same order give the
/// same answers.
pub trait Scheduler: Debug + Send {
    /// The name used in flags and reports.
    fn name(&self) -> &'static str;

    /// New bytes for the asking path: a non-empty part of what is unsent
    /// below the bound, at most one frame long; `None` if it should wait.
    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>>;

    /// From which end `path` sends, for people.
    fn direction(&self, path: PathId) -> Direction;

    /// The windows of a stream that are open, for people.
    fn open_windows(&self, _stream: StreamId, _sent: &dyn UnderWay) -> OpenWindows {
        OpenWindows::default()
    }

    /// A path became suspect or dead, or stands by again: the front must not wait for it.
    fn path_failed(&mut self, _path: PathId) {}

    /// What it needs beside that.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Bytes of one stream that the asking path should send again. The session asks for its streams
    /// in turn until one has some.
    fn repeat(&mut self, _request: &RepeatRequest<'_>) -> Repeat {
        Repeat::default()
    }

    /// Bytes of a stream left on a subflow, for whatever reason. Only a scheduler that repeats
    /// bytes is notified.
    fn sent(&mut self, _stream: StreamId, _subflow: SubflowId, _range: &Range<u64>) {}

    /// A stream is over: nothing more of it is asked for.
    fn stream_over(&mut self, _stream: StreamId) {}
}

/// The scheduler that a configuration names.
#[must_use]
pub fn scheduler(config: &Config) -> Box<dyn Scheduler> {
    match config.scheduler {
        SchedulerKind::JustInTime => Box::new(JustInTime),
        SchedulerKind::TwoEnded => Box::new(TwoEnded::new(config)),
        SchedulerKind::MinRtt => Box::new(MinRtt::default()),
        SchedulerKind::Blest => Box::new(Blest::default()),
        SchedulerKind::Ecf => Box::new(Ecf::default()),
        SchedulerKind::Daps => Box::new(Daps::default()),
        SchedulerKind::Otias => Box::new(Otias::default()),
        SchedulerKind::LowestRttFirst => Box::new(LowestRttFirst),
        SchedulerKind::MuSher => Box::new(MuSher::default()),
        SchedulerKind::RoundRobin => Box::new(RoundRobin::default()),
        SchedulerKind::Redundant => Box::new(Redundant::default()),
    }
}

/// The first of the ranges assigned to a path that is still unsent, a frame
/// of it; ranges that are not are dropped.
fn take_assigned(
    queue: &mut VecDeque<Range<u64>>,
    unsent: &RangeSet,
    frame: u64,
) -> Option<Range<u64>> {
    while let Some(range) = queue.pop_front() {
        let Some(piece) = unsent.first_within(range.clone()) else {
            continue;
        };
        let end = piece.end.min(piece.start + frame);
        if end < range.end {
            queue.push_front(end..range.end);
        }
        return Some(piece.start..end);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::testing::{Acknowledged, Fixture, path, request, view};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// A scheduler that opens windows of 300 kB.
    fn of_kind(kind: SchedulerKind) -> Box<dyn Scheduler> {
        let config = Config { window: (300_000, 300_000), ..Config::default() };
        scheduler(&config.with_scheduler(kind))
    }

    fn paths(rates: &[f64]) -> Vec<PathView> {
        rates.iter().enumerate().map(|(i, r)| view(i as u8, *r, i as f64)).collect()
    }

    /// Paths of any shape, with or without room.
    fn any_path() -> impl Strategy<Value = PathView> {
        let rtts = (1..500u64, 0..3u64);
        (rtts, 1e4..1e8f64, 1..200u64, 0..300u64).prop_map(|((rtt, var), rate, window, held)| {
            let mut view = path(0, rtt, window * 1448);
            view.mss = 1448;
            view.rate = rate;
            view.rttvar = view.srtt * var as u32 / 4;
            view.held = held * 1448;
            view.room = view.window.saturating_sub(view.held);
            view
        })
    }

    proptest! {
        /// Whatever asks, each byte is handed out once, within bound and
        /// frame, and all of them as long as one path takes.
        #[test]
        fn every_byte_is_placed_once(
            kind in prop::sample::select(&SchedulerKind::ALL[..]),
            rates in prop::collection::vec(1e5..1e8f64, 1..6),
            asks in prop::collection::vec(0..6usize, 0..60),
            total in 1..5_000_000u64,
        ) {
            let mut scheduler = of_kind(kind);
            let paths = paths(&rates);
            let mut unsent = RangeSet::new();
            unsent.insert(0..total);
            let mut acked = 0;
            let mut order = asks.into_iter().map(|a| a % rates.len()).chain((0..rates.len()).cycle());
            let mut idle = 0;
            while !unsent.is_empty() {
                let path = order.next().unwrap();
                let under_way = &Acknowledged { written: total, below: acked };
                let asked = request(&paths, path, &unsent);
                let asked = PlacementRequest {
                    bound: total, limit: total, acked, frame: 65536, under_way, ..asked
                };
                match scheduler.place(asked) {
                    Some(range) => {
                        idle = 0;
                        prop_assert!(range.start < range.end && range.end - range.start <= 65536);
                        prop_assert!(unsent.covers(range.clone()), "placed twice: {range:?}");
                        unsent.remove(range);
                    }
                    None => {
                        idle += 1;
                        // The same path may ask as often as there are asks.
                        prop_assert!(idle <= 60 + 2 * rates.len(), "nobody takes the rest");
                        acked = unsent.first().map_or(total, |r| r.start);
                    }
                }
            }
        }

        /// Whatever the paths look like: each byte is handed out once, and
        /// where all that can are asked one of them takes some.
        #[test]
        fn somebody_always_makes_progress(
            kind in prop::sample::select(&SchedulerKind::ALL[..]),
            mut paths in prop::collection::vec(any_path(), 1..5),
            total in 1..3_000_000u64,
            switches in prop::collection::vec((0..5usize, any::<bool>()), 0..8),
        ) {
            for (index, path) in paths.iter_mut().enumerate() {
                path.id = PathId(index as u8);
            }
            let mut f = Fixture::new(Boxed(of_kind(kind)), paths.clone(), total);
            f.frame = 65536;
            let mut switches = switches.into_iter();
            let mut placed = RangeSet::new();
            while !f.unsent.is_empty() {
                let mut moved = false;
                for path in 0..paths.len() {
                    // Everything is acknowledged before the next round.
                    f.acked = f.unsent.first().map_or(total, |r| r.start);
                    f.paths[path].held = 0;
                    f.paths[path].room = f.paths[path].window;
                    if !f.paths[path].usable {
                        continue;
                    }
                    if let Some(range) = f.send(path) {
                        prop_assert!(placed.first_gap(range.clone()) == Some(range.clone()));
                        placed.insert(range);
                        moved = true;
                    }
                }
                prop_assert!(moved, "{}: nobody takes {:?}", kind.name(), f.unsent);
                if let Some((path, up)) = switches.next() {
                    let path = path % paths.len();
                    f.paths[path].usable = up;
                    if !up {
                        f.scheduler.path_failed(PathId(path as u8));
                    }
                    let any = f.paths.iter().any(|p| p.usable);
                    f.paths[0].usable |= !any;
                }
            }
            prop_assert!(placed.covers(0..total));
        }
    }

    /// A boxed scheduler as a scheduler.
    #[derive(Debug)]
    struct Boxed(Box<dyn Scheduler>);

    impl Scheduler for Boxed {
        fn name(&self) -> &'static str {
            self.0.name()
        }

        fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
            self.0.place(request)
        }

        fn direction(&self, path: PathId) -> Direction {
            self.0.direction(path)
        }

        fn path_failed(&mut self, path: PathId) {
            self.0.path_failed(path);
        }
    }
}
