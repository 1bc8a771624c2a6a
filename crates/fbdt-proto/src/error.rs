//! What can go wrong, one type per operation.

use alloc::string::String;

use fbdt_units::{StreamId, SubflowId};
use fbdt_wire::{WireError, close_code};

/// The peer broke a rule; the session closes with this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// Bytes that are no frame.
    #[error("malformed frame: {0}")]
    Wire(#[from] WireError),
    /// Data beyond the limit that was advertised for the stream.
    #[error("stream {stream}: data up to offset {end}, but the advertised limit is {limit}")]
    StreamLimit {
        /// The stream.
        stream: StreamId,
        /// End of the offending data.
        end: u64,
        /// What was advertised.
        limit: u64,
    },
    /// Data beyond the limit that was advertised for the session.
    #[error("streams hold {used} bytes together, but the advertised limit is {limit}")]
    SessionLimit {
        /// Sum of the highest offsets of all streams.
        used: u64,
        /// What was advertised.
        limit: u64,
    },
    /// A stream number that the peer may not open, or not yet.
    #[error("stream {0} may not be opened by the peer now")]
    StreamNumber(StreamId),
    /// Data beyond a stream's end, or a second, different end.
    #[error("stream {stream}: end at {end} contradicts {known}")]
    FinalSize {
        /// The stream.
        stream: StreamId,
        /// The end that was just claimed.
        end: u64,
        /// What is known already.
        known: u64,
    },
    /// An acknowledgement of bytes that were never sent.
    #[error("stream {stream}: offset {offset} acknowledged, but only {sent} bytes were sent")]
    Acknowledgement {
        /// The stream.
        stream: StreamId,
        /// What was acknowledged.
        offset: u64,
        /// What was sent.
        sent: u64,
    },
    /// More pieces out of order than anybody honest sends.
    #[error("stream {stream}: {count} separate pieces out of order")]
    Fragments {
        /// The stream.
        stream: StreamId,
        /// Pieces held.
        count: usize,
    },
    /// More holes over all streams together than anybody honest leaves.
    #[error(
        "what arrived out of order on all streams costs {cost} bytes beside its contents, but at most {limit} are spent on that"
    )]
    Holes {
        /// What pieces and ranges cost.
        cost: u64,
        /// What they may.
        limit: u64,
    },
    /// A message, or a gap, that lies across others or nowhere.
    #[error("stream {}: a message at offset {offset} that cannot be", stream.stream())]
    Message {
        /// The stream's message space.
        stream: StreamId,
        /// Where it should lie.
        offset: u64,
    },
    /// A control message that makes no sense here.
    #[error("control message refused: {0}")]
    Control(&'static str),
    /// A frame from a subflow that this session does not have.
    #[error("subflow {0:?} is not part of this session")]
    UnknownSubflow(SubflowId),
}

impl SessionError {
    /// The close code that tells the peer.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Wire(_) => close_code::WIRE,
            Self::StreamLimit { .. } | Self::SessionLimit { .. } => close_code::FLOW_CONTROL,
            Self::StreamNumber(_) => close_code::STREAM_NUMBER,
            Self::FinalSize { .. } => close_code::FINAL_SIZE,
            Self::Acknowledgement { .. } => close_code::ACKNOWLEDGEMENT,
            Self::Fragments { .. } | Self::Holes { .. } => close_code::FRAGMENTS,
            Self::Message { .. } => close_code::MESSAGE,
            Self::Control(_) => close_code::CONTROL,
            Self::UnknownSubflow(_) => close_code::INTERNAL,
        }
    }
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// This end closed it.
    #[error("closed here with code {code}: {reason}")]
    Local {
        /// The close code.
        code: u32,
        /// Words for people.
        reason: String,
    },
    /// The peer closed it.
    #[error("closed by the peer with code {code}: {reason}")]
    Peer {
        /// The close code.
        code: u32,
        /// Words for people.
        reason: String,
    },
    /// The peer broke a rule.
    #[error("closed because the peer broke the protocol: {0}")]
    Protocol(SessionError),
    /// All paths were down for longer than the linger time.
    #[error("all paths were down for {0:?}")]
    Linger(core::time::Duration),
}

/// A stream could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The session is over.
    #[error("the session is closed")]
    Closed,
    /// The peer allows no more streams now, after so many: wait for
    /// [`Event::StreamsAvailable`](crate::Event::StreamsAvailable).
    #[error(
        "as many streams are open as the peer allows, the last is number {0}; wait until one ends"
    )]
    Limit(u64),
}

/// A message could not be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The peer speaks a version of the wire format that has none.
    #[error("the other end knows no messages (wire version 1); update it, or use a stream")]
    Unavailable,
    /// It is longer than the peer takes.
    #[error("a message of {size} bytes is longer than the {limit} that the other end takes")]
    TooLong {
        /// Its size.
        size: usize,
        /// The longest that the peer takes.
        limit: u32,
    },
    /// Too much waits already: wait for the event.
    #[error("not now: wait for the stream's event")]
    Blocked,
    /// The stream is over.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// A stream could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// Nothing to read, or no room to write: wait for the event.
    #[error("not now: wait for the stream's event")]
    Blocked,
    /// There is no such stream.
    #[error("stream {0} does not exist")]
    Unknown(StreamId),
    /// The peer gave the stream up.
    #[error("stream {stream} was reset by the peer with code {code}")]
    Reset {
        /// The stream.
        stream: StreamId,
        /// The peer's code.
        code: u32,
    },
    /// The peer does not want to read the stream any more.
    #[error("the peer stopped reading stream {stream} with code {code}")]
    Stopped {
        /// The stream.
        stream: StreamId,
        /// The peer's code.
        code: u32,
    },
    /// The writing side was finished or reset here.
    #[error("stream {0} is finished")]
    Finished(StreamId),
    /// The session is over.
    #[error("the session is closed: {0}")]
    Closed(CloseReason),
}
