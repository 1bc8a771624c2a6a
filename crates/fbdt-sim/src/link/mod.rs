//! One direction of a link: rate, delay, queue, loss, blackout, trace, and impairments.

mod impairments;

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use fbdt_proto::Instant;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use self::impairments::{Impairments, Sleep};
use self::impairments::{Losses, Radio, keep_awake, wake};
use crate::START;
use crate::growth::MSS;

/// What a TCP puts on a link together is at most this long; Linux has about 1 ms of its pacing rate,
/// and at least two segments too. What is dropped and repaired at once must not look like a rate.
const BURST: Duration = Duration::from_millis(4);

/// What a link does to bytes, in each direction.
#[derive(Clone, PartialEq)]
pub struct LinkParameters {
    /// Bytes per second.
    pub rate: f64,
    /// One-way delay.
    pub delay: Duration,
    /// Longest wait in the bottleneck's queue.
    pub queue: Duration,
    /// Probability that a segment of 1448 bytes is lost.
    pub loss: f64,
    /// Whether nothing gets through.
    pub blackout: bool,
    /// Whether a proxy on the way acknowledges bytes and keeps them.
    pub held: bool,
    /// Rates that repeat, each for its time; they replace `rate` if any.
    pub trace: Vec<(Duration, f64)>,
    /// What comes in the first part of each period waits for its end, and goes at once then: that
    /// part and the period. Radios and drivers gather acknowledgements so.
    pub aggregation: Option<(Duration, Duration)>,
    /// Jitter, token buckets, bursts of losses, rate steps and radio sleep.
    pub impairments: Impairments,
}

// The tournament tells matrices apart by this text: it stays as it is for links without impairments.
impl fmt::Debug for LinkParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("LinkParameters");
        text.field("rate", &self.rate)
            .field("delay", &self.delay)
            .field("queue", &self.queue)
            .field("loss", &self.loss)
            .field("blackout", &self.blackout)
            .field("held", &self.held)
            .field("trace", &self.trace)
            .field("aggregation", &self.aggregation);
        if self.impairments != Impairments::default() {
            text.field("impairments", &self.impairments);
        }
        text.finish()
    }
}

impl LinkParameters {
    /// A clean link of `mbps` Mbit/s with a base RTT of `rtt_ms`.
    #[must_use]
    pub fn new(mbps: f64, rtt_ms: f64) -> Self {
        Self {
            rate: mbps * 1e6 / 8.0,
            delay: Duration::from_secs_f64(rtt_ms / 2e3),
            queue: Duration::from_millis(20),
            loss: 0.0,
            blackout: false,
            held: false,
            trace: Vec::new(),
            aggregation: None,
            impairments: Impairments::default(),
        }
    }

    /// When something small that comes at `at`, such as an acknowledgement, reaches the other end.
    pub(crate) fn crossed(&self, at: Instant) -> Instant {
        self.gathered(at) + self.delay
    }

    /// When what comes at `at` goes on, if the link gathers.
    fn gathered(&self, at: Instant) -> Instant {
        let wait = self.aggregation.map_or(Duration::ZERO, |(part, period)| {
            let phase = at.as_nanos() % (period.as_nanos().max(1) as u64);
            part.saturating_sub(Duration::from_nanos(phase))
        });
        at + wait
    }

    /// When `bytes` that begin at `start` are through.
    fn drained(&self, now: Instant, start: Instant, bytes: f64) -> Instant {
        if self.impairments.rates.is_empty() {
            return start + Duration::from_secs_f64(bytes / self.rate_at(now));
        }
        let from = start.saturating_since(START);
        START + self.impairments.drained(self.rate, from, bytes)
    }

    /// Bytes that pass between two times.
    fn volume(&self, from: Instant, to: Instant) -> f64 {
        if self.impairments.rates.is_empty() {
            return to.saturating_since(from).as_secs_f64() * self.rate_at(from);
        }
        let times = [from, to].map(|at| at.saturating_since(START));
        self.impairments.volume(self.rate, times[0], times[1])
    }

    fn rate_at(&self, now: Instant) -> f64 {
        if !self.impairments.rates.is_empty() {
            return self.impairments.rate_at(self.rate, now.saturating_since(START));
        }
        let period: Duration = self.trace.iter().map(|(time, _)| *time).sum();
        if period.is_zero() {
            return self.rate;
        }
        let mut at = Duration::from_nanos(now.as_nanos() % period.as_nanos().max(1) as u64);
        for (time, rate) in &self.trace {
            if at < *time {
                return *rate;
            }
            at -= *time;
        }
        self.rate
    }
}

/// A change of a link while the simulation runs.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkChange {
    /// New rate, bytes per second.
    Rate(f64),
    /// New one-way delay.
    Delay(Duration),
    /// New loss probability.
    Loss(f64),
    /// Begin or end of a blackout.
    Blackout(bool),
    /// Begin or end of a proxy's keeping what it acknowledges.
    Held(bool),
    /// What is sent from now on waits for this long, and nothing is dropped.
    Stall(Duration),
    /// What comes is gathered from now on, or no more: see [`LinkParameters::aggregation`].
    Aggregation(Option<(Duration, Duration)>),
}

