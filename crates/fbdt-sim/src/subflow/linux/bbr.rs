//! BBR, version 1, as Linux has it.
//!
//! Not modelled: its long-term rate behind a policer.

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

/// A smallest RTT counts for this long. Then the window is small for a while, so that it is measured anew.
const RTT_AGE: Duration = Duration::from_secs(10);
const PROBE_TIME: Duration = Duration::from_millis(200);
const LEAST_WINDOW: usize = 4 * MSS;

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
    Probe {
        phase: usize,
        since: Instant,
    },
    /// The window is small until then, and for a round at least; `None` while too much is in flight.
    ProbeRtt {
        until: Option<Instant>,
        round: u64,
    },
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
    /// The smallest RTT of late, and when it was measured.
    min_rtt: Option<(Duration, Instant)>,
    /// The window before it became small.
    window_before: f64,
    /// In the first round of a recovery no more is sent than arrives.
    conserves: bool,
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
            min_rtt: None,
            window_before: 0.0,
            conserves: false,
        }
    }

    /// A recovery begins.
    pub(super) const fn recover(&mut self) {
        self.conserves = true;
    }

    /// A recovery is over.
    pub(super) const fn recovered(&mut self) {
        self.conserves = false;
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
            Mode::ProbeRtt { .. } => rate,
        }
    }

    /// The window after an acknowledgement.
    pub(super) fn acked(&mut self, acked: &Acked, window: f64) -> f64 {
        let new_round = acked.departed_at >= self.next_round;
        if new_round {
            self.round += 1;
            self.next_round = acked.delivered;
            self.conserves = false;
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
        let window = self.probe_rtt(acked, window);
        self.window(acked, window)
    }

    fn least_rtt(&self, acked: &Acked) -> Duration {
        self.min_rtt.map_or(acked.min_rtt, |(rtt, _)| rtt)
    }

    /// Measures the smallest RTT anew when it is old; gives the window, as before such a time after it.
    fn probe_rtt(&mut self, acked: &Acked, window: f64) -> f64 {
        let (least, at) = *self.min_rtt.get_or_insert((acked.min_rtt, acked.now));
        let old = acked.now.saturating_since(at) > RTT_AGE;
        if let Some((_, rtt)) = acked.first
            && (rtt <= least || old)
        {
            self.min_rtt = Some((rtt, acked.now));
        }
        match self.mode {
            Mode::ProbeRtt { until: None, .. } if acked.in_flight <= LEAST_WINDOW => {
                let until = Some(acked.now + PROBE_TIME);
                self.mode = Mode::ProbeRtt { until, round: self.round };
                self.next_round = acked.delivered;
            }
            Mode::ProbeRtt { until: Some(until), round }
                if acked.now > until && self.round > round =>
            {
                self.min_rtt = Some((self.least_rtt(acked), acked.now));
                self.mode = match self.full_rounds {
                    0..3 => Mode::Startup,
                    _ => Mode::Probe { phase: 2, since: acked.now },
                };
                return window.max(self.window_before);
            }
            Mode::ProbeRtt { .. } => {}
            _ if old => {
                self.window_before = window;
                self.mode = Mode::ProbeRtt { until: None, round: self.round };
            }
            _ => {}
        }
        window
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
        let least = self.least_rtt(acked);
        let product = self.rate.get() * least.as_secs_f64();
        let in_flight = acked.in_flight as f64;
        match self.mode {
            Mode::Startup | Mode::ProbeRtt { .. } => {}
            Mode::Drain => {
                if in_flight <= product {
                    // Linux begins anywhere but in the phase that drains.
                    self.mode = Mode::Probe { phase: 2, since: acked.now };
                }
            }
            Mode::Probe { phase, since } => {
                let long = acked.now.saturating_since(since) > least;
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
        if self.conserves {
            return window.max(acked.in_flight as f64 + acked.bytes);
        }
        let product = self.rate.get() * self.least_rtt(acked).as_secs_f64();
        let full = self.full_rounds >= 3;
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
        match self.mode {
            Mode::ProbeRtt { .. } => LEAST_WINDOW as f64,
            _ => window.max(LEAST_WINDOW as f64),
        }
    }
}
