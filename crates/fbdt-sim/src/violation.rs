//! What must never happen.

use std::fmt;

/// A broken invariant (DESIGN: bytes out = bytes in, in order; buffered <=
/// advertised; redundancy <= budget; a session with a live path progresses).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A byte came out that did not go in at that offset.
    WrongByte {
        /// Stream number.
        stream: u32,
        /// Offset of the byte.
        offset: u64,
    },
    /// A stream ended before or after what was written.
    WrongEnd {
        /// Stream number.
        stream: u32,
        /// Bytes delivered.
        delivered: u64,
        /// Bytes written.
        written: u64,
    },
    /// More is held than was advertised.
    Memory {
        /// Bytes held.
        held: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// Copies of overdue bytes cost more than their budget.
    Budget {
        /// Bytes copied.
        copied: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// An honest peer's frames were refused, or the session ended.
    Refused(String),
    /// Nothing moved although a path lives and bytes wait.
    Stuck {
        /// Virtual time without progress, in milliseconds.
        silent_ms: u64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongByte { stream, offset } => {
                write!(f, "stream {stream}: wrong byte at offset {offset}")
            }
            Self::WrongEnd { stream, delivered, written } => {
                write!(f, "stream {stream}: ended at {delivered}, written were {written}")
            }
            Self::Memory { held, allowed } => write!(f, "{held} bytes held, {allowed} allowed"),
            Self::Budget { copied, allowed } => {
                write!(f, "{copied} overdue bytes copied, {allowed} allowed")
            }
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Stuck { silent_ms } => write!(f, "no progress for {silent_ms} ms"),
        }
    }
}

impl std::error::Error for Violation {}