/// What became of a burst of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its first byte and its last one arrive then.
    Arrives { first: Instant, last: Instant },
    /// So many of its bytes are lost; the link itself works.
    Lost(usize),
    /// Nothing gets through now.
    Dark,
}

/// How a burst crosses the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    /// When its first byte arrives.
    pub(crate) first: Instant,
    /// When its last one does.
    pub(crate) last: Instant,
    /// Bytes that are lost, in whole segments and in order.
    pub(crate) lost: Vec<Range<usize>>,
}

/// A burst's part that passed the bottleneck.
struct Passed {
    first: Instant,
    last: Instant,
    bytes: usize,
}

/// One direction, shared by all subflows that a path ever has. Its bottleneck
/// may be that of other links too.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) parameters: LinkParameters,
    /// When its bottleneck has sent what waits before it, without the burst that a token bucket allows.
    free_at: Rc<Cell<Instant>>,
    stalled_until: Instant,
    rng: ChaCha8Rng,
    radio: Rc<Cell<Radio>>,
    losses: Losses,
    /// When the last segment, and the last acknowledgement, arrives of those that keep their order.
    arrived: [Instant; 2],
}

impl Link {
    pub(crate) fn new(parameters: LinkParameters, rng: ChaCha8Rng) -> Self {
        Self {
            parameters,
            free_at: Rc::default(),
            stalled_until: Instant::ZERO,
            rng,
            radio: Rc::default(),
            losses: Losses::default(),
            arrived: [Instant::ZERO; 2],
        }
    }

    /// Both directions of a path, which share its radio: client to server, server to client.
    pub(crate) fn seeded_pair(parameters: [LinkParameters; 2], seed: u64) -> [Self; 2] {
        let rng = |salt: u64| ChaCha8Rng::seed_from_u64(seed ^ (salt << 40));
        let [up, down] = parameters;
        let up = Self::new(up, rng(1));
        let down = Self { radio: Rc::clone(&up.radio), ..Self::new(down, rng(2)) };
        [up, down]
    }

    /// A link with a delay of its own over this one's bottleneck.
    pub(crate) fn beside(&self, delay: Duration, rng: ChaCha8Rng) -> Self {
        let parameters = LinkParameters { delay, ..self.parameters.clone() };
        Self { free_at: Rc::clone(&self.free_at), ..Self::new(parameters, rng) }
    }

    pub(crate) fn apply(&mut self, now: Instant, change: &LinkChange) {
        let parameters = &mut self.parameters;
        match change {
            LinkChange::Rate(rate) => parameters.rate = *rate,
            LinkChange::Delay(delay) => parameters.delay = *delay,
            LinkChange::Loss(loss) => {
                parameters.loss = *loss;
                self.losses = Losses::default();
            }
            LinkChange::Blackout(blackout) => parameters.blackout = *blackout,
            LinkChange::Held(held) => parameters.held = *held,
            LinkChange::Stall(time) => self.stalled_until = now + *time,
            LinkChange::Aggregation(held) => parameters.aggregation = *held,
        }
    }

    /// Whether nothing gets through now.
    pub(crate) fn is_dark(&self, now: Instant) -> bool {
        self.parameters.blackout || self.parameters.rate_at(now) <= 0.0
    }

    /// Whether what is sent now waits.
    pub(crate) fn is_stalled(&self, now: Instant) -> bool {
        self.stalled_until > now
    }

    /// How long `size` bytes take at the rate that it has now.
    pub(crate) fn time_of(&self, now: Instant, size: usize) -> Duration {
        let rate = self.parameters.rate_at(now);
        if rate > 0.0 { Duration::from_secs_f64(size as f64 / rate) } else { Duration::ZERO }
    }

    /// Most bytes that a TCP puts on it together: [`BURST`] at its rate, in whole segments.
    pub(crate) fn burst(&self, now: Instant) -> usize {
        let bytes = (self.parameters.rate_at(now) * BURST.as_secs_f64()) as usize;
        (bytes / MSS).max(2) * MSS
    }

    /// Puts `size` bytes on the link now, of a TCP that knows of a burst only whether it arrived.
    pub(crate) fn carry(&mut self, now: Instant, size: usize) -> Fate {
        let p = &self.parameters;
        if p.impairments != Impairments::default() {
            return self.carry_impaired(now, size);
        }
        let rate = p.rate_at(now);
        if p.blackout || rate <= 0.0 {
            return Fate::Dark;
        }
        let open = self.stalled_until.max(now);
        let start = self.free_at.get().max(open);
        if start.saturating_since(open) > p.queue {
            return Fate::Lost(size);
        }
        let sent = start + Duration::from_secs_f64(size as f64 / rate);
        self.free_at.set(sent);
        let segments = size.div_ceil(MSS) as i32;
        let kept = (1.0 - p.loss).powi(segments);
        if p.loss > 0.0 && self.rng.random::<f64>() >= kept {
            return Fate::Lost(MSS.min(size));
        }
        let at = p.crossed(sent);
        Fate::Arrives { first: at - self.time_of(now, size), last: at }
    }

