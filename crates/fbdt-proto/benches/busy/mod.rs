//! The work that both kinds of benchmark measure.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use fbdt_proto::testing::Assembler;
use fbdt_proto::{
    AckFrame, Class, Config, Frame, FrameDecoder, Instant, Limits, Outgoing, PathId, Role, Session,
    StreamId, SubflowId, SubflowSample,
};

/// Payload of a frame, in bytes.
pub(crate) const FRAME: usize = 16 << 10;
/// Frames of one assembly.
pub(crate) const FRAMES: usize = 256;

pub(crate) fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

pub(crate) fn data() -> Frame {
    Frame::Data { stream: StreamId(1), offset: 0, fin: false, payload: Bytes::from(vec![7; FRAME]) }
}

pub(crate) fn acknowledgement() -> Frame {
    Frame::Ack(AckFrame { stream: StreamId(1), cumulative: 9, limit: 1 << 20, ranges: vec![] })
}

pub(crate) fn encoded(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out);
    out
}

/// Frames found in `input`.
pub(crate) fn decode(decoder: &mut FrameDecoder, mut input: &[u8]) -> usize {
    let mut frames = 0;
    while !input.is_empty() {
        if let Ok(Some(frame)) = decoder.push(&mut input) {
            black_box(frame);
            frames += 1;
        }
    }
    frames
}

/// In which order the frames of an assembly come.
pub(crate) fn in_order() -> Vec<usize> {
    (0..FRAMES).collect()
}

/// Two paths, one of which is half a window ahead.
pub(crate) fn out_of_order() -> Vec<usize> {
    (0..FRAMES / 2).flat_map(|index| [index + FRAMES / 2, index]).collect()
}

/// Inserts every frame and reads what is in order.
pub(crate) fn assemble(assembler: &mut Assembler, order: &[usize], payload: &Bytes) {
    for index in order {
        assembler.insert(at(1), (index * FRAME) as u64, payload);
        while let Some(bytes) = assembler.read(usize::MAX) {
            black_box(bytes);
        }
    }
}

/// A session with measured paths and streams that have bytes to send.
pub(crate) fn busy_session(paths: u8, streams: usize) -> (Session, Vec<SubflowId>) {
    let limits = Limits { max_streams: 4096, ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let mut session = match Session::new(at(0), Role::Client, config, limits) {
        Ok(session) => session,
        Err(error) => unreachable!("{error}"),
    };
    let sample = SubflowSample {
        srtt: Duration::from_millis(5),
        min_rtt: Duration::from_millis(5),
        cwnd: 64 << 20,
        mss: 1448,
        delivery_rate: 1_000_000_000,
        ..SubflowSample::default()
    };
    let mut subflows = Vec::new();
    for path in 0..paths {
        let subflow = session.subflow_up(at(1), PathId(path), "path");
        session.handle_sample(at(2), subflow, &sample);
        subflows.push(subflow);
    }
    let bytes = vec![7; (4 << 20) / streams.max(4)];
    for _ in 0..streams {
        if let Ok(id) = session.open_stream(at(3), Class::Background) {
            let _ = session.write(at(3), id, &bytes);
        }
    }
    (session, subflows)
}

/// Asks the subflows in turn, sixteen times; says how many frames they gave.
pub(crate) fn transmit(session: &mut Session, subflows: &[SubflowId]) -> usize {
    let mut out = Outgoing::default();
    let mut frames = 0;
    for subflow in subflows.iter().cycle().take(16) {
        out.clear();
        frames += usize::from(session.poll_transmit(at(4), *subflow, &mut out));
    }
    frames
}
