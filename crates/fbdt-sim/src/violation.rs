//! What must never happen.

use fbdt_proto::{StreamError, StreamId};

/// A broken invariant (DESIGN: bytes out = bytes in, in order; buffered <=
/// advertised; redundancy <= budget; a session with a live path progresses).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A byte came out that did not go in at that offset.
    #[error("stream {stream}: wrong byte at offset {offset}")]
    WrongByte {
        /// Stream number.
        stream: u32,
        /// Offset of the byte.
        offset: u64,
    },
    /// A stream ended before or after what was written.
    #[error("stream {stream}: ended at {delivered}, written were {written}")]
    WrongEnd {
        /// Stream number.
        stream: u32,
        /// Bytes delivered.
        delivered: u64,
        /// Bytes written.
        written: u64,
    },
    /// A reader or writer was refused although nobody gave the stream up.
    #[error("stream {stream}: {error}, but nobody gave it up")]
    StreamRefused {
        /// Stream number.
        stream: u32,
        /// What the session said.
        error: String,
    },
    /// A message arrived twice, was never sent, or is not what was sent.
    #[error("message {number} of stream {stream}: {what}")]
    Message {
        /// Its stream.
        stream: u32,
        /// Its number.
        number: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Copies by choice cost more than their class's budget.
    #[error("{copied} bytes of class {class} copied by choice, {allowed} allowed")]
    ClassBudget {
        /// The class's name.
        class: &'static str,
        /// Bytes copied.
        copied: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// More is held than was advertised.
    #[error("{held} bytes held, {allowed} allowed")]
    Memory {
        /// Bytes held.
        held: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// The running account of memory is not what the streams hold.
    #[error("{noted} bytes of memory noted, {counted} counted")]
    Account {
        /// Bytes by the running account.
        noted: u64,
        /// Bytes counted over all streams.
        counted: u64,
    },
    /// An honest peer's frames were refused, or the session ended.
    #[error("refused: {0}")]
    Refused(String),
    /// Nothing moved although a path lives and bytes wait.
    #[error("no progress for {silent_ms} ms")]
    Stuck {
        /// Virtual time without progress, in milliseconds.
        silent_ms: u64,
    },
    /// Not everything arrived after the faults were over.
    #[error("{waited_ms} ms after the last fault something is still missing: {missing}")]
    Missing {
        /// Virtual time since the last fault, in milliseconds.
        waited_ms: u64,
        /// What is missing.
        missing: String,
    },
    /// Far more happened than the time that passed explains.
    #[error("{steps} events in {elapsed_ms} ms, or one subflow that never has enough")]
    Livelock {
        /// Events so far.
        steps: u64,
        /// Virtual time so far, in milliseconds.
        elapsed_ms: u64,
    },
    /// The protocol panicked.
    #[error("panic: {0}")]
    Panic(String),
    /// Streams that everybody has done with are still held.
    #[error("the {end} still holds {streams} streams that are over")]
    Leak {
        /// Which end.
        end: &'static str,
        /// Streams held.
        streams: usize,
    },
}

impl Violation {
    /// Bytes that are known to be wrong, doubled or missing; what is missing
    /// without a count is one at least.
    #[must_use]
    pub const fn bytes_lost(&self) -> u64 {
        match self {
            Self::WrongByte { .. } | Self::Missing { .. } | Self::Message { .. } => 1,
            Self::WrongEnd { delivered, written, .. } => written.abs_diff(*delivered),
            _ => 0,
        }
    }

    pub(crate) fn refused(id: StreamId, error: &StreamError) -> Self {
        Self::StreamRefused { stream: id.0, error: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_counted_and_what_is_late_is_not() {
        let short = Violation::WrongEnd { stream: 1, delivered: 60, written: 100 };
        let long = Violation::WrongEnd { stream: 1, delivered: 100, written: 60 };
        assert_eq!([short.bytes_lost(), long.bytes_lost()], [40, 40]);
        assert_eq!(Violation::WrongByte { stream: 1, offset: 9 }.bytes_lost(), 1);
        let missing = Violation::Missing { waited_ms: 1, missing: "a stream".to_owned() };
        assert_eq!(missing.bytes_lost(), 1);
        assert_eq!(Violation::Stuck { silent_ms: 10_000 }.bytes_lost(), 0);
        assert_eq!(Violation::Memory { held: 2, allowed: 1 }.bytes_lost(), 0);
    }
}
