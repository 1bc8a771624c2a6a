//! Whom a driver has to ask for bytes, and whom it can leave asleep.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::wire::Outgoing;
use fbdt_proto::{Class, Config, Instant, Limits, PathId, Role, Session, SubflowId, SubflowSample};

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

/// Two measured paths of 8 Gbit/s with nothing on them.
fn session() -> (Session, [SubflowId; 2]) {
    let limits = Limits::default();
    let mut session = Session::new(at(0), Role::Client, Config::default(), limits).unwrap();
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
