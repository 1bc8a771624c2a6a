//! What a frame costs in time: `cargo bench -p fbdt-proto --features testing --bench protocol`.
// The macro makes a public function.
#![allow(missing_docs)]

mod busy;

use std::time::Duration;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fbdt_proto::testing::Assembler;
use fbdt_proto::{FrameDecoder, RangeSet};

use busy::{FRAME, FRAMES, assemble, busy_session, decode, encoded};

fn wire(c: &mut Criterion) {
    let mut group = c.benchmark_group("wire");
    let (frame, mut out) = (busy::data(), Vec::new());
    group.throughput(Throughput::Bytes(FRAME as u64));
    group.bench_function("encode 16 KiB", |b| {
        b.iter(|| {
            out.clear();
            frame.encode(&mut out);
            out.len()
        });
    });
    let input = encoded(&frame);
    let mut decoder = FrameDecoder::new(64 << 10);
    group.bench_function("decode 16 KiB", |b| {
        b.iter(|| decode(&mut decoder, &input));
    });
    group.throughput(Throughput::Elements(1));
    let input = encoded(&busy::acknowledgement());
    group.bench_function("decode acknowledgement", |b| {
        b.iter(|| decode(&mut decoder, &input));
    });
    group.finish();
}

fn assembler(c: &mut Criterion) {
    let mut group = c.benchmark_group("assembler");
    group.throughput(Throughput::Elements(FRAMES as u64));
    let payload = Bytes::from(vec![7; FRAME]);
    for (name, order) in [("in order", busy::in_order()), ("out of order", busy::out_of_order())] {
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                Assembler::default,
                |assembler| assemble(assembler, &order, &payload),
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

fn transmit(c: &mut Criterion) {
    let mut group = c.benchmark_group("poll_transmit");
    group.throughput(Throughput::Elements(16));
    for (paths, streams) in [(1, 1), (8, 1), (1, 1000), (8, 1000)] {
        group.bench_function(format!("{paths} paths, {streams} streams, 16 frames"), |b| {
            b.iter_batched_ref(
                || busy_session(paths, streams),
                |(session, subflows)| busy::transmit(session, subflows),
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
