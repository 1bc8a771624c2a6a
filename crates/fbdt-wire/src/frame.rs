//! Frames, which carry stream offsets (F1).

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;
use fbdt_units::StreamId;

use crate::WireError;
use crate::cursor::Cursor;

/// Type (1 byte) and length of the body (3 bytes).
pub(crate) const HEADER_LEN: usize = 4;
/// Header, stream and offset of a data frame.
pub const DATA_OVERHEAD: usize = HEADER_LEN + 4 + 8;
/// Ranges that one acknowledgement can carry; the lowest are sent.
pub const MAX_ACK_RANGES: usize = 64;
/// Longest reason of a close frame, in bytes.
const MAX_REASON: usize = 256;

pub(crate) mod kind {
    pub(crate) const DATA: u8 = 1;
    pub(crate) const DATA_FIN: u8 = 2;
    pub(crate) const ACK: u8 = 3;
    pub(crate) const SESSION_LIMIT: u8 = 4;
    pub(crate) const PING: u8 = 5;
    pub(crate) const PONG: u8 = 6;
    pub(crate) const CLOSE: u8 = 7;
    pub(crate) const WANT: u8 = 8;
    pub(crate) const MESSAGE: u8 = 9;
    pub(crate) const GAP: u8 = 10;
}

/// One unit on a subflow. Every frame can arrive on any path, in any order
/// with those of other paths, and twice (F1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Bytes of a stream (F1).
    Data {
        /// The stream.
        stream: StreamId,
        /// Offset of the first byte in the stream.
        offset: u64,
        /// Whether the stream ends behind these bytes.
        fin: bool,
        /// The bytes.
        payload: Bytes,
    },
    /// What has been received of a stream (F8).
    Ack(AckFrame),
    /// Highest sum of all streams' highest offsets that the peer may reach.
    SessionLimit {
        /// The new limit, in bytes.
        limit: u64,
    },
    /// Asks for a [`Frame::Pong`] on the same subflow.
    Ping {
        /// Returned in the answer.
        token: u64,
    },
    /// Answers a [`Frame::Ping`].
    Pong {
        /// From the ping.
        token: u64,
        /// When the ping arrived, by the answering end's clock, in
        /// nanoseconds. Differences between paths need no common epoch.
        received: u64,
    },
    /// The session is over.
    Close {
        /// Why, as a number of [`close_code`](crate::close_code) or the application's.
        code: u32,
        /// Why, in words.
        reason: String,
    },
    /// A message of a stream, whole (F16). From wire version 2 on.
    Message {
        /// The stream.
        stream: StreamId,
        /// Where it lies in the stream's message space.
        offset: u64,
        /// Its bytes.
        payload: Bytes,
    },
    /// Nothing will come in this range of the stream's message space (F16). From wire version 2
    /// on.
    Gap {
        /// The stream.
        stream: StreamId,
        /// Its first offset.
        start: u64,
        /// The offset behind it.
        end: u64,
    },
    /// The sender could use a receive window of this size for the stream.
    Want {
        /// The stream.
        stream: StreamId,
        /// Window, in bytes.
        window: u64,
    },
}

/// What has been received of one stream, and how far it may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckFrame {
    /// The stream.
    pub stream: StreamId,
    /// Everything below this was received. The end of a stream counts as one
    /// more byte; `u64::MAX` says that the stream is over.
    pub cumulative: u64,
    /// Offset up to which the stream may be sent.
    pub limit: u64,
    /// Received above that, lowest first.
    pub ranges: Vec<Range<u64>>,
}

/// Appends the header of a data frame whose payload of `len` bytes follows.
pub fn encode_data_header(out: &mut Vec<u8>, stream: StreamId, offset: u64, fin: bool, len: u32) {
    let kind = if fin { kind::DATA_FIN } else { kind::DATA };
    put_header(out, kind, 12 + len);
    out.extend_from_slice(&stream.0.to_be_bytes());
    out.extend_from_slice(&offset.to_be_bytes());
}

/// Appends the header of a message whose payload of `len` bytes follows.
pub fn encode_message_header(out: &mut Vec<u8>, stream: StreamId, offset: u64, len: u32) {
    put_header(out, kind::MESSAGE, 12 + len);
    out.extend_from_slice(&stream.0.to_be_bytes());
    out.extend_from_slice(&offset.to_be_bytes());
}

pub(crate) fn put_header(out: &mut Vec<u8>, kind: u8, length: u32) {
    out.extend_from_slice(&((u32::from(kind) << 24) | (length & 0x00ff_ffff)).to_be_bytes());
}

impl Frame {
    /// The frame's type where it belongs to version 2 of the wire format.
    #[must_use]
    pub const fn second_version(&self) -> Option<u8> {
        match self {
            Self::Message { .. } => Some(kind::MESSAGE),
            Self::Gap { .. } => Some(kind::GAP),
            _ => None,
        }
    }

