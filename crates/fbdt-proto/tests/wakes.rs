//! Whom a driver has to ask for bytes, and whom it can leave asleep.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{
    Class, Classes, Config, Instant, Limits, MessageOptions, Outgoing, PathId, PathPolicy, Role,
    Session, SubflowId, SubflowSample, Weight,
};

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

/// Two measured paths of 8 Gbit/s with nothing on them.
fn session() -> (Session, [SubflowId; 2]) {
    session_with(Config::default())
}

fn session_with(config: Config) -> (Session, [SubflowId; 2]) {
    let mut session = Session::new(at(0), Role::Client, config, Limits::default()).unwrap();
    let sample = SubflowSample {
        srtt: Duration::from_millis(5),
        min_rtt: Duration::from_millis(5),
        cwnd: 8 << 20,
        mss: 1448,
        delivery_rate: 1_000_000_000,
        ..SubflowSample::default()
    };
    let subflows = [0, 1].map(|path| {
        let subflow = session.subflow_up(at(1), PathId(path), "path");
        session.handle_sample(at(2), subflow, &sample);
        subflow
    });
    (session, subflows)
}

fn drain(session: &mut Session, now: Instant, subflow: SubflowId) -> usize {
    let mut out = Outgoing::default();
    while session.poll_transmit(now, subflow, &mut out) {}
    out.len()
}

#[test]
fn a_path_that_had_nothing_is_asked_again_only_after_news() {
    let (mut session, subflows) = session();
    let stream = session.open_stream(at(3), Class::Interactive).unwrap();
    session.write(at(3), stream, &[7; 10_000]).unwrap();
    assert!(subflows.iter().all(|subflow| session.can_transmit(at(3), *subflow)));
    // One that is asked must not wake the other and be woken by it for ever.
    let mut asked = 0;
    while let Some(subflow) = subflows.iter().find(|s| session.can_transmit(at(3), **s)) {
        drain(&mut session, at(3), *subflow);
        asked += 1;
        assert!(asked < 10, "all is on its way, and nothing has happened since");
    }
    assert_eq!(subflows.map(|subflow| drain(&mut session, at(3), subflow)), [0, 0]);
    session.write(at(4), stream, &[7; 10_000]).unwrap();
    assert!(subflows.iter().all(|subflow| session.can_transmit(at(4), *subflow)));
    let sent: usize = subflows.map(|subflow| drain(&mut session, at(4), subflow)).iter().sum();
    assert!(sent >= 10_000, "{sent}");
    // Time alone is news too: what is on its way may have become overdue.
    session.handle_timeout(at(5000));
    assert!(session.can_transmit(at(5000), subflows[0]));
}

/// Asks whoever can be asked until nobody can; bytes that were sent.
fn settle(session: &mut Session, subflows: [SubflowId; 2], now: Instant) -> usize {
    let (mut asked, mut sent) = (0, 0);
    while let Some(subflow) = subflows.iter().find(|s| session.can_transmit(now, **s)) {
        sent += drain(session, now, *subflow);
        asked += 1;
        assert!(asked < 40, "they wake each other for ever");
    }
    sent
}

#[test]
fn f15_paths_that_what_waits_is_kept_off_wake_nobody() {
    let never = Classes::NONE.with(Class::Background);
    let weighted = PathPolicy { weight: Weight::new(1), ..PathPolicy::default() };
    let kept_off = PathPolicy { never, ..weighted };
    for first in [kept_off, PathPolicy { metered: true, ..kept_off }, weighted] {
        let (mut session, subflows) = session();
        session.set_policy(at(3), PathId(0), first);
        session.set_policy(at(3), PathId(1), kept_off);
        settle(&mut session, subflows, at(3));
        let [transfer, page] = [Class::Background, Class::Interactive]
            .map(|class| session.open_stream(at(4), class).unwrap());
        settle(&mut session, subflows, at(4));
        session.write(at(5), transfer, &[7; 200_000]).unwrap();
        let options = MessageOptions::default();
        let mut session = session.with_messages();
        session.send_message(at(5), transfer, vec![7; 1000].into(), options).unwrap();
        let goes = first.never.is_empty();
        let sent = settle(&mut session, subflows, at(5));
        assert_eq!(sent > 201_000, goes, "{sent} bytes of {first:?}");
        for micros in [10_000, 20_000, 30_000] {
            session.handle_timeout(at(micros));
            let next = session.poll_timeout().unwrap();
            assert!(next > at(micros), "{next:?} is over already: the driver would spin");
            assert!(settle(&mut session, subflows, at(micros)) < 100 || goes, "probes");
        }
        // What may go is held up by nothing, and wakes nobody either.
        session.write(at(40_000), page, &[7; 300_000]).unwrap();
        assert!(settle(&mut session, subflows, at(40_000)) >= 300_000);
    }
}

