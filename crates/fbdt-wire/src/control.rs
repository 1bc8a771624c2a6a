//! Messages between the two sessions, on stream 0.
//!
//! They are stream bytes like any other and so survive the loss of paths.

use alloc::vec::Vec;

use fbdt_units::{Class, PathId, StreamId};

use crate::WireError;
use crate::cursor::Cursor;

mod kind {
    pub(crate) const OPEN: u8 = 1;
    pub(crate) const RESET: u8 = 2;
    pub(crate) const STOP: u8 = 3;
    pub(crate) const MAX_STREAMS: u8 = 4;
    pub(crate) const REDIAL: u8 = 5;
    pub(crate) const REDIAL_CANCEL: u8 = 6;
}

/// One message on the control stream: type, length of the body, body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlMessage {
    /// A stream of this class was opened.
    Open {
        /// The stream.
        stream: StreamId,
        /// Its traffic class.
        class: Class,
    },
    /// The sender gives up sending on the stream.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The application's code.
        code: u32,
        /// Highest offset sent, for the accounting of limits.
        end: u64,
    },
    /// The receiver does not want the stream.
    Stop {
        /// The stream.
        stream: StreamId,
        /// The application's code.
        code: u32,
    },
    /// The peer may open streams with an index below `count`.
    MaxStreams {
        /// The new limit.
        count: u64,
    },
    /// Server to client: dial this path now, beside what it has (F9b).
    Redial {
        /// The path.
        path: PathId,
    },
    /// Server to client: the path lives again.
    RedialCancel {
        /// The path.
        path: PathId,
    },
}

impl ControlMessage {
    /// Appends the message's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0, 0]);
        match self {
            Self::Open { stream, class } => {
                out.extend_from_slice(&stream.0.to_be_bytes());
                out.push(class.to_wire());
                out[start] = kind::OPEN;
            }
            Self::Reset { stream, code, end } => {
                out.extend_from_slice(&stream.0.to_be_bytes());
                out.extend_from_slice(&code.to_be_bytes());
                out.extend_from_slice(&end.to_be_bytes());
                out[start] = kind::RESET;
            }
            Self::Stop { stream, code } => {
                out.extend_from_slice(&stream.0.to_be_bytes());
                out.extend_from_slice(&code.to_be_bytes());
                out[start] = kind::STOP;
            }
            Self::MaxStreams { count } => {
                out.extend_from_slice(&count.to_be_bytes());
                out[start] = kind::MAX_STREAMS;
            }
            Self::Redial { path } => {
                out.push(path.0);
                out[start] = kind::REDIAL;
            }
            Self::RedialCancel { path } => {
                out.push(path.0);
                out[start] = kind::REDIAL_CANCEL;
            }
        }
        out[start + 1] = u8::try_from(out.len() - start - 2).unwrap_or(u8::MAX);
    }

    /// Reads the message at the start of `bytes`, with the bytes that it
    /// took; `None` if more are needed.
    ///
    /// # Errors
    /// What is not a control message.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, WireError> {
        let Some((&[kind, length], rest)) = bytes.split_first_chunk::<2>() else {
            return Ok(None);
        };
        let length = usize::from(length);
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let mut cursor = Cursor::new(kind, body);
        let message = match kind {
            kind::OPEN => Self::Open {
                stream: StreamId(cursor.u32()?),
                class: Class::from_wire(cursor.u8()?).ok_or(cursor.field_error("class"))?,
            },
            kind::RESET => Self::Reset {
                stream: StreamId(cursor.u32()?),
                code: cursor.u32()?,
                end: cursor.u64()?,
            },
            kind::STOP => Self::Stop { stream: StreamId(cursor.u32()?), code: cursor.u32()? },
            kind::MAX_STREAMS => Self::MaxStreams { count: cursor.u64()? },
            kind::REDIAL => Self::Redial { path: PathId(cursor.u8()?) },
            kind::REDIAL_CANCEL => Self::RedialCancel { path: PathId(cursor.u8()?) },
            other => return Err(WireError::Type(other)),
        };
        cursor.finish()?;
        Ok(Some((message, 2 + length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message() -> impl Strategy<Value = ControlMessage> {
        let stream = any::<u32>().prop_map(StreamId);
        prop_oneof![
            (stream.clone(), prop::sample::select(&Class::ALL[..]))
                .prop_map(|(stream, class)| ControlMessage::Open { stream, class }),
            (stream.clone(), any::<u32>(), any::<u64>())
                .prop_map(|(stream, code, end)| ControlMessage::Reset { stream, code, end }),
            (stream, any::<u32>()).prop_map(|(stream, code)| ControlMessage::Stop { stream, code }),
            any::<u64>().prop_map(|count| ControlMessage::MaxStreams { count }),
            any::<u8>().prop_map(|p| ControlMessage::Redial { path: PathId(p) }),
            any::<u8>().prop_map(|p| ControlMessage::RedialCancel { path: PathId(p) }),
        ]
    }

    proptest! {
        #[test]
        fn round_trip(message in message()) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            for cut in 0..bytes.len() {
                prop_assert_eq!(ControlMessage::decode(&bytes[..cut]), Ok(None));
            }
            prop_assert_eq!(ControlMessage::decode(&bytes), Ok(Some((message, bytes.len()))));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = ControlMessage::decode(&bytes);
        }
    }
}
