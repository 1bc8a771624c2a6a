//! Wire version 1, byte by byte, as the first release wrote it. These bytes are never changed: what
//! differs from them is another version, and needs another number.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use bytes::Bytes;
use fbdt_proto::handshake::{HandshakeMessage, Hello, Join, RefuseCode, Refused, Welcome};
use fbdt_proto::{
    AckFrame, Class, ControlMessage, Frame, FrameDecoder, Limits, PathId, StreamId, VERSION,
};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn limits() -> Limits {
    Limits {
        max_frame: 0x0001_0000,
        stream_window: 0x0004_0000,
        session_window: 0x1000_0000,
        max_streams: 0x400,
    }
}

const LIMITS: &str = "00010000 0000000000040000 0000000010000000 00000400";

#[test]
fn this_is_version_one() {
    assert_eq!(VERSION, 1);
}

#[test]
fn handshake_messages() {
    let proof = "ab".repeat(32);
    let recorded = [
        (
            format!("41 0049 0001 1111111111111111 03 {LIMITS} {proof} 776966693567"),
            HandshakeMessage::Hello(Hello {
                version: 1,
                credential: [0x11; 8],
                path: PathId(3),
                path_name: "wifi5g".into(),
                limits: limits(),
                proof: [0xab; 32],
            }),
        ),
        (
            format!("42 0033 {} 02 {proof} 6134", "22".repeat(16)),
            HandshakeMessage::Join(Join {
                session: [0x22; 16],
                path: PathId(2),
                path_name: "a4".into(),
                proof: [0xab; 32],
            }),
        ),
        (
            format!("43 0048 {} {LIMITS} {proof}", "22".repeat(16)),
            HandshakeMessage::Welcome(Welcome {
                session: [0x22; 16],
                limits: limits(),
                proof: [0xab; 32],
            }),
        ),
        refused("01", RefuseCode::Version),
        refused("02", RefuseCode::Authentication),
        refused("03", RefuseCode::Busy),
        refused("04", RefuseCode::Malformed),
    ];
    for (bytes, message) in recorded {
        let mut written = Vec::new();
        message.encode(&mut written);
        assert_eq!(written, hex(&bytes), "{message:?}");
        let length = written.len();
        assert_eq!(HandshakeMessage::decode(&written), Ok(Some((message, length))));
    }
}

fn refused(code: &str, meaning: RefuseCode) -> (String, HandshakeMessage) {
    let message = HandshakeMessage::Refused(Refused { code: meaning, reason: "no".into() });
    (format!("44 0003 {code} 6e6f"), message)
}

fn ack(cumulative: u64, ranges: Vec<std::ops::Range<u64>>) -> Frame {
    Frame::Ack(AckFrame { stream: StreamId(1), cumulative, limit: 0x0004_0000, ranges })
}

#[test]
fn frames() {
    let data = |fin, payload: &'static [u8]| Frame::Data {
        stream: StreamId(5),
        offset: 0x0102_0304_0506_0708,
        fin,
        payload: Bytes::from_static(payload),
    };
    let recorded = [
        ("01 00000f 00000005 0102030405060708 616263", data(false, b"abc")),
        ("02 00000f 00000005 0102030405060708 616263", data(true, b"abc")),
        ("02 00000c 00000005 0102030405060708", data(true, b"")),
        ("03 000014 00000001 0000000000000009 0000000000040000", ack(9, vec![])),
        (
            "03 000034 00000001 0000000000000009 0000000000040000
             000000000000000b 000000000000000d 0000000000000020 0000000000000030",
            ack(9, vec![11..13, 32..48]),
        ),
        ("03 000014 00000001 ffffffffffffffff 0000000000040000", ack(u64::MAX, vec![])),
        ("04 000008 0000000010000000", Frame::SessionLimit { limit: 0x1000_0000 }),
        ("05 000008 00000000000000ff", Frame::Ping { token: 255 }),
        ("06 000010 00000000000000ff 0000000000000400", Frame::Pong { token: 255, received: 1024 }),
        ("07 000007 00000020 627965", Frame::Close { code: 0x20, reason: "bye".into() }),
        (
            "08 00000c 00000001 0000000008000000",
            Frame::Want { stream: StreamId(1), window: 1 << 27 },
        ),
    ];
    for (bytes, frame) in recorded {
        let mut written = Vec::new();
        frame.encode(&mut written);
        assert_eq!(written, hex(bytes), "{frame:?}");
        assert_eq!(decoded(&written), [frame]);
    }
}

fn decoded(bytes: &[u8]) -> Vec<Frame> {
    let mut decoder = FrameDecoder::new(1 << 16);
    let mut rest = bytes;
    std::iter::from_fn(|| decoder.push(&mut rest).unwrap()).collect()
}

#[test]
fn control_messages() {
    let stream = StreamId(7);
    let open = |class| ControlMessage::Open { stream, class };
    let recorded = [
        ("01 05 00000007 00", open(Class::Conversational)),
        ("01 05 00000007 01", open(Class::Interactive)),
        ("01 05 00000007 02", open(Class::Streaming)),
        ("01 05 00000007 03", open(Class::Background)),
        (
            "02 10 00000007 00000100 0000000000001000",
            ControlMessage::Reset { stream, code: 0x100, end: 4096 },
        ),
        ("03 08 00000007 00000101", ControlMessage::Stop { stream, code: 0x101 }),
        ("04 08 0000000000000400", ControlMessage::MaxStreams { count: 1024 }),
        ("05 01 02", ControlMessage::Redial { path: PathId(2) }),
        ("06 01 02", ControlMessage::RedialCancel { path: PathId(2) }),
    ];
    for (bytes, message) in recorded {
        let mut written = Vec::new();
        message.encode(&mut written);
        assert_eq!(written, hex(bytes), "{message:?}");
        let length = written.len();
        assert_eq!(ControlMessage::decode(&written), Ok(Some((message, length))));
    }
}
