//! A peer that leaves holes everywhere: what they cost is bounded over all streams together, and an
//! honest one gets it back when they are filled.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use bytes::Bytes;
use fbdt_proto::{
    CloseReason, Config, Frame, Instant, Limits, PathId, Role, Session, SessionError, StreamId,
    SubflowId,
};

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const STREAMS: u32 = 1000;

/// A server's session, whose holes may cost 8 MiB.
fn session() -> (Session, SubflowId) {
    let limits = Limits { session_window: 32 << 20, max_streams: STREAMS, ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let session = Session::new(NOW, Role::Server, config, Limits::default()).unwrap();
    let mut session = session.with_messages();
    let subflow = session.subflow_up(NOW, PathId(0), "a");
    (session, subflow)
}

/// Streams that the peer opens.
fn streams() -> impl Iterator<Item = StreamId> {
    (0..STREAMS).map(|index| StreamId(2 * index + 1))
}

fn byte(stream: StreamId, offset: u64) -> Frame {
    Frame::Data { stream, offset, fin: false, payload: Bytes::from_static(b"x") }
}

/// Gives the session frames until it refuses one; says why, and how many it took.
fn refused(
    session: &mut Session,
    subflow: SubflowId,
    frames: impl Iterator<Item = Frame>,
) -> (SessionError, u64) {
    for (taken, frame) in (0..).zip(frames) {
        if let Err(error) = session.handle_frame(NOW, subflow, frame) {
            return (error, taken);
        }
    }
    panic!("everything was taken: {} bytes are held", session.receive_memory());
}

#[test]
fn holes_on_many_streams_end_the_session_before_they_cost_much() {
    let (mut session, subflow) = session();
    let frames = (0..200).flat_map(|round| streams().map(move |id| byte(id, 2 * round + 1)));
    let (error, taken) = refused(&mut session, subflow, frames);
    assert!(matches!(error, SessionError::Holes { limit, .. } if limit == 8 << 20), "{error}");
    assert!((50_000..60_000).contains(&taken), "{taken} bytes were taken");
    assert_eq!(session.close_reason(), Some(&CloseReason::Protocol(error)));
    assert!(session.receive_memory() < 1 << 21, "what was held is given up");
}

#[test]
fn holes_between_messages_count_too() {
    let (mut session, subflow) = session();
    let gap = |stream, start| Frame::Gap { stream, start, end: start + 1 };
    let frames = (0..8000).flat_map(|round| streams().map(move |id| gap(id, 2 * round + 1)));
    let (error, taken) = refused(&mut session, subflow, frames);
    assert!(matches!(error, SessionError::Holes { .. }), "{error}");
    assert!((250_000..270_000).contains(&taken), "{taken} gaps were taken");
}

#[test]
fn holes_of_one_stream_are_limited_too_whether_anybody_reads_it_or_not() {
    let stream = StreamId(1);
    let (mut session, subflow) = session();
    let gaps = (0..40_000).map(|at| Frame::Gap { stream, start: 2 * at + 1, end: 2 * at + 2 });
    let (error, _) = refused(&mut session, subflow, gaps);
    // The window of messages that nobody asks to grow ends before.
    assert!(matches!(error, SessionError::StreamLimit { .. }), "{error}");
    let (mut session, subflow) = self::session();
    session.handle_frame(NOW, subflow, byte(stream, 0)).unwrap();
    session.stop_sending(NOW, stream, 0);
    let bytes = (1..20_000).map(|at| byte(stream, 2 * at));
    let (error, taken) = refused(&mut session, subflow, bytes);
    assert!(matches!(error, SessionError::Fragments { .. }), "{error}");
    assert_eq!(taken, 16 << 10);
}

#[test]
fn what_holes_cost_is_given_back() {
    let (mut session, subflow) = session();
    let mut take = |frame| session.handle_frame(NOW, subflow, frame).unwrap();
    // Four times as many as may be there at once.
    for round in 0..5 {
        let base = 80 * round;
        for id in streams() {
            (0..40).for_each(|at| take(byte(id, base + 2 * at + 1)));
        }
        for id in streams() {
            (0..40).for_each(|at| take(byte(id, base + 2 * at)));
        }
    }
    // Those of streams that are given up count no more either.
    for id in streams() {
        (0..40).for_each(|at| take(byte(id, 402 + 2 * at)));
    }
    for id in streams() {
        session.stop_sending(NOW, id, 0);
    }
    for id in streams() {
        (0..40).for_each(|at| session.handle_frame(NOW, subflow, byte(id, 502 + 2 * at)).unwrap());
    }
    assert!(!session.is_closed());
}
