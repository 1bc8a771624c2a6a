//! Messages between the two ends: each is known, and checked where it arrives.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use fbdt_proto::{Class, Instant, MessageError, MessageOptions, StreamId};

use super::Simulation;
use crate::application::extend_pattern;
use crate::violation::Violation;

/// Bytes of a message's number.
const NUMBER: usize = 8;

/// A message that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Whether the client sent it.
    pub from_client: bool,
    /// Its stream.
    pub stream: StreamId,
    /// Its number, counted by its sender over all streams.
    pub number: u64,
    /// From the sender's call to the reader's.
    pub latency: Duration,
}

/// What was sent and has not arrived.
#[derive(Debug, Default)]
pub(super) struct Talk {
    next: [u64; 2],
    under_way: BTreeMap<(usize, u64), (StreamId, usize, Instant)>,
    arrived: Vec<Arrival>,
}

fn body(number: u64, from_client: bool, size: usize) -> Bytes {
    let mut bytes = number.to_be_bytes().to_vec();
    let stream = u32::try_from(number & 0xffff).unwrap_or(0);
    extend_pattern(stream, from_client, 0..size as u64, &mut bytes);
    bytes.into()
}

impl Simulation {
    /// Sends a message with `size` bytes behind its number on the stream; says which number.
    ///
    /// # Errors
    /// As [`fbdt_proto::Session::send_message`].
    pub fn send_message(
        &mut self,
        client: bool,
        stream: StreamId,
        size: usize,
        options: MessageOptions,
    ) -> Result<u64, MessageError> {
        let end = usize::from(!client);
        let number = self.talk.next[end];
        let bytes = body(number, client, size);
        self.ends[end].send_message(self.local(end), stream, bytes, options)?;
        self.talk.next[end] += 1;
        self.talk.under_way.insert((end, number), (stream, size, self.now));
        Ok(number)
    }

    /// Messages that have arrived so far, in their order.
    #[must_use]
    pub fn messages(&self) -> &[Arrival] {
        &self.talk.arrived
    }

    /// Gives the stream another class at this end.
    pub fn set_class(&mut self, client: bool, stream: StreamId, class: Class) {
        self.ends[usize::from(!client)].set_class(stream, class);
    }

    /// Reads all messages of a stream that are there.
    pub(super) fn read_messages(&mut self, end: usize, stream: StreamId) -> Result<(), Violation> {
        while let Ok(bytes) = self.ends[end].read_message(self.local(end), stream) {
            let wrong = |number, what| Violation::Message { stream: stream.0, number, what };
            let number = bytes.first_chunk::<NUMBER>().ok_or(wrong(0, "too short"))?;
            let (number, from) = (u64::from_be_bytes(*number), 1 - end);
            let sent = self.talk.under_way.remove(&(from, number));
            let (of, size, at) = sent.ok_or(wrong(number, "it is not expected (any more)"))?;
            if of != stream || bytes != body(number, from == 0, size) {
                return Err(wrong(number, "it is not what was sent"));
            }
            let latency = self.now.saturating_since(at);
            self.talk.arrived.push(Arrival { from_client: from == 0, stream, number, latency });
        }
        Ok(())
    }
}
