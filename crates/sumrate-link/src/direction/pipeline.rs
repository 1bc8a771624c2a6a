//! The pipeline of one direction, wired together.

use std::ops::Range;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use super::bucket::Bucket;
use super::counters::Counters;
use super::delay::DelayLine;
use super::loss::Loss;
use super::policer::Policer;
use super::queue::{Queue, bits_of};
use super::rate::Rate;
use crate::config::parameters::{Parameters, Update};
use crate::config::{Jitter, QueueLimit, RateSetting};
use crate::packet::{Frame, Packet};
use crate::time::Nanos;

/// Most segments that are sent as one part of a super-packet when the rate is limited.
const MAX_PART: usize = 16;
/// A part takes no longer than this to send, unless it is a single segment.
const MAX_PART_TIME: Nanos = 500_000;

/// What the transmitter is sending: a part of the packet at the queue's head, or one segment that will be lost.
#[derive(Clone, Debug)]
struct InService {
    segments: Range<usize>,
    lost: bool,
    bits: u64,
    /// Bits left at time `since`.
    left: u64,
    since: Nanos,
    finish: Option<Nanos>,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Pipeline {
    parameters: Parameters,
    rate: Rate,
    trace_origin: Nanos,
    bucket: Bucket,
    /// A policer instead of the bucket, and the rate at which it fills.
    policer: Option<(Policer, Rate)>,
    queue: Queue,
    service: Option<InService>,
    /// When the transmitter finished its last part.
    idle_since: Nanos,
    /// The next segment was already drawn as lost.
    loses_next: bool,
    loss: Loss,
    line: DelayLine<Frame>,
    random: ChaCha8Rng,
    counters: Counters,
}

impl Pipeline {
    /// A direction with these parameters; a trace in them begins at `now`.
    pub fn new(now: Nanos, parameters: Parameters, random: ChaCha8Rng) -> Pipeline {
        Pipeline {
            rate: effective_rate(&parameters, now),
            loss: Loss::new(parameters.loss, parameters.loss_burst),
            bucket: Bucket::full(now, parameters.burst),
            policer: parameters
                .policer
                .then(|| (Policer::full(now, parameters.burst), configured_rate(&parameters, now))),
            parameters,
            trace_origin: now,
            queue: Queue::default(),
            service: None,
            idle_since: now,
            loses_next: false,
            line: DelayLine::default(),
            random,
            counters: Counters::default(),
        }
    }

    /// The parameters in force.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The rate in force.
    pub fn rate(&self) -> &Rate {
        &self.rate
    }

    /// Counts so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Bytes that wait for the transmitter.
    pub fn queue_bytes(&self, now: Nanos) -> u64 {
        self.queue.bits().saturating_sub(self.served(now)) / 8
    }

    /// Takes in a packet.
    pub fn arrive(&mut self, now: Nanos, packet: Packet) {
        self.advance(now);
        let segments = packet.segments();
        self.counters.packets_in += 1;
        self.counters.segments_in += segments as u64;
        self.counters.bytes_in += packet.wire_bytes(&(0..segments)) as u64;
        let (passed, limit) = match &mut self.policer {
            None => (segments, self.parameters.queue),
            // Packets only queue behind a hold or a sleeping radio, which no limit in time bounds.
            Some((policer, rate)) => (policer.pass(rate, now, &packet), QueueLimit::Time(0)),
        };
        self.counters.policer_drops += (segments - passed) as u64;
        let served = self.served(now);
        let admitted = self.queue.admit(now, packet, passed, limit, &self.rate, served);
        self.counters.queue_drops += (passed - admitted) as u64;
        self.advance(now);
        let waiting = self.queue_bytes(now);
        self.counters.queue_peak_bytes = self.counters.queue_peak_bytes.max(waiting);
    }

    /// Changes parameters. What is in flight stays in flight; what is being sent goes on at the new rate.
    pub fn apply(&mut self, now: Nanos, update: &Update) {
        self.advance(now);
        let rate_changes =
            update.rate.is_some() || update.hold.is_some() || update.policer.is_some();
        match self.service.as_mut() {
            Some(service) if rate_changes => {
                let sent = self.rate.bits_between(service.since, now);
                service.left = service.left.saturating_sub(sent);
                service.since = service.since.max(now);
            }
            Some(_) => {}
            None => self.bucket.fill(&self.rate, now),
        }
        self.parameters.apply(update);
        if update.burst.is_some() {
            self.bucket.resize(self.parameters.burst);
        }
        if update.rate.is_some() {
            self.trace_origin = now;
        }
        self.rate = effective_rate(&self.parameters, self.trace_origin);
        self.change_policer(now);
        if update.loss.is_some() || update.loss_burst.is_some() {
            self.loss = Loss::new(self.parameters.loss, self.parameters.loss_burst);
            self.loses_next = false;
        }
        if let Some(service) = self.service.as_mut().filter(|_| rate_changes) {
            service.finish = self.rate.finish(service.since, service.left);
        }
        self.advance(now);
    }

