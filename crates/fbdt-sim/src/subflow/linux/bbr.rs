//! BBR, version 1, as Linux has it.
//!
//! Not modelled: probing for the RTT, its long-term rate behind a policer, and packet conservation in the
//! first round of a recovery. Losses do not change its window.

use std::collections::VecDeque;
use std::time::Duration;

use fbdt_proto::Instant;

use super::control::Acked;
use crate::growth::MSS;

/// 2 / ln 2: it doubles the rate in each round.
const STARTUP: f64 = 2.89;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Rounds over which the greatest delivery rate counts.
const RATE_ROUNDS: u64 = 10;
/// Rounds over which the greatest gathered acknowledgement counts.
const EXTRA_ROUNDS: u64 = 10;
/// Most that acknowledgements are expected to be gathered for.
const MOST_EXTRA: Duration = Duration::from_millis(100);

/// The greatest value of the latest rounds.
#[derive(Debug, Default)]
struct Greatest {
    values: VecDeque<(u64, f64)>,
}

impl Greatest {
    fn note(&mut self, round: u64, value: f64, rounds: u64) {
        while self.values.pop_back_if(|(_, last)| *last <= value).is_some() {}
        self.values.push_back((round, value));
        while self.values.pop_front_if(|(at, _)| *at + rounds < round).is_some() {}
    }

    fn get(&self) -> f64 {
        self.values.front().map_or(0.0, |(_, value)| *value)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Probe { phase: usize, since: Instant },
}

#[derive(Debug)]
pub(super) struct Bbr {
    rate: Greatest,
    round: u64,
    /// The round ends when something is acknowledged that left after so much was.
    next_round: u64,
    mode: Mode,
    full_rate: f64,
    full_rounds: u32,
    /// The pacing rate of startup, which never falls: small answers say little about the link.
    startup_rate: f64,
    /// Gathered acknowledgements: since when, how many bytes, and the greatest excess over the rate.
    epoch: (Instant, f64),
    extra: Greatest,
}

impl Bbr {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            rate: Greatest::default(),
            round: 0,
            next_round: 0,
            mode: Mode::Startup,
            full_rate: 0.0,
            full_rounds: 0,
            startup_rate: 0.0,
            epoch: (now, 0.0),
            extra: Greatest::default(),
        }
    }

    /// Bytes per second; at first what the first window in an RTT is.
    pub(super) fn pacing_rate(&self, window: f64, srtt: Duration) -> f64 {
        // Linux stays a hundredth below, so that no queue is left.
        let rate = 0.99 * self.rate.get();
        match self.mode {
            Mode::Startup if self.startup_rate > 0.0 => self.startup_rate,
            Mode::Startup => STARTUP * window / srtt.as_secs_f64().max(1e-6),
            Mode::Drain => rate / STARTUP,
            Mode::Probe { phase, .. } => rate * CYCLE[phase],
        }
    }

    /// The window after an acknowledgement.
    pub(super) fn acked(&mut self, acked: &Acked, window: f64) -> f64 {
        let new_round = acked.departed_at >= self.next_round;
        if new_round {
            self.round += 1;
            self.next_round = acked.delivered;
        }
        if !acked.limited || acked.rate >= self.rate.get() {
            self.rate.note(self.round, acked.rate, RATE_ROUNDS);
        }
        if self.startup_rate <= 0.0 {
            self.startup_rate = self.pacing_rate(window, acked.srtt);
        }
        self.startup_rate = self.startup_rate.max(0.99 * STARTUP * self.rate.get());
        self.note_extra(acked, window);
        if new_round && !acked.limited && self.mode == Mode::Startup {
            self.note_full();
        }
        self.advance(acked);
        self.window(acked, window)
    }

    /// Startup is over when the rate has not grown by a quarter for three rounds.
    fn note_full(&mut self) {
        if self.rate.get() >= 1.25 * self.full_rate {
            (self.full_rate, self.full_rounds) = (self.rate.get(), 0);
            return;
        }
        self.full_rounds += 1;
        if self.full_rounds >= 3 {
            self.mode = Mode::Drain;
        }
    }

    fn advance(&mut self, acked: &Acked) {
        let product = self.rate.get() * acked.min_rtt.as_secs_f64();
        let in_flight = acked.in_flight as f64;
        match self.mode {
            Mode::Startup => {}
            Mode::Drain => {
                if in_flight <= product {
                    // Linux begins anywhere but in the phase that drains.
                    self.mode = Mode::Probe { phase: 2, since: acked.now };
                }
            }
            Mode::Probe { phase, since } => {
                let long = acked.now.saturating_since(since) > acked.min_rtt;
                let next = match phase {
                    0 => long && (acked.losing || in_flight >= 1.25 * product),
                    1 => long || in_flight <= product,
                    _ => long,
                };
                if next {
                    let phase = (phase + 1) % CYCLE.len();
                    self.mode = Mode::Probe { phase, since: acked.now };
                }
            }
        }
    }

    fn note_extra(&mut self, acked: &Acked, window: f64) {
        let rate = self.rate.get();
        let (since, bytes) = self.epoch;
        let expected = rate * acked.now.saturating_since(since).as_secs_f64();
        let (expected, bytes) = if bytes <= expected {
            self.epoch = (acked.now, 0.0);
            (0.0, acked.bytes)
        } else {
            (expected, bytes + acked.bytes)
        };
        self.epoch.1 = bytes;
        let extra = (bytes - expected).min(window).min(rate * MOST_EXTRA.as_secs_f64());
        self.extra.note(self.round, extra, EXTRA_ROUNDS);
    }

    fn window(&self, acked: &Acked, window: f64) -> f64 {
        let product = self.rate.get() * acked.min_rtt.as_secs_f64();
        let full = self.mode != Mode::Startup;
        let gain =
            if self.mode == Mode::Startup || self.mode == Mode::Drain { STARTUP } else { 2.0 };
        let extra = if full { self.extra.get() } else { 0.0 };
        let target = gain * product + 3.0 * acked.quantum as f64 + extra;
        let grown = window + acked.bytes;
        let window = match full {
            true => grown.min(target),
            false if window < target || acked.delivered < 10 * MSS as u64 => grown,
            false => window,
        };
        window.max(4.0 * MSS as f64)
    }
}
