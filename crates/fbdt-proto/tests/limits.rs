//! What a peer that has proven its credential may still not do.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use bytes::Bytes;
use fbdt_proto::{
    Class, CloseReason, Config, ControlMessage, Frame, Instant, Limits, PathId, Role, Session,
    SessionError, StreamId, SubflowId,
};

const NOW: Instant = Instant::from_nanos(1_000_000_000);

fn server(max_streams: u32) -> (Session, SubflowId) {
    let limits = Limits { max_streams, ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let mut session = Session::new(NOW, Role::Server, config, Limits::default()).unwrap();
    let subflow = session.subflow_up(NOW, PathId(0), "a");
    (session, subflow)
}

/// The client's stream of this index.
fn stream(index: u32) -> StreamId {
    StreamId(2 * index + 1)
}

#[test]
fn a_stream_beyond_the_advertised_number_ends_the_session() {
    for streams in [1, 7, 1024] {
        let (mut session, subflow) = server(streams);
        let first = |index| Frame::Data {
            stream: stream(index),
            offset: 0,
            fin: false,
            payload: Bytes::from_static(b"x"),
        };
        for index in 0..streams {
            session.handle_frame(NOW, subflow, first(index)).unwrap();
        }
        let error = session.handle_frame(NOW, subflow, first(streams)).unwrap_err();
        assert_eq!(session.close_reason(), Some(&CloseReason::Protocol(error)));
    }
}

/// Each stop of a stream is answered on the control stream, whose bytes this peer never acknowledges.
#[test]
fn control_messages_that_nobody_acknowledges_end_the_session() {
    let (mut session, subflow) = server(1 << 20);
    let (mut offset, mut answered) = (0, 0_u64);
    for index in 0..1 << 20 {
        let mut payload = Vec::new();
        ControlMessage::Stop { stream: stream(index), code: 1 }.encode(&mut payload);
        let size = payload.len() as u64;
        let frame =
            Frame::Data { stream: StreamId::CONTROL, offset, fin: false, payload: payload.into() };
        offset += size;
        let _ = session.handle_frame(NOW, subflow, frame);
        while session.poll_event().is_some() {}
        if session.is_closed() {
            break;
        }
        let mut answer = Vec::new();
        ControlMessage::Reset { stream: stream(index), code: 1, end: 0 }.encode(&mut answer);
        answered += answer.len() as u64;
    }
    let reason = session.close_reason().unwrap();
    assert!(
        matches!(reason, CloseReason::Protocol(SessionError::Control(why)) if why.contains("acknowledged")),
        "{reason}"
    );
    assert!((1 << 19..=1 << 20).contains(&answered), "{answered} bytes waited");
}

/// Each end decides for what it sends; an Open may come after this end has decided.
#[test]
fn f11_an_open_says_the_first_class_and_no_other() {
    let (mut session, subflow) = server(7);
    let mut offset = 0;
    let mut open = |session: &mut Session, index, class| {
        let mut payload = Vec::new();
        ControlMessage::Open { stream: stream(index), class }.encode(&mut payload);
        let size = payload.len() as u64;
        let frame =
            Frame::Data { stream: StreamId::CONTROL, offset, fin: false, payload: payload.into() };
        offset += size;
        session.handle_frame(NOW, subflow, frame).unwrap();
    };
    for index in 0..3 {
        let payload = Bytes::from_static(b"x");
        let byte = Frame::Data { stream: stream(index), offset: 0, fin: false, payload };
        session.handle_frame(NOW, subflow, byte).unwrap();
    }
    let class = |session: &Session, index| {
        session.stats().streams.into_iter().find(|s| s.id == stream(index)).unwrap().class
    };
    open(&mut session, 0, Class::Background);
    assert_eq!(class(&session, 0), Class::Background, "nobody has chosen another");
    session.set_class(stream(1), Class::Streaming);
    session.set_class(stream(2), Class::default());
    open(&mut session, 3, Class::Background);
    for index in 0..4 {
        open(&mut session, index, Class::Conversational);
    }
    let classes = [0, 1, 2, 3].map(|index| class(&session, index));
    assert_eq!(classes, [Class::Background, Class::Streaming, Class::default(), Class::Background]);
}
