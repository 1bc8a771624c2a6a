//! Streams of a class take turns by what they have been served, and nobody gains by silence (F12).
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use fbdt_proto::{
    AckFrame, Class, Config, Frame, FrameDecoder, Instant, Limits, MessageOptions, Outgoing,
    PathId, Role, Session, StreamId, SubflowId, SubflowSample,
};

const MESSAGES: u32 = 1 << 31;
const STEP: Duration = Duration::from_millis(5);

/// A session with one path that carries about 100 kB in each step, and what its peer has.
struct Sender {
    session: Session,
    subflow: SubflowId,
    now: Instant,
    /// Whether its streams speak in messages.
    messages: bool,
    /// Up to where each stream, or its message space, has arrived.
    arrived: BTreeMap<u32, u64>,
    /// Limits that stay where they are.
    paused: BTreeMap<u32, u64>,
}

impl Sender {
    fn new(messages: bool) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let session = Session::new(now, Role::Client, Config::default(), Limits::default());
        let mut session = session.unwrap().with_messages();
        let subflow = session.subflow_up(now, PathId(0), "a");
        let (arrived, paused) = <_>::default();
        Self { session, subflow, now, messages, arrived, paused }
    }

    fn open(&mut self) -> StreamId {
        self.session.open_stream(self.now, Class::Background).unwrap()
    }

    fn space(&self, id: StreamId) -> u32 {
        if self.messages { id.0 | MESSAGES } else { id.0 }
    }

    /// The stream says as much as is taken of `bytes`.
    fn say(&mut self, id: StreamId, bytes: usize) {
        if !self.messages {
            let _ = self.session.write(self.now, id, &vec![1; bytes]);
            return;
        }
        for _ in 0..bytes.div_ceil(1000) {
            let message = Bytes::from(vec![1; bytes.min(1000)]);
            let _ = self.session.send_message(self.now, id, message, MessageOptions::default());
        }
    }

    /// A step later: what was sent before is acknowledged, and what may leave leaves. Bytes of each
    /// stream, or of its messages, that did.
    fn step(&mut self) -> BTreeMap<u32, u64> {
        self.now = self.now + STEP;
        for (&space, &cumulative) in &self.arrived {
            let limit = self.paused.get(&space).copied().unwrap_or(cumulative + 1_000_000);
            let ack = AckFrame { stream: StreamId(space), cumulative, limit, ranges: Vec::new() };
            self.session.handle_frame(self.now, self.subflow, Frame::Ack(ack)).unwrap();
        }
        let sample = SubflowSample {
            srtt: STEP,
            min_rtt: STEP,
            cwnd: 100_000,
            mss: 1448,
            delivery_rate: 20_000_000,
            ..SubflowSample::default()
        };
        self.session.handle_sample(self.now, self.subflow, &sample);
        let mut out = Outgoing::default();
        while self.session.poll_transmit(self.now, self.subflow, &mut out) {}
        let bytes = out.to_vec();
        let (mut decoder, mut rest) = (FrameDecoder::new(1 << 16), &bytes[..]);
        let mut sent = BTreeMap::new();
        while let Some(frame) = decoder.push(&mut rest).unwrap() {
            let (space, end, size) = match frame {
                Frame::Data { stream, offset, payload, .. } => {
                    (stream.0, offset + payload.len() as u64, payload.len() as u64)
                }
                Frame::Message { stream, offset, payload } => {
                    let size = payload.len() as u64 + 64;
                    (stream.0 | MESSAGES, offset + size, size)
                }
                _ => continue,
            };
            let arrived = self.arrived.entry(space).or_default();
            *arrived = end.max(*arrived);
            *sent.entry(space).or_default() += size;
        }
        sent
    }

    /// Steps in which all of `ids` say what is taken; the share of each in what was sent.
    fn shares(&mut self, ids: &[StreamId], mut also: impl FnMut(&mut Self)) -> Vec<f64> {
        let mut sums = vec![0; ids.len()];
        for _ in 0..30 {
            ids.iter().for_each(|id| self.say(*id, 400_000));
            also(self);
            let sent = self.step();
            for (sum, id) in sums.iter_mut().zip(ids) {
                *sum += sent.get(&self.space(*id)).copied().unwrap_or(0);
            }
        }
        let all: u64 = sums.iter().sum();
        assert!(all > 1_500_000, "{all} bytes in 30 steps");
        sums.iter().map(|sum| *sum as f64 / all as f64).collect()
    }
}

fn assert_equal(shares: &[f64], what: &str) {
    let equal = 1.0 / shares.len() as f64;
    let near = shares.iter().all(|share| (share / equal - 1.0).abs() < 0.15);
    assert!(near, "{what}: {shares:.2?}");
}

#[test]
fn f12_a_newcomer_gains_nothing_by_a_stream_that_may_not_send_nor_does_that_stream() {
    for messages in [false, true] {
        let mut sender = Sender::new(messages);
        let old = sender.open();
        // Its reader pauses: the first window is all that it gets.
        sender.paused.insert(sender.space(old), if messages { 16 << 10 } else { 256 << 10 });
        sender.say(old, 400_000);
        (0..5).for_each(|_| drop(sender.step()));
        let large = sender.open();
        assert_equal(&sender.shares(&[large], |_| {}), "alone");
        let new = sender.open();
        let shares = sender.shares(&[large, new], |_| {});
        assert_equal(&shares, &format!("beside a paused one, messages: {messages}"));
        sender.paused.clear();
        let shares = sender.shares(&[old, large, new], |_| {});
        assert_equal(&shares, &format!("it may go on, messages: {messages}"));
    }
}

#[test]
fn f12_a_newcomer_gains_nothing_by_a_stream_that_says_little_nor_does_that_stream() {
    for messages in [false, true] {
        let mut sender = Sender::new(messages);
        let [little, large] = [0, 1].map(|_| sender.open());
        // It says a little more before the last is acknowledged, and never falls silent.
        let trickle = |sender: &mut Sender| sender.say(little, 100);
        assert_equal(&sender.shares(&[large], trickle), "alone");
        let new = sender.open();
        let shares = sender.shares(&[large, new], trickle);
        assert_equal(&shares, &format!("beside one that says little, messages: {messages}"));
        let shares = sender.shares(&[little, large, new], |_| {});
        assert_equal(&shares, &format!("it says much, messages: {messages}"));
    }
}
