//! What a session tells its driver.

use fbdt_units::{PathId, StreamId, SubflowId};

use crate::error::CloseReason;
use crate::path::Health;

/// Something happened that the driver or the application acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer opened a stream.
    StreamOpened(StreamId),
    /// The peer allows more streams than before.
    StreamsAvailable,
    /// The stream has bytes, its end, or an error to read.
    Readable(StreamId),
    /// The stream has room, or an error, for a writer that was blocked, or was delivered as somebody
    /// asked ([`Session::delivered`](crate::Session::delivered)).
    Writable(StreamId),
    /// The stream has a message to read.
    MessageReadable(StreamId),
    /// The stream has room for a sender of messages that was blocked.
    MessageWritable(StreamId),
    /// The peer gave up sending on the stream.
    StreamReset {
        /// The stream.
        stream: StreamId,
        /// The peer's code.
        code: u32,
    },
    /// The peer does not want the stream any more.
    StreamStopped {
        /// The stream.
        stream: StreamId,
        /// The peer's code.
        code: u32,
    },
    /// Dial this path now, beside the subflow that it has (F9b). Client only.
    Redial {
        /// The path.
        path: PathId,
    },
    /// The old subflow lives: stop dialling beside it. Client only.
    RedialCancelled {
        /// The path.
        path: PathId,
    },
    /// This subflow was replaced: reset its socket, so that what is stuck in
    /// it is never sent.
    SubflowRetired(SubflowId),
    /// A path's health changed.
    PathHealth {
        /// The path.
        path: PathId,
        /// What it is now.
        health: Health,
    },
    /// A path's measured loss suggests this congestion control (F14).
    CongestionControl {
        /// The subflow to set it on.
        subflow: SubflowId,
        /// Name of the algorithm.
        algorithm: &'static str,
    },
    /// The session is over; no event follows.
    Closed(CloseReason),
}
