//! What is sent again, what goes before it, and what is not sent again.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{
    AckFrame, Class, Classes, Config, Frame, FrameDecoder, Instant, Limits, MessageOptions,
    Outgoing, PathId, PathPolicy, Redundancy, Role, Session, StreamId, SubflowId, SubflowSample,
};

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn sample(in_flight: u64, acked_total: u64) -> SubflowSample {
    SubflowSample {
        srtt: Duration::from_millis(5),
        min_rtt: Duration::from_millis(5),
        cwnd: 8 << 20,
        mss: 1448,
        delivery_rate: 1_000_000_000,
        in_flight,
        acked_total,
        ..SubflowSample::default()
    }
}

fn up(session: &mut Session, now: Instant, path: u8) -> SubflowId {
    let subflow = session.subflow_up(now, PathId(path), "path");
    session.handle_sample(now, subflow, &sample(0, 0));
    subflow
}

/// A measured path of 8 Gbit/s, and a stream of each class that the peer knows of.
fn session() -> (Session, SubflowId, [StreamId; 4]) {
    session_with(Config::default())
}

fn session_with(config: Config) -> (Session, SubflowId, [StreamId; 4]) {
    let session = Session::new(at(0), Role::Client, config, Limits::default());
    let mut session = session.unwrap().with_messages();
    let subflow = up(&mut session, at(1), 0);
    let streams = Class::ALL.map(|class| session.open_stream(at(2), class).unwrap());
    sends(&mut session, at(2), subflow);
    acknowledge(&mut session, at(3), subflow, StreamId::CONTROL, 28, Vec::new());
    (session, subflow, streams)
}

type Ranges = Vec<std::ops::Range<u64>>;

fn acknowledge(
    session: &mut Session,
    now: Instant,
    subflow: SubflowId,
    stream: StreamId,
    cumulative: u64,
    ranges: Ranges,
) {
    let ack = AckFrame { stream, cumulative, limit: 1 << 20, ranges };
    session.handle_frame(now, subflow, Frame::Ack(ack)).unwrap();
}

/// What a path sends of streams, messages and gaps until it has nothing more.
fn sends(session: &mut Session, now: Instant, subflow: SubflowId) -> Vec<Frame> {
    let mut out = Outgoing::default();
    while session.poll_transmit(now, subflow, &mut out) {}
    frames(&out)
}

/// The first of them.
fn sends_one(session: &mut Session, now: Instant, subflow: SubflowId) -> Vec<Frame> {
    let mut out = Outgoing::default();
    while frames(&out).is_empty() && session.poll_transmit(now, subflow, &mut out) {}
    frames(&out)
}

fn frames(out: &Outgoing) -> Vec<Frame> {
    let (bytes, mut decoder) = (out.to_vec(), FrameDecoder::new(1 << 20));
    let mut rest = &bytes[..];
    let mut found = Vec::new();
    while let Some(frame) = decoder.push(&mut rest).unwrap() {
        if stream_of(&frame).is_some_and(|stream| stream != StreamId::CONTROL) {
            found.push(frame);
        }
    }
    found
}

fn stream_of(frame: &Frame) -> Option<StreamId> {
    match frame {
        Frame::Data { stream, .. } | Frame::Message { stream, .. } | Frame::Gap { stream, .. } => {
            Some(*stream)
        }
        _ => None,
    }
}

fn streams_of(frames: &[Frame]) -> Vec<StreamId> {
    let mut streams: Vec<_> = frames.iter().filter_map(stream_of).collect();
    streams.dedup();
    streams
}

/// Bytes of the application in them.
fn volume(frames: &[Frame]) -> usize {
    let bytes = |frame: &Frame| match frame {
        Frame::Data { payload, .. } | Frame::Message { payload, .. } => payload.len(),
        _ => 0,
    };
    frames.iter().map(bytes).sum()
}

fn say(session: &mut Session, now: Instant, stream: StreamId, lifetime: Option<u64>) {
    let lifetime = lifetime.map(Duration::from_millis);
    let options = MessageOptions { lifetime, ..MessageOptions::default() };
    session.send_message(now, stream, vec![7; 1000].into(), options).unwrap();
}

/// TCP says that nothing was acknowledged on the path for too long.
fn fall_silent(session: &mut Session, now: u64, subflow: SubflowId) {
    session.handle_sample(at(now), subflow, &sample(300_000, 0));
    session.handle_sample(at(now + 100), subflow, &sample(300_000, 0));
}

#[test]
fn f11_what_is_new_of_a_better_class_goes_before_repairs_of_a_worse_one() {
    for lost in [false, true] {
        for message in [true, false] {
            let (mut session, one, [call, page, _, transfer]) = session();
            session.write(at(4), transfer, &[7; 250_000]).unwrap();
            assert_eq!(volume(&sends(&mut session, at(4), one)), 250_000);
            let two = up(&mut session, at(4), 1);
            fall_silent(&mut session, 5, one);
            if lost {
                session.subflow_down(at(105), one);
            }
            for stream in [page, call] {
                if message {
                    say(&mut session, at(105), stream, None);
                } else {
                    session.write(at(105), stream, &[7; 1000]).unwrap();
                }
            }
            let sent = sends(&mut session, at(105), two);
            assert_eq!(streams_of(&sent), [call, page, transfer], "lost {lost}, {message}");
            assert_eq!(volume(&sent), 252_000, "and all of it");
        }
    }
}

