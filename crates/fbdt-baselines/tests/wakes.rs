//! A path that was left without bytes in favour of another one is asked again.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{
    Class, Config, Instant, Limits, Outgoing, PathId, Role, SchedulerKind, Session, SubflowId,
    SubflowSample,
};

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

/// Two measured paths of 8 Gbit/s with nothing on them.
fn session_with(config: Config) -> (Session, [SubflowId; 2]) {
    let mut session =
        fbdt_baselines::session(at(0), Role::Client, config, Limits::default()).unwrap();
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

/// Paths of one session are asked in any order; a rule that gives a turn, or assigns bytes, to a
/// path that has just said that it has nothing must have it asked again.
#[test]
fn f3b_who_is_left_out_in_favour_of_another_is_asked_again_when_that_one_has_sent() {
    for (kind, turned) in
        SchedulerKind::ALL.into_iter().flat_map(|kind| [(kind, false), (kind, true)])
    {
        let (mut session, mut subflows) =
            session_with(Config { scheduler: kind, ..Config::default() });
        if turned {
            subflows.reverse();
        }
        let stream = session.open_stream(at(3), Class::Background).unwrap();
        settle(&mut session, subflows, at(3));
        session.write(at(3), stream, &[7; 300_000]).unwrap();
        let mut carried = [0, 0];
        while subflows.iter().any(|subflow| session.can_transmit(at(3), *subflow)) {
            for (subflow, carried) in subflows.iter().zip(&mut carried) {
                if session.can_transmit(at(3), *subflow) {
                    *carried += drain(&mut session, at(3), *subflow);
                }
            }
        }
        let sent: usize = carried.iter().sum();
        assert!(sent >= 300_000, "{kind:?}: both fell asleep after {carried:?} bytes");
    }
}
