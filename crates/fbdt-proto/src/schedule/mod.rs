//! Which bytes a path sends next.
//!
//! Rule: F3b.
//!
//! A scheduler answers with a byte range, not only with a path. It sees the
//! paths as immutable [`PathView`]s, and of one stream which bytes are unsent and which are under way.

mod just_in_time;
pub(crate) mod redundancy;
mod standby;
#[cfg(any(test, feature = "testing"))]
#[allow(unreachable_pub)] // the feature exports it
pub(crate) mod testing;

pub use just_in_time::JustInTime;
pub(crate) use standby::in_service;

use core::fmt::Debug;
use core::ops::Range;

use fbdt_units::{Direction, Instant, PathId, RangeSet, StreamId, SubflowId};

use crate::path::PathView;

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
    #[must_use]
    pub fn own(&self) -> Option<&PathView> {
        self.paths.get(self.path)
    }

    /// The lowest unsent bytes, a frame of them.
    #[must_use]
    pub fn front(&self) -> Option<Range<u64>> {
        self.beyond(0)
    }

    /// The lowest unsent bytes beyond the first `spared` of them, a frame of them.
    #[must_use]
    pub fn beyond(&self, spared: u64) -> Option<Range<u64>> {
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
