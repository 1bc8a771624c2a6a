//! What a frame costs in instructions, the same on an idle and on a busy machine:
//! `cargo bench -p fbdt-proto --features testing --bench instructions`
//! (needs valgrind and gungraun-runner).
// The macros make public items.
#![allow(missing_docs)]

mod busy;

use std::hint::black_box;

use bytes::Bytes;
use fbdt_proto::testing::Assembler;
use fbdt_proto::{FrameDecoder, Session, SubflowId};
use gungraun::{library_benchmark, library_benchmark_group, main};

use busy::{FRAME, encoded};

fn decoding(acknowledgement: bool) -> (FrameDecoder, Vec<u8>) {
    let frame = if acknowledgement { busy::acknowledgement() } else { busy::data() };
    (FrameDecoder::new(64 << 10), encoded(&frame))
}

#[library_benchmark]
#[bench::data(decoding(false))]
#[bench::acknowledgement(decoding(true))]
fn decode((mut decoder, input): (FrameDecoder, Vec<u8>)) -> usize {
    black_box(busy::decode(&mut decoder, &input))
}

fn assembling(order: Vec<usize>) -> (Assembler, Vec<usize>, Bytes) {
    (Assembler::default(), order, Bytes::from(vec![7; FRAME]))
}

#[library_benchmark]
#[bench::in_order(assembling(busy::in_order()))]
#[bench::out_of_order(assembling(busy::out_of_order()))]
fn assemble((mut assembler, order, payload): (Assembler, Vec<usize>, Bytes)) -> Assembler {
    busy::assemble(&mut assembler, &order, &payload);
    black_box(assembler)
}

#[library_benchmark]
#[bench::one_path_one_stream(busy::busy_session(1, 1))]
#[bench::eight_paths_one_stream(busy::busy_session(8, 1))]
#[bench::eight_paths_1000_streams(busy::busy_session(8, 1000))]
fn transmit((mut session, subflows): (Session, Vec<SubflowId>)) -> (usize, Session) {
    black_box((busy::transmit(&mut session, &subflows), session))
}

library_benchmark_group!(name = core; benchmarks = decode, assemble, transmit);
main!(library_benchmark_groups = core);