    fn change_policer(&mut self, now: Nanos) {
        let Parameters { policer, burst, .. } = self.parameters;
        self.policer = policer.then(|| {
            let mut bucket = Policer::full(now, burst);
            if let Some((before, rate)) = &self.policer {
                bucket = *before;
                bucket.change(rate, now, burst);
            }
            (bucket, configured_rate(&self.parameters, self.trace_origin))
        });
    }

    /// When the transmitter had sent everything; `None` while something waits or is being sent.
    pub fn busy_until(&self) -> Option<Nanos> {
        (self.service.is_none() && self.queue.head().is_none()).then_some(self.idle_since)
    }

    /// Sends nothing more before `until`, but what is being sent.
    pub fn pause(&mut self, until: Nanos) {
        self.idle_since = self.idle_since.max(until);
    }

    /// Does what the transmitter has done by `now`.
    pub fn advance(&mut self, now: Nanos) {
        loop {
            if self.service.is_none() {
                self.service = self.start_next();
            }
            match self.service.as_ref().and_then(|service| service.finish) {
                Some(finish) if finish <= now => self.complete(finish),
                _ => return,
            }
        }
    }

    /// When `advance` and `pop_due` have something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let sent = self.service.as_ref().and_then(|service| service.finish);
        // A part that is through needs nothing before it may have crossed the link.
        let least = match self.parameters.jitter {
            Jitter::Uniform(_) => self.parameters.delay,
            Jitter::Normal(_) => 0,
        };
        let crossed = sent.map(|finish| finish.saturating_add(least));
        match (crossed, self.line.next_due()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The next frame that is due at `now`, with the time at which it was.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, Frame)> {
        self.line.pop_due(now)
    }

    /// Counts a frame that the device took, or refused.
    pub fn sent(&mut self, frame: &Frame, taken: bool) {
        if taken {
            self.counters.packets_out += 1;
            self.counters.segments_out += frame.segments() as u64;
            self.counters.bytes_out += frame.wire_bytes() as u64;
        } else {
            self.counters.device_drops += frame.segments() as u64;
        }
    }

    /// Bits of the part in service that have left by `now`.
    fn served(&self, now: Nanos) -> u64 {
        self.service.as_ref().map_or(0, |service| {
            let sent = self.rate.bits_between(service.since, now).min(service.left);
            service.bits - (service.left - sent)
        })
    }

    fn start_next(&mut self) -> Option<InService> {
        let head = self.queue.head()?;
        let start = self.idle_since.max(head.arrived);
        let first = head.next;
        let (mut end, lost) = if std::mem::take(&mut self.loses_next) {
            (first + 1, true)
        } else {
            let limit = head.end.min(first.saturating_add(part_limit(
                &self.rate,
                start,
                head.packet.wire_bytes(&(first..first + 1)),
            )));
            let mut end = first;
            while end < limit && !self.loses_next {
                self.loses_next = self.loss.is_lost(&mut self.random);
                end += usize::from(!self.loses_next);
            }
            let lost = end == first && std::mem::take(&mut self.loses_next);
            (end, lost)
        };
        end = end.max(first + 1);
        let bits = bits_of(&head.packet, first..end);
        self.bucket.fill(&self.rate, start);
        let left = self.bucket.pay(bits);
        Some(InService {
            segments: first..end,
            lost,
            bits,
            left,
            since: start,
            finish: self.rate.finish(start, left),
        })
    }

    fn complete(&mut self, finish: Nanos) {
        let Some(service) = self.service.take() else {
            return;
        };
        let count = service.segments.len() as u64;
        if self.parameters.blackout {
            self.counters.blackout_drops += count;
        } else if service.lost {
            self.counters.lost += count;
        } else if let Some(head) = self.queue.head() {
            let segments = service.segments.clone();
            self.line.carry(finish, &self.parameters, &mut self.random, &head.packet, segments);
        }
        self.queue.advance(service.segments.len());
        self.idle_since = finish;
        self.bucket.spent_until(finish);
    }
}

/// The rate at which the transmitter sends: behind a policer nothing is spaced.
fn effective_rate(parameters: &Parameters, trace_origin: Nanos) -> Rate {
    match (parameters.hold, parameters.policer) {
        (true, _) => Rate::Stopped,
        (false, true) => Rate::Unlimited,
        (false, false) => configured_rate(parameters, trace_origin),
    }
}

/// The rate that parameters ask for.
fn configured_rate(parameters: &Parameters, trace_origin: Nanos) -> Rate {
    match &parameters.rate {
        RateSetting::Unlimited => Rate::Unlimited,
        RateSetting::Constant(rate) => Rate::Constant(*rate),
        RateSetting::Trace(trace) => Rate::Trace { trace: Arc::clone(trace), origin: trace_origin },
    }
}

/// Segments of `wire_bytes` that are sent as one part.
fn part_limit(rate: &Rate, now: Nanos, wire_bytes: usize) -> usize {
    if *rate == Rate::Unlimited {
        return usize::MAX;
    }
    let possible = rate.bits_between(now, now.saturating_add(MAX_PART_TIME)) / 8;
    let segments = possible / (wire_bytes as u64).max(1);
    usize::try_from(segments).map_or(MAX_PART, |segments| segments.clamp(1, MAX_PART))
}