#[test]
fn f11_a_copy_by_choice_waits_for_what_is_new_of_a_better_class() {
    let (mut session, one, [call, page, ..]) = session();
    say(&mut session, at(4), page, None);
    assert_eq!(streams_of(&sends(&mut session, at(4), one)), [page]);
    let two = up(&mut session, at(4), 1);
    say(&mut session, at(4), call, None);
    assert_eq!(streams_of(&sends(&mut session, at(4), two)), [call, page]);
}

#[test]
fn f11_a_copy_goes_before_what_is_new_of_its_own_class() {
    let (mut session, one, [call, ..]) = session();
    session.write(at(4), call, &[7; 1000]).unwrap();
    assert_eq!(sends(&mut session, at(4), one).len(), 1);
    let two = up(&mut session, at(4), 1);
    fall_silent(&mut session, 5, one);
    session.write(at(105), call, &[7; 1000]).unwrap();
    let offset = |frame: &Frame| match frame {
        Frame::Data { offset, .. } => *offset,
        _ => u64::MAX,
    };
    let sent = sends(&mut session, at(105), two);
    assert_eq!(sent.iter().map(offset).collect::<Vec<_>>(), [0, 1000]);
}

#[test]
fn f15_what_is_lost_and_kept_off_a_path_holds_up_nothing_there() {
    let (mut session, one, [call, page, _, transfer]) = session();
    session.write(at(4), transfer, &[7; 300_000]).unwrap();
    session.write(at(4), call, &[7; 1000]).unwrap();
    assert_eq!(streams_of(&sends(&mut session, at(4), one)), [call, transfer]);
    let two = up(&mut session, at(4), 1);
    let never = Classes::NONE.with(Class::Conversational);
    session.set_policy(at(4), PathId(1), PathPolicy { never, ..PathPolicy::default() });
    session.subflow_down(at(5), one);
    say(&mut session, at(5), page, None);
    assert_eq!(streams_of(&sends(&mut session, at(5), two)), [page, transfer]);
}

/// Offset behind a message of `say`, in units of which it takes one.
const ONE: u64 = 1064;

fn gaps(frames: &[Frame]) -> Ranges {
    let gap = |frame: &Frame| match frame {
        Frame::Gap { start, end, .. } => Some(start / ONE..end / ONE),
        _ => None,
    };
    frames.iter().filter_map(gap).collect()
}

#[test]
#[allow(clippy::single_range_in_vec_init)]
fn f16_a_gap_in_place_of_several_messages_is_lost_as_a_whole() {
    for copied in [false, true] {
        let (mut session, one, [_, _, stream, _]) = session();
        let [two, three] = [1, 2].map(|path| up(&mut session, at(3), path));
        for subflow in [one, two, one] {
            say(&mut session, at(4), stream, Some(50));
            assert_eq!(sends(&mut session, at(4), subflow).len(), 1);
        }
        [one, two].iter().for_each(|subflow| session.subflow_down(at(5), *subflow));
        session.handle_timeout(at(60));
        let fresh = up(&mut session, at(60), 0);
        assert_eq!(gaps(&sends(&mut session, at(60), fresh)), [0..3]);
        // The second one had arrived.
        let space = StreamId(stream.0 | StreamId::MESSAGES);
        acknowledge(&mut session, at(61), three, space, 0, vec![ONE..2 * ONE]);
        if copied {
            fall_silent(&mut session, 61, fresh);
            assert_eq!(gaps(&sends_one(&mut session, at(161), three)), [0..1]);
        }
        session.subflow_down(at(161), fresh);
        let again = gaps(&sends(&mut session, at(161), three));
        assert_eq!(again, if copied { vec![2..3] } else { vec![0..1, 2..3] });
        acknowledge(&mut session, at(162), three, space, 3 * ONE, Vec::new());
        assert_eq!(sends(&mut session, at(163), three), []);
    }
}

#[test]
fn f6_what_its_first_path_still_carries_is_not_lost_with_a_copy() {
    let config = Config { redundancy: Redundancy::Suspect, ..Config::default() };
    let (mut session, one, [_, _, stream, _]) = session_with(config);
    session.write(at(4), stream, &[7; 200_000]).unwrap();
    assert_eq!(volume(&sends(&mut session, at(4), one)), 200_000);
    say(&mut session, at(4), stream, None);
    let all = 201_000;
    assert_eq!(volume(&sends(&mut session, at(4), one)), 1000);
    let [two, three] = [1, 2].map(|path| up(&mut session, at(4), path));
    fall_silent(&mut session, 5, one);
    assert_eq!(volume(&sends(&mut session, at(105), two)), all, "copies");
    session.handle_sample(at(106), one, &sample(200_000, 100_000));
    session.subflow_down(at(107), two);
    assert_eq!(volume(&sends(&mut session, at(107), three)), 0, "they are on their way");
    // They may be copied again, and are lost with the last path that carries them.
    let two = up(&mut session, at(108), 1);
    session.handle_sample(at(300), one, &sample(200_000, 100_000));
    assert_eq!(volume(&sends(&mut session, at(300), two)), all, "copies");
    session.subflow_down(at(301), one);
    assert_eq!(volume(&sends(&mut session, at(301), three)), 0);
    session.subflow_down(at(301), two);
    assert_eq!(volume(&sends(&mut session, at(301), three)), all);
}
