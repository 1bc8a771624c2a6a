//! What wire version 2 adds, byte by byte, as its first release wrote it. Like those of version 1,
//! these bytes are never changed.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::single_range_in_vec_init)]

use std::time::Duration;

use bytes::Bytes;
use fbdt_proto::{
    AckFrame, Class, CloseReason, Config, Event, Frame, FrameDecoder, Instant, Limits,
    MESSAGE_VERSION, MessageOptions, Outgoing, PathId, Role, Session, SessionError, StreamId,
    SubflowId, SubflowSample, WireError,
};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn decoded(bytes: &[u8]) -> Vec<Frame> {
    let mut decoder = FrameDecoder::new(1 << 16);
    let mut rest = bytes;
    std::iter::from_fn(|| decoder.push(&mut rest).unwrap()).collect()
}

#[test]
fn frames_of_messages() {
    assert_eq!(MESSAGE_VERSION, 2);
    let stream = StreamId(5);
    let message = |payload: &'static [u8]| Frame::Message {
        stream,
        offset: 0x0102_0304_0506_0708,
        payload: Bytes::from_static(payload),
    };
    let space = AckFrame {
        stream: StreamId(0x8000_0005),
        cumulative: 0x40,
        limit: 0x4000,
        ranges: vec![0x80..0xc5],
    };
    let recorded = [
        ("09 000011 00000005 0102030405060708 68656c6c6f", message(b"hello")),
        ("09 00000c 00000005 0102030405060708", message(b"")),
        (
            "0a 000014 00000005 0000000000000040 0000000000000080",
            Frame::Gap { stream, start: 0x40, end: 0x80 },
        ),
        (
            "03 000024 80000005 0000000000000040 0000000000004000
             0000000000000080 00000000000000c5",
            Frame::Ack(space),
        ),
        (
            "08 00000c 80000005 0000000000010000",
            Frame::Want { stream: StreamId(0x8000_0005), window: 1 << 16 },
        ),
    ];
    for (bytes, frame) in recorded {
        let mut written = Vec::new();
        frame.encode(&mut written);
        assert_eq!(written, hex(bytes), "{frame:?}");
        assert_eq!(decoded(&written), [frame]);
    }
    let empty = hex("0a 000014 00000005 0000000000000040 0000000000000040");
    let refused = FrameDecoder::new(1 << 16).push(&mut &empty[..]);
    assert_eq!(refused, Err(WireError::Field { kind: 10, field: "gap" }));
}

const NOW: Instant = Instant::from_nanos(1_000_000_000);

/// A session with one subflow that may send.
fn session(role: Role) -> (Session, SubflowId) {
    let mut session = Session::new(NOW, role, Config::default(), Limits::default()).unwrap();
    let subflow = session.subflow_up(NOW, PathId(0), "a");
    let sample = SubflowSample {
        srtt: Duration::from_millis(4),
        min_rtt: Duration::from_millis(4),
        cwnd: 100_000,
        mss: 1448,
        delivery_rate: 10_000_000,
        ..SubflowSample::default()
    };
    session.handle_sample(NOW, subflow, &sample);
    (session, subflow)
}

/// Both ends speak version 2.
fn talking(role: Role) -> (Session, SubflowId) {
    let (session, subflow) = session(role);
    (session.with_messages(), subflow)
}

fn sent(session: &mut Session, subflow: SubflowId, now: Instant) -> Vec<Frame> {
    let mut out = Outgoing::default();
    while session.poll_transmit(now, subflow, &mut out) {}
    decoded(&out.to_vec())
}

