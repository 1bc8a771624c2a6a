//! What a frame costs: `cargo bench -p fbdt-proto`.
// The macro makes a public function.
#![allow(missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fbdt_proto::ranges::RangeSet;
use fbdt_proto::receive::Assembler;
use fbdt_proto::wire::{AckFrame, FrameDecoder};
use fbdt_proto::{
    Class, Config, Frame, Instant, Limits, PathId, Role, Session, StreamId, SubflowId,
    SubflowSample,
};

const FRAME: usize = 16 << 10;
const FRAMES: usize = 256;

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

fn data(index: usize) -> Frame {
    Frame::Data {
        stream: StreamId(1),
        offset: (index * FRAME) as u64,
        fin: false,
        payload: Bytes::from(vec![7; FRAME]),
    }
}

fn wire(c: &mut Criterion) {
    let mut group = c.benchmark_group("wire");
    let frame = data(0);
    let ack =
        Frame::Ack(AckFrame { stream: StreamId(1), cumulative: 9, limit: 1 << 20, ranges: vec![] });
    let mut out = Vec::new();
    group.throughput(Throughput::Bytes(FRAME as u64));
    group.bench_function("encode 16 KiB", |b| {
        b.iter(|| {
            out.clear();
            frame.encode(&mut out);
            out.len()
        });
    });
    let mut encoded = Vec::new();
    frame.encode(&mut encoded);
    let mut decoder = FrameDecoder::new(64 << 10);
    group.bench_function("decode 16 KiB", |b| {
        b.iter(|| decode(&mut decoder, &encoded));
    });
    group.throughput(Throughput::Elements(1));
    let mut encoded = Vec::new();
    ack.encode(&mut encoded);
    group.bench_function("decode acknowledgement", |b| {
        b.iter(|| decode(&mut decoder, &encoded));
    });
    group.finish();
}

fn decode(decoder: &mut FrameDecoder, mut input: &[u8]) -> usize {
    let mut frames = 0;
    while !input.is_empty() {
        if let Ok(Some(frame)) = decoder.push(&mut input) {
            black_box(frame);
            frames += 1;
        }
    }
    frames
}

fn assembler(c: &mut Criterion) {
    let mut group = c.benchmark_group("assembler");
    group.throughput(Throughput::Elements(FRAMES as u64));
    let payload = Bytes::from(vec![7; FRAME]);
    let orders: [(&str, Vec<usize>); 2] = [
        ("in order", (0..FRAMES).collect()),
        // Two paths, one of which is half a window ahead.
        ("out of order", (0..FRAMES / 2).flat_map(|i| [i + FRAMES / 2, i]).collect()),
    ];
    for (name, order) in orders {
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                Assembler::default,
                |assembler| {
                    for index in &order {
                        assembler.insert(at(1), (index * FRAME) as u64, &payload);
                        while let Some(bytes) = assembler.read(usize::MAX) {
                            black_box(bytes);
                        }
                    }
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn ranges(c: &mut Criterion) {
    let mut group = c.benchmark_group("RangeSet");
    group.throughput(Throughput::Elements(FRAMES as u64));
    group.bench_function("insert every other, then the rest", |b| {
        b.iter(|| {
            let mut set = RangeSet::new();
            for start in (0..FRAMES as u64).step_by(2).chain((1..FRAMES as u64).step_by(2)) {
                set.insert(start * 100..start * 100 + 100);
            }
            set.total()
        });
    });
    group.finish();
}

/// A session with measured paths and streams that have bytes to send.
fn busy_session(paths: u8, streams: usize) -> (Session, Vec<SubflowId>) {
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

fn transmit(c: &mut Criterion) {
    let mut group = c.benchmark_group("poll_transmit");
    group.throughput(Throughput::Elements(16));
    for (paths, streams) in [(1, 1), (8, 1), (1, 1000), (8, 1000)] {
        group.bench_function(format!("{paths} paths, {streams} streams, 16 frames"), |b| {
            b.iter_batched_ref(
                || busy_session(paths, streams),
                |(session, subflows)| {
                    let mut out = Vec::new();
                    let mut frames = 0;
                    for subflow in subflows.iter().cycle().take(16) {
                        out.clear();
                        frames += usize::from(session.poll_transmit(at(4), *subflow, &mut out));
                    }
                    frames
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = wire, assembler, ranges, transmit
}
criterion_main!(benches);