/// Found by simulation: an acknowledgement that was due on a subflow whose
/// socket was full kept the session's deadline in the past, and its driver
/// busy until the socket had room.
#[test]
fn f8_an_acknowledgement_that_waits_for_its_socket_wakes_nobody_by_time() {
    let (mut session, subflows) = session();
    for subflow in subflows {
        drain(&mut session, at(1000), subflow);
    }
    let stream = fbdt_proto::StreamId(2);
    let frame =
        fbdt_proto::Frame::Data { stream, offset: 0, fin: false, payload: vec![7; 20_000].into() };
    session.handle_frame(at(1500), subflows[0], frame).unwrap();
    let due = session.poll_timeout().unwrap();
    assert!(due <= at(2000), "the acknowledgement is due a millisecond after the last one");
    // Its socket takes nothing: nobody polls the session for that subflow.
    session.handle_timeout(at(2000));
    let next = session.poll_timeout().unwrap();
    assert!(next > at(2000), "{next:?} is over already: the driver would spin");
    assert!(session.can_transmit(at(2000), subflows[0]), "and it leaves when there is room");
}

#[test]
fn f8_little_that_arrived_is_acknowledged_with_patience_unless_it_is_the_end() {
    for (fin, size, after) in [(false, 100, 3000), (true, 100, 1000), (false, 20_000, 1000)] {
        let (mut session, subflows) = session();
        for subflow in subflows {
            drain(&mut session, at(1000), subflow);
        }
        let stream = fbdt_proto::StreamId(2);
        let payload = vec![7; size].into();
        let frame = fbdt_proto::Frame::Data { stream, offset: 0, fin, payload };
        // The first acknowledgement of all leaves at once and starts the clock.
        session.handle_frame(at(1000), subflows[0], frame.clone()).unwrap();
        drain(&mut session, at(1000), subflows[0]);
        session.handle_frame(at(1001), subflows[0], frame).unwrap();
        assert!(!session.can_transmit(at(1000 + after - 1), subflows[0]), "{fin} {size}");
        assert!(session.can_transmit(at(1000 + after), subflows[0]), "{fin} {size}");
    }
}

/// A program that waits for room for its messages is told when there is nobody to take them.
#[test]
fn f16_a_writer_of_messages_is_woken_when_its_stream_is_over() {
    for by_peer in [true, false] {
        let (session, subflows) = session();
        let mut session = session.with_messages();
        let stream = session.open_stream(at(3), Class::Streaming).unwrap();
        let mut send = || {
            let bytes = vec![7; 10_000].into();
            session.send_message(at(4), stream, bytes, MessageOptions::default())
        };
        while send().is_ok() {}
        while session.poll_event().is_some() {}
        if by_peer {
            let space = fbdt_proto::StreamId(stream.0 | fbdt_proto::StreamId::MESSAGES);
            let ack = fbdt_proto::AckFrame {
                stream: space,
                cumulative: u64::MAX,
                limit: 0,
                ranges: Vec::new(),
            };
            session.handle_frame(at(5), subflows[0], fbdt_proto::Frame::Ack(ack)).unwrap();
        } else {
            session.reset(at(5), stream, 0);
        }
        let events: Vec<_> = std::iter::from_fn(|| session.poll_event()).collect();
        assert!(
            events.contains(&fbdt_proto::Event::MessageWritable(stream)),
            "by the peer: {by_peer}: {events:?}"
        );
    }
}

/// Each stream's messages that wait are this end's memory: all together they are bounded, too.
#[test]
fn f16_messages_that_wait_on_many_streams_are_bounded_together() {
    let limits = Limits { session_window: 16 << 20, ..Limits::default() };
    let (session, subflows) = session_with(Config { limits, ..Config::default() });
    let mut session = session.with_messages();
    let streams: Vec<_> =
        (0..100).map(|_| session.open_stream(at(3), Class::Streaming).unwrap()).collect();
    let mut taken = 0;
    for round in 1..200 {
        let now = at(round * 10_000);
        for subflow in subflows {
            drain(&mut session, now, subflow);
        }
        for stream in &streams {
            let mut send = || {
                let bytes = bytes::Bytes::from_static(&[7; 16_000]);
                session.send_message(now, *stream, bytes, MessageOptions::default()).is_ok()
            };
            while send() {
                taken += 16_000_u64;
            }
        }
    }
    let most = (16 << 20) + 100 * (256 << 10) + 100 * (16 << 10);
    assert!(taken <= most, "{taken} bytes are held, at most {most} may be");
}

#[test]
fn f16_while_no_path_is_up_a_writer_is_woken_by_what_nobody_wants_any_more() {
    let (session, subflows) = session();
    let mut session = session.with_messages();
    let stream = session.open_stream(at(3), Class::Streaming).unwrap();
    let lifetime = Some(Duration::from_millis(150));
    let options = MessageOptions { lifetime, ..MessageOptions::default() };
    while session.send_message(at(4), stream, vec![7; 10_000].into(), options).is_ok() {}
    for subflow in subflows {
        session.subflow_down(at(5), subflow);
    }
    while session.poll_event().is_some() {}
    let next = session.poll_timeout().unwrap();
    assert_eq!(next, at(150_004));
    session.handle_timeout(next);
    let events: Vec<_> = std::iter::from_fn(|| session.poll_event()).collect();
    assert!(events.contains(&fbdt_proto::Event::MessageWritable(stream)), "{events:?}");
}
