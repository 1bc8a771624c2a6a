//! Opportunistic retransmission and penalisation worked through: whom a path has punished.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{
    AckFrame, Class, Config, Frame, Instant, Limits, Outgoing, PathId, Role, SchedulerKind,
    Session, StreamId, SubflowId, SubflowSample,
};

const WINDOW: u64 = 200_000;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn sample(rtt_ms: u64, cwnd: u64) -> SubflowSample {
    let rtt = Duration::from_millis(rtt_ms);
    SubflowSample {
        srtt: rtt,
        min_rtt: rtt,
        cwnd,
        mss: 1000,
        delivery_rate: 1_000_000,
        ..SubflowSample::default()
    }
}

/// Sends all that the path has to send, of which TCP acknowledges nothing.
fn send(session: &mut Session, now: Instant, subflow: SubflowId) {
    let mut out = Outgoing::default();
    while session.poll_transmit(now, subflow, &mut out) {}
}

/// What the late path may hold after the fast one met its hole, and an RTT of the fast one later.
fn left_by_punishments(fast_first: bool) -> [u64; 3] {
    let config = Config::default().with_scheduler(SchedulerKind::MinRtt);
    let limits = Limits { stream_window: WINDOW, ..Limits::default() };
    let mut session = fbdt_baselines::session(at(0), Role::Client, config, limits).unwrap();
    let up = |session: &mut Session, path: u8, sample: &SubflowSample| {
        let subflow = session.subflow_up(at(1), PathId(path), "path");
        session.handle_sample(at(1), subflow, sample);
        subflow
    };
    let (fast, late) = (sample(10, 50_000), sample(100, 400_000));
    let (fast_path, late_path) = if fast_first { (0, 1) } else { (1, 0) };
    let mut subflows = [SubflowId(0); 2];
    for path in [0, 1] {
        let which = usize::from(path == late_path);
        subflows[which] = up(&mut session, path, [&fast, &late][which]);
    }
    let stream: StreamId = session.open_stream(at(2), Class::Streaming).unwrap();
    session.write(at(2), stream, &[7; 400_000]).unwrap();
    send(&mut session, at(2), subflows[0]);
    send(&mut session, at(2), subflows[1]);
    let limit = |session: &Session| {
        let stats = session.stats();
        stats.paths.iter().find(|path| path.id == PathId(late_path)).unwrap().commit_limit
    };
    let before = limit(&session);
    // What the fast path sent is there; the late one's bytes fill the rest of the window.
    let sent = session.stats();
    let first = sent.paths.iter().find(|path| path.id == PathId(fast_path)).unwrap().new_bytes;
    assert!(first > 0 && first < WINDOW, "{first}");
    let ack = AckFrame { stream, cumulative: first, limit: WINDOW, ranges: Vec::new() };
    session.handle_frame(at(12), subflows[0], Frame::Ack(ack)).unwrap();
    session.handle_sample(at(12), subflows[0], &fast);
    send(&mut session, at(12), subflows[0]);
    let once = limit(&session);
    session.handle_sample(at(23), subflows[0], &fast);
    send(&mut session, at(23), subflows[0]);
    [before, once, limit(&session)]
}

#[test]
fn a_blocker_is_punished_once_per_rtt_whatever_its_number() {
    let [before, once, twice] = left_by_punishments(true);
    assert!(once < before && twice < once, "{before} {once} {twice}");
    assert_eq!(left_by_punishments(false), [before, once, twice]);
}