    fn carry_impaired(&mut self, now: Instant, size: usize) -> Fate {
        let Some(crossing) = self.cross(now, size) else { return Fate::Dark };
        match crossing.lost.iter().map(Range::len).sum() {
            0 => Fate::Arrives { first: crossing.first, last: crossing.last },
            lost => Fate::Lost(lost),
        }
    }

    /// Puts `size` bytes on the link now; `None` if nothing gets through.
    pub(crate) fn cross(&mut self, now: Instant, size: usize) -> Option<Crossing> {
        if self.is_dark(now) {
            return None;
        }
        let passed = self.pass(now, size);
        let p = &self.parameters;
        let run = p.impairments.loss_run;
        let count = passed.bytes.div_ceil(MSS) as u64;
        let lost = self.losses.next(count, (p.loss, run), &mut self.rng);
        let bytes = |segment: u64| (segment as usize * MSS).min(passed.bytes);
        let mut lost: Vec<_> = lost.into_iter().map(|r| bytes(r.start)..bytes(r.end)).collect();
        if passed.bytes < size {
            lost.push(passed.bytes..size);
        }
        if passed.bytes == 0 {
            return Some(Crossing { first: now, last: now, lost });
        }
        // The last byte has the greatest of the draws, of which the first segment's is one.
        let others = p.impairments.segments_at_the_end(passed.bytes, p.rate_at(now)) - 1.0;
        let delay = self.delay(1.0);
        let first = self.arrival(passed.first, delay);
        let last = if others < 1.0 {
            self.arrival(passed.last, delay)
        } else {
            let greatest = self.delay(others);
            self.arrival(passed.last, greatest)
        };
        let last = last.max(first);
        self.arrived[0] = self.arrived[0].max(last);
        Some(Crossing { first, last, lost })
    }

    /// When a few bytes that are sent now have arrived, if nothing of them is lost.
    pub(crate) fn crossed(&mut self, now: Instant, size: usize) -> Option<Instant> {
        self.cross(now, size).filter(|crossing| crossing.lost.is_empty()).map(|c| c.last)
    }

    /// When an acknowledgement that leaves at `at` reaches the other end.
    pub(crate) fn cross_back(&mut self, at: Instant) -> Instant {
        let delay = self.delay(1.0);
        let p = &self.parameters;
        let at = p.gathered(at) + delay;
        if p.impairments.overtaking || p.impairments.jitter.is_zero() {
            return at;
        }
        self.arrived[1] = self.arrived[1].max(at);
        self.arrived[1]
    }

    /// RTT that a TCP's handshake measures if its first segment leaves at `now`: jitter and gathering
    /// make it another one than the base RTT.
    pub(crate) fn handshake(&mut self, back: &mut Self, now: Instant) -> Duration {
        let there = self.cross_back(now);
        back.cross_back(there).saturating_since(now)
    }

    /// The one-way delay, the greatest of so many draws where it varies.
    fn delay(&mut self, draws: f64) -> Duration {
        let p = &self.parameters;
        p.impairments.delay(p.delay, draws, &mut self.rng)
    }

    /// When what left the bottleneck at `at` arrives.
    fn arrival(&self, at: Instant, delay: Duration) -> Instant {
        let p = &self.parameters;
        let at = p.gathered(at) + delay;
        if p.impairments.overtaking { at } else { at.max(self.arrived[0]) }
    }

    /// Takes `size` bytes through the bottleneck, or as many of them as fit.
    fn pass(&mut self, now: Instant, size: usize) -> Passed {
        let p = &self.parameters;
        let mut open = self.stalled_until.max(now);
        if let Some(sleep) = p.impairments.sleep {
            open = open.max(wake(&self.radio, sleep, now));
        }
        let start = self.free_at.get().max(open);
        let depth = p.impairments.burst as f64;
        let before = p.volume(open, start);
        let room = if p.impairments.policer {
            (depth - before) / MSS as f64
        } else {
            1.0 + (depth + p.queue.as_secs_f64() * p.rate - before) / MSS as f64
        };
        let bytes = (room.max(0.0) as usize).saturating_mul(MSS).min(size);
        let sent = p.drained(now, start, bytes as f64);
        self.free_at.set(sent);
        // Bytes beyond the bucket wait for its tokens, which come at a rate that may change meanwhile.
        let brought = |bytes: f64| p.drained(now, open, (bytes - depth).max(0.0));
        let [first, last] = match p.impairments.policer {
            true => [open; 2],
            false => [brought(before), brought(before + bytes as f64)],
        };
        if p.impairments.sleep.is_some() {
            keep_awake(&self.radio, last);
        }
        Passed { first, last, bytes }
    }
}