    /// Appends the frame's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data { stream, offset, fin, payload } => {
                encode_data_header(out, *stream, *offset, *fin, payload.len() as u32);
                out.extend_from_slice(payload);
            }
            Self::Ack(ack) => ack.encode(out),
            Self::SessionLimit { limit } => put_u64(out, kind::SESSION_LIMIT, *limit),
            Self::Ping { token } => put_u64(out, kind::PING, *token),
            Self::Pong { token, received } => {
                put_header(out, kind::PONG, 16);
                out.extend_from_slice(&token.to_be_bytes());
                out.extend_from_slice(&received.to_be_bytes());
            }
            Self::Close { code, reason } => {
                let mut end = reason.len().min(MAX_REASON);
                while !reason.is_char_boundary(end) {
                    end -= 1;
                }
                put_header(out, kind::CLOSE, 4 + end as u32);
                out.extend_from_slice(&code.to_be_bytes());
                out.extend_from_slice(&reason.as_bytes()[..end]);
            }
            Self::Message { stream, offset, payload } => {
                encode_message_header(out, *stream, *offset, payload.len() as u32);
                out.extend_from_slice(payload);
            }
            Self::Gap { stream, start, end } => {
                put_header(out, kind::GAP, 20);
                out.extend_from_slice(&stream.0.to_be_bytes());
                out.extend_from_slice(&start.to_be_bytes());
                out.extend_from_slice(&end.to_be_bytes());
            }
            Self::Want { stream, window } => {
                put_header(out, kind::WANT, 12);
                out.extend_from_slice(&stream.0.to_be_bytes());
                out.extend_from_slice(&window.to_be_bytes());
            }
        }
    }

    /// Reads the body of a frame that is not data.
    pub(crate) fn decode_body(kind: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new(kind, body);
        let frame = match kind {
            kind::ACK => Self::Ack(AckFrame::decode(&mut cursor)?),
            kind::SESSION_LIMIT => Self::SessionLimit { limit: cursor.u64()? },
            kind::PING => Self::Ping { token: cursor.u64()? },
            kind::PONG => Self::Pong { token: cursor.u64()?, received: cursor.u64()? },
            kind::CLOSE => {
                let code = cursor.u32()?;
                let reason = core::str::from_utf8(cursor.rest())
                    .map_err(|_| cursor.field_error("reason"))?;
                Self::Close { code, reason: reason.into() }
            }
            kind::GAP => {
                let stream = StreamId(cursor.u32()?);
                let (start, end) = (cursor.u64()?, cursor.u64()?);
                if start >= end {
                    return Err(cursor.field_error("gap"));
                }
                Self::Gap { stream, start, end }
            }
            kind::WANT => Self::Want { stream: StreamId(cursor.u32()?), window: cursor.u64()? },
            other => return Err(WireError::Type(other)),
        };
        cursor.finish()?;
        Ok(frame)
    }

    /// Whether a header of this type may announce a body of this length.
    pub(crate) fn check_length(kind: u8, length: u32, max_data: u32) -> Result<(), WireError> {
        let ok = match kind {
            kind::DATA => (13..=12 + max_data).contains(&length),
            kind::DATA_FIN | kind::MESSAGE => (12..=12 + max_data).contains(&length),
            kind::ACK => {
                (20..=20 + 16 * MAX_ACK_RANGES as u32).contains(&length)
                    && (length - 20).is_multiple_of(16)
            }
            kind::SESSION_LIMIT | kind::PING => length == 8,
            kind::PONG => length == 16,
            kind::CLOSE => (4..=4 + MAX_REASON as u32).contains(&length),
            kind::WANT => length == 12,
            kind::GAP => length == 20,
            other => return Err(WireError::Type(other)),
        };
        if ok { Ok(()) } else { Err(WireError::Length { kind, length }) }
    }
}

fn put_u64(out: &mut Vec<u8>, kind: u8, value: u64) {
    put_header(out, kind, 8);
    out.extend_from_slice(&value.to_be_bytes());
}

impl AckFrame {
    fn encode(&self, out: &mut Vec<u8>) {
        let ranges = &self.ranges[..self.ranges.len().min(MAX_ACK_RANGES)];
        put_header(out, kind::ACK, 20 + 16 * ranges.len() as u32);
        out.extend_from_slice(&self.stream.0.to_be_bytes());
        out.extend_from_slice(&self.cumulative.to_be_bytes());
        out.extend_from_slice(&self.limit.to_be_bytes());
        for range in ranges {
            out.extend_from_slice(&range.start.to_be_bytes());
            out.extend_from_slice(&range.end.to_be_bytes());
        }
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, WireError> {
        let stream = StreamId(cursor.u32()?);
        let cumulative = cursor.u64()?;
        let limit = cursor.u64()?;
        let mut ranges = Vec::with_capacity(cursor.remaining() / 16);
        let mut floor = cumulative;
        while cursor.remaining() > 0 {
            let (start, end) = (cursor.u64()?, cursor.u64()?);
            if start < floor || end <= start {
                return Err(cursor.field_error("ranges"));
            }
            floor = end;
            ranges.push(start..end);
        }
        Ok(Self { stream, cumulative, limit, ranges })
    }
}
