//! The redundant scheduler worked through: what each path sends of a stream.
#![allow(missing_docs, clippy::unwrap_used)]
#![allow(clippy::single_range_in_vec_init)] // lists of ranges, of which some have one

use std::ops::Range;
use std::time::Duration;

use fbdt_proto::{
    AckFrame, Class, Config, Frame, FrameDecoder, Instant, Limits, Outgoing, PathId, Role,
    SchedulerKind, Session, StreamId, SubflowId, SubflowSample,
};

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

/// Two measured paths, and a stream with 100,000 bytes written.
fn session() -> (Session, [SubflowId; 2], StreamId) {
    let config = Config { scheduler: SchedulerKind::Redundant, ..Config::default() };
    let mut session =
        fbdt_baselines::session(at(0), Role::Client, config, Limits::default()).unwrap();
    let rtt = Duration::from_millis(5);
    let sample = SubflowSample {
        srtt: rtt,
        min_rtt: rtt,
        cwnd: 8 << 20,
        mss: 1448,
        delivery_rate: 100_000_000,
        ..SubflowSample::default()
    };
    let subflows = [0, 1].map(|path| {
        let subflow = session.subflow_up(at(1), PathId(path), "path");
        session.handle_sample(at(2), subflow, &sample);
        subflow
    });
    let stream = session.open_stream(at(3), Class::Streaming).unwrap();
    session.write(at(3), stream, &[7; 100_000]).unwrap();
    (session, subflows, stream)
}

/// The ranges of `stream` that a path sends until it has nothing more, in their order; those that
/// follow each other as one.
fn sends(session: &mut Session, subflow: SubflowId, stream: StreamId) -> Vec<Range<u64>> {
    let mut out = Outgoing::default();
    while session.poll_transmit(at(4), subflow, &mut out) {}
    let (bytes, mut decoder) = (out.to_vec(), FrameDecoder::new(1 << 20));
    let (mut rest, mut found) = (&bytes[..], Vec::<Range<u64>>::new());
    while let Some(frame) = decoder.push(&mut rest).unwrap() {
        let Frame::Data { stream: of, offset, payload, .. } = frame else { continue };
        let range = offset..offset + payload.len() as u64;
        match found.last_mut() {
            _ if of != stream => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => found.push(range),
        }
    }
    found
}

#[test]
fn every_path_sends_the_stream_from_its_first_byte_on() {
    let (mut session, [one, two], stream) = session();
    assert_eq!(sends(&mut session, one, stream), [0..100_000]);
    assert_eq!(sends(&mut session, two, stream), [0..100_000], "the same again");
    session.write(at(4), stream, &[7; 50_000]).unwrap();
    assert_eq!(sends(&mut session, two, stream), [100_000..150_000], "whoever asks first");
    assert_eq!(sends(&mut session, one, stream), [100_000..150_000]);
    assert_eq!(sends(&mut session, one, stream), [], "once on each");
}

#[test]
fn what_was_acknowledged_meanwhile_is_skipped() {
    let (mut session, [one, two], stream) = session();
    assert_eq!(sends(&mut session, one, stream), [0..100_000]);
    let (limit, ranges) = (1 << 30, vec![60_000..70_000]);
    let ack = AckFrame { stream, cumulative: 40_000, limit, ranges };
    session.handle_frame(at(4), one, Frame::Ack(ack)).unwrap();
    assert_eq!(sends(&mut session, two, stream), [40_000..60_000, 70_000..100_000]);
}