#[test]
fn f16_a_message_crosses_and_is_acknowledged() {
    let (mut here, ours) = talking(Role::Client);
    let (mut there, theirs) = talking(Role::Server);
    let id = here.open_stream(NOW, Class::Conversational).unwrap();
    let hello = Bytes::from_static(b"hello");
    here.send_message(NOW, id, hello.clone(), MessageOptions::default()).unwrap();
    let frames = sent(&mut here, ours, NOW);
    let message = Frame::Message { stream: id, offset: 0, payload: hello.clone() };
    assert!(frames.contains(&message), "{frames:?}");
    for frame in [message.clone(), message] {
        there.handle_frame(NOW, theirs, frame).unwrap();
    }
    let events: Vec<Event> = std::iter::from_fn(|| there.poll_event()).collect();
    let opened = events.iter().position(|event| *event == Event::StreamOpened(id)).unwrap();
    let readable = events.iter().position(|event| *event == Event::MessageReadable(id)).unwrap();
    assert!(opened < readable);
    assert_eq!(there.read_message(NOW, id), Ok(hello));
    assert!(there.read_message(NOW, id).is_err(), "it came twice and is delivered once");
    let later = NOW + Duration::from_millis(10);
    let answers = sent(&mut there, theirs, later);
    let acknowledged = |frame: &Frame| {
        matches!(frame, Frame::Ack(ack)
            if ack.stream.is_message_space() && ack.stream.stream() == id && ack.cumulative == 69)
    };
    assert!(answers.iter().any(acknowledged), "{answers:?}");
    for frame in answers {
        here.handle_frame(later, ours, frame).unwrap();
    }
    assert_eq!(here.stats().messages.acknowledged, 1);
}

#[test]
fn f16_a_session_of_version_1_knows_no_messages() {
    let (mut old, subflow) = session(Role::Server);
    assert!(!old.has_messages());
    let frames = [
        (Frame::Message { stream: StreamId(1), offset: 0, payload: Bytes::new() }, 9),
        (Frame::Gap { stream: StreamId(1), start: 0, end: 64 }, 10),
    ];
    for (frame, kind) in frames {
        let (mut old, subflow) = session(Role::Server);
        let error = old.handle_frame(NOW, subflow, frame).unwrap_err();
        assert_eq!(error, SessionError::Wire(WireError::Type(kind)));
        assert_eq!(old.close_reason(), Some(&CloseReason::Protocol(error)));
    }
    let space =
        AckFrame { stream: StreamId(0x8000_0001), cumulative: 0, limit: 1, ranges: Vec::new() };
    assert!(old.handle_frame(NOW, subflow, Frame::Ack(space)).is_err());
    let (mut client, _) = session(Role::Client);
    let id = client.open_stream(NOW, Class::Interactive).unwrap();
    let error = client.send_message(NOW, id, Bytes::new(), MessageOptions::default()).unwrap_err();
    assert!(error.to_string().contains("wire version 1"), "{error}");
}

#[test]
fn f16_a_message_on_the_control_stream_or_a_message_space_ends_the_session() {
    for stream in [0, 0x8000_0001, 2] {
        let (mut session, subflow) = talking(Role::Server);
        let frame = Frame::Message { stream: StreamId(stream), offset: 0, payload: Bytes::new() };
        assert!(session.handle_frame(NOW, subflow, frame).is_err(), "{stream:#x}");
        assert!(session.is_closed());
    }
}

#[test]
fn f16_a_request_for_room_makes_no_messages_that_nobody_reads() {
    let stream = StreamId(1);
    let want = |stream: StreamId, window| Frame::Want {
        stream: StreamId(stream.0 | StreamId::MESSAGES),
        window,
    };
    let (mut session, subflow) = talking(Role::Server);
    let payload = Bytes::from_static(b"x");
    let byte = Frame::Data { stream, offset: 0, fin: false, payload };
    session.handle_frame(NOW, subflow, byte).unwrap();
    session.release_stream(NOW, stream);
    session.handle_frame(NOW, subflow, want(stream, 1 << 20)).unwrap();
    let message = |offset| Frame::Message { stream, offset, payload: vec![0; 10_000].into() };
    session.handle_frame(NOW, subflow, message(0)).unwrap();
    assert_eq!(session.receive_memory(), 0, "its handle was dropped");
    // The control stream has no messages, and takes nothing of what their windows may grow by.
    let limit = |session: &mut Session, subflow| {
        session.handle_frame(NOW, subflow, want(stream, u64::MAX)).unwrap();
        let later = NOW + Duration::from_millis(10);
        let limits = sent(session, subflow, later).into_iter().filter_map(|frame| match frame {
            Frame::Ack(ack) if ack.stream.is_message_space() => Some(ack.limit),
            _ => None,
        });
        limits.max().unwrap()
    };
    let granted = [false, true].map(|before| {
        let (mut session, subflow) = talking(Role::Server);
        session.handle_frame(NOW, subflow, message(0)).unwrap();
        if before {
            session.handle_frame(NOW, subflow, want(StreamId::CONTROL, u64::MAX)).unwrap();
        }
        limit(&mut session, subflow)
    });
    assert_eq!(granted[0], granted[1]);
}
