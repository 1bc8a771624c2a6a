//! One direction of a link: rate, delay, queue, loss, blackout, trace.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use fbdt_proto::Instant;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::growth::MSS;

/// What a TCP puts on a link together is at most this long; Linux has about 1 ms of its pacing rate,
/// and at least two segments too. What is dropped and repaired at once must not look like a rate.
const BURST: Duration = Duration::from_millis(4);

/// What a link does to bytes, in each direction.
#[derive(Clone, Debug, PartialEq)]
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
        }
    }

    /// When something small that comes at `at`, such as an acknowledgement, reaches the other end.
    pub(crate) fn crossed(&self, at: Instant) -> Instant {
        let wait = self.aggregation.map_or(Duration::ZERO, |(part, period)| {
            let phase = at.as_nanos() % (period.as_nanos().max(1) as u64);
            part.saturating_sub(Duration::from_nanos(phase))
        });
        at + wait + self.delay
    }

    fn rate_at(&self, now: Instant) -> f64 {
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
    /// It arrives then.
    Arrives(Instant),
    /// So many of its bytes are lost; the link itself works.
    Lost(usize),
    /// Nothing gets through now.
    Dark,
}

/// One direction, shared by all subflows that a path ever has. Its bottleneck
/// may be that of other links too.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) parameters: LinkParameters,
    /// When its bottleneck has sent what waits before it.
    free_at: Rc<Cell<Instant>>,
    stalled_until: Instant,
    rng: ChaCha8Rng,
}

impl Link {
    pub(crate) fn new(parameters: LinkParameters, rng: ChaCha8Rng) -> Self {
        Self { parameters, free_at: Rc::default(), stalled_until: Instant::ZERO, rng }
    }

    /// A link with a delay of its own over this one's bottleneck.
    pub(crate) fn beside(&self, delay: Duration, rng: ChaCha8Rng) -> Self {
        let parameters = LinkParameters { delay, ..self.parameters.clone() };
        let free_at = Rc::clone(&self.free_at);
        Self { parameters, free_at, stalled_until: Instant::ZERO, rng }
    }

    pub(crate) fn apply(&mut self, now: Instant, change: &LinkChange) {
        let parameters = &mut self.parameters;
        match change {
            LinkChange::Rate(rate) => parameters.rate = *rate,
            LinkChange::Delay(delay) => parameters.delay = *delay,
            LinkChange::Loss(loss) => parameters.loss = *loss,
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

    /// Puts `size` bytes on the link now.
    pub(crate) fn carry(&mut self, now: Instant, size: usize) -> Fate {
        let p = &self.parameters;
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
        Fate::Arrives(p.crossed(sent))
    }
}
