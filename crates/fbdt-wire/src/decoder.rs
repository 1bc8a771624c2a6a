//! Frames out of a subflow's byte stream.

use alloc::vec::Vec;

use bytes::buf::Limit;
use bytes::{BufMut, Bytes};
use fbdt_units::StreamId;

use crate::WireError;
use crate::frame::{DATA_OVERHEAD, Frame, HEADER_LEN, kind};

/// Cuts one subflow's bytes into frames. Holds at most one frame.
///
/// A data frame's payload gets memory of its own, exactly as large as it is,
/// so that what is held out of order costs what it says.
#[derive(Debug)]
pub struct FrameDecoder {
    max_data: u32,
    header: [u8; DATA_OVERHEAD],
    filled: usize,
    body: Vec<u8>,
}

impl FrameDecoder {
    /// A decoder that accepts data frames of up to `max_data` payload bytes.
    #[must_use]
    pub const fn new(max_data: u32) -> Self {
        Self { max_data, header: [0; DATA_OVERHEAD], filled: 0, body: Vec::new() }
    }

    /// Takes bytes off `input` until a frame is complete or none are left.
    ///
    /// # Errors
    /// What is not a frame; the subflow can't be read any further.
    pub fn push(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, WireError> {
        if self.filled < HEADER_LEN && !self.fill_header(input, HEADER_LEN) {
            return Ok(None);
        }
        let [kind, a, b, c, ..] = self.header;
        let length = u32::from_be_bytes([0, a, b, c]);
        if self.filled == HEADER_LEN && self.body.capacity() == 0 {
            Frame::check_length(kind, length, self.max_data)?;
        }
        let head = if is_data(kind) { DATA_OVERHEAD } else { HEADER_LEN };
        if self.filled < head && !self.fill_header(input, head) {
            return Ok(None);
        }
        let size = HEADER_LEN + length as usize - head;
        if self.body.capacity() == 0 && size > 0 {
            self.body.reserve_exact(size);
        }
        let count = (size - self.body.len()).min(input.len());
        let (now, rest) = input.split_at(count);
        self.body.extend_from_slice(now);
        *input = rest;
        if self.body.len() < size {
            return Ok(None);
        }
        self.filled = 0;
        let body = core::mem::take(&mut self.body);
        self.finish(kind, body).map(Some)
    }

    /// Room for the bytes that a data frame still lacks, if that are `least` or more: what is read
    /// into it needs no copy. The frame is complete, and given by [`Self::push`] without input,
    /// once the room is full.
    pub fn room(&mut self, least: usize) -> Option<Limit<&mut Vec<u8>>> {
        let [kind, a, b, c, ..] = self.header;
        if self.filled < DATA_OVERHEAD || !is_data(kind) {
            return None;
        }
        let size = HEADER_LEN + u32::from_be_bytes([0, a, b, c]) as usize - DATA_OVERHEAD;
        let missing = size - self.body.len();
        (missing >= least.max(1)).then(|| (&mut self.body).limit(missing))
    }

    fn fill_header(&mut self, input: &mut &[u8], wanted: usize) -> bool {
        let count = (wanted - self.filled).min(input.len());
        let (now, rest) = input.split_at(count);
        self.header[self.filled..self.filled + count].copy_from_slice(now);
        self.filled += count;
        *input = rest;
        self.filled == wanted
    }

    fn finish(&self, kind: u8, body: Vec<u8>) -> Result<Frame, WireError> {
        if !is_data(kind) {
            return Frame::decode_body(kind, &body);
        }
        let [_, _, _, _, s0, s1, s2, s3, o0, o1, o2, o3, o4, o5, o6, o7] = self.header;
        let offset = u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        // The end of the stream counts as one more byte, and u64::MAX means
        // 'all of it' in acknowledgements.
        if offset.checked_add(body.len() as u64 + 2).is_none() {
            return Err(WireError::Field { kind, field: "offset" });
        }
        let stream = StreamId(u32::from_be_bytes([s0, s1, s2, s3]));
        let payload = Bytes::from(body);
        if kind == kind::MESSAGE {
            return Ok(Frame::Message { stream, offset, payload });
        }
        Ok(Frame::Data { stream, offset, fin: kind == kind::DATA_FIN, payload })
    }
}

const fn is_data(kind: u8) -> bool {
    matches!(kind, kind::DATA | kind::DATA_FIN | kind::MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckFrame;
    use alloc::string::String;
    use proptest::prelude::*;

    pub(crate) fn frame() -> impl Strategy<Value = Frame> {
        let payload = prop::collection::vec(any::<u8>(), 0..300);
        prop_oneof![
            (any::<u32>(), 0..u64::MAX - 400, any::<bool>(), payload).prop_map(
                |(stream, offset, fin, mut payload)| {
                    if !fin && payload.is_empty() {
                        payload.push(1);
                    }
                    Frame::Data { stream: StreamId(stream), offset, fin, payload: payload.into() }
                }
            ),
            (
                any::<u32>(),
                0..1u64 << 40,
                any::<u64>(),
                prop::collection::vec((1..99u64, 1..99u64), 0..64)
            )
                .prop_map(|(stream, cumulative, limit, gaps)| {
                    let mut at = cumulative;
                    let ranges = gaps
                        .into_iter()
                        .map(|(gap, len)| {
                            let start = at + gap;
                            at = start + len;
                            start..at
                        })
                        .collect();
                    Frame::Ack(AckFrame { stream: StreamId(stream), cumulative, limit, ranges })
                }),
            any::<u64>().prop_map(|limit| Frame::SessionLimit { limit }),
            any::<u64>().prop_map(|token| Frame::Ping { token }),
            any::<(u64, u64)>().prop_map(|(token, received)| Frame::Pong { token, received }),
            (any::<u32>(), "[a-zä]{0,40}").prop_map(|(code, reason)| Frame::Close { code, reason }),
            (any::<u32>(), 0..u64::MAX - 400, prop::collection::vec(any::<u8>(), 0..300)).prop_map(
                |(stream, offset, payload)| Frame::Message {
                    stream: StreamId(stream),
                    offset,
                    payload: payload.into()
                }
            ),
            (any::<u32>(), 0..1u64 << 40, 1..1u64 << 40).prop_map(|(stream, start, size)| {
                Frame::Gap { stream: StreamId(stream), start, end: start + size }
            }),
            (any::<u32>(), any::<u64>())
                .prop_map(|(s, window)| Frame::Want { stream: StreamId(s), window }),
        ]
    }

    fn decode(mut bytes: &[u8], pieces: &[usize]) -> Result<Vec<Frame>, WireError> {
        let mut decoder = FrameDecoder::new(65536);
        let mut out = Vec::new();
        let mut sizes = pieces.iter().copied().cycle();
        while !bytes.is_empty() {
            let (mut piece, rest) = bytes.split_at(sizes.next().unwrap_or(7).clamp(1, bytes.len()));
            bytes = rest;
            loop {
                match decoder.push(&mut piece)? {
                    Some(frame) => out.push(frame),
                    None if piece.is_empty() => break,
                    None => {}
                }
            }
        }
        Ok(out)
    }

    proptest! {
        /// Any frames come out as they went in, however the bytes are cut.
        #[test]
        fn round_trip(frames in prop::collection::vec(frame(), 1..12), pieces in prop::collection::vec(1..200usize, 1..9)) {
            let mut bytes = Vec::new();
            for frame in &frames {
                frame.encode(&mut bytes);
            }
            prop_assert_eq!(decode(&bytes, &pieces), Ok(frames));
        }

        /// So they do where the bytes of payloads are read to where they stay.
        #[test]
        fn round_trip_without_copies(
            frames in prop::collection::vec(frame(), 1..12),
            pieces in prop::collection::vec(1..200usize, 1..9),
            least in 0..64usize,
        ) {
            let mut bytes = Vec::new();
            for frame in &frames {
                frame.encode(&mut bytes);
            }
            let (mut decoder, mut out, mut rest) = (FrameDecoder::new(65536), Vec::new(), &bytes[..]);
            for size in pieces.iter().cycle() {
                let mut piece: &[u8] = &[];
                if let Some(mut room) = decoder.room(least) {
                    let count = room.remaining_mut().min(rest.len()).min(*size);
                    room.put_slice(&rest[..count]);
                    rest = &rest[count..];
                } else {
                    (piece, rest) = rest.split_at(rest.len().min(*size));
                }
                while let Some(frame) = decoder.push(&mut piece).unwrap() {
                    out.push(frame);
                }
                prop_assert!(piece.is_empty());
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(out, frames);
        }

        /// Any bytes decode or are refused; nothing panics.
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = decode(&bytes, &[13]);
        }
    }

    #[test]
    fn refuses_what_no_frame_looks_like() {
        let mut bytes = Vec::new();
        Frame::Ping { token: 1 }.encode(&mut bytes);
        bytes[0] = 99;
        assert_eq!(decode(&bytes, &[4]), Err(WireError::Type(99)));
        bytes[0] = kind::PING;
        bytes[3] = 9;
        assert_eq!(decode(&bytes, &[4]), Err(WireError::Length { kind: kind::PING, length: 9 }));
        let huge = [kind::DATA, 0xff, 0xff, 0xff];
        assert!(matches!(decode(&huge, &[4]), Err(WireError::Length { .. })));
    }

    #[test]
    fn refuses_overlapping_acknowledged_ranges() {
        let mut bytes = Vec::new();
        let ranges = alloc::vec![10..20, 15..30];
        Frame::Ack(AckFrame { stream: StreamId(1), cumulative: 5, limit: 50, ranges })
            .encode(&mut bytes);
        assert_eq!(
            decode(&bytes, &[999]),
            Err(WireError::Field { kind: kind::ACK, field: "ranges" })
        );
    }

    #[test]
    fn a_long_reason_is_cut_at_a_character() {
        let reason: String = core::iter::repeat_n('ä', 400).collect();
        let mut bytes = Vec::new();
        Frame::Close { code: 3, reason }.encode(&mut bytes);
        let frames = decode(&bytes, &[999]).unwrap();
        let Frame::Close { reason, .. } = &frames[0] else { panic!("not a close frame") };
        assert_eq!(reason.chars().count(), 128);
    }
}
