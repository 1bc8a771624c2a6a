//! What travels on a subflow: frames, and the handshake before them.
//!
//! `docs/wire.md` is the normative description.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod close_code;
mod control;
mod cursor;
mod decoder;
mod frame;
pub mod handshake;
mod label;
mod limits;
mod outgoing;
pub mod plain_text;
mod policy;

pub use control::ControlMessage;
pub use decoder::FrameDecoder;
pub use frame::{
    AckFrame, DATA_OVERHEAD, Frame, MAX_ACK_RANGES, encode_data_header, encode_message_header,
};
pub use label::PathLabel;
pub use limits::{ConfigError, Limits};
pub use outgoing::Outgoing;
pub use policy::{PathPolicy, RateCap, Weight};

/// The first version of the wire format; every end speaks it (`docs/wire.md`, section 6).
pub const VERSION: u16 = 1;
/// The version that added messages (F16); no other is spoken beside these two.
pub const MESSAGE_VERSION: u16 = 2;

/// Bytes that are no frame, handshake or control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// An unknown frame or message type.
    #[error("unknown type {0}")]
    Type(u8),
    /// A length that this type can't have.
    #[error("type {kind} with a length of {length} bytes")]
    Length {
        /// The frame or message type.
        kind: u8,
        /// The length in its header.
        length: u32,
    },
    /// A field holds what it must not.
    #[error("type {kind}: bad {field}")]
    Field {
        /// The frame or message type.
        kind: u8,
        /// The field.
        field: &'static str,
    },
    /// A Hello of another version of the wire format.
    #[error("wire version {0}, this end speaks versions {VERSION} and {MESSAGE_VERSION}")]
    Version(u16),
}
