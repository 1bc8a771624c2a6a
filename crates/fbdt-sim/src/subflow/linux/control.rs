//! Congestion control: cubic or BBR.

use std::time::Duration;

use fbdt_proto::Instant;

use super::bbr::Bbr;
use crate::growth::{Cubic, HyStart, MSS};

const INITIAL_WINDOW: f64 = 10.0 * MSS as f64;
/// Below so many segments HyStart does not end slow start.
const HYSTART_WINDOW: f64 = 16.0 * MSS as f64;
/// What a loss leaves of cubic's window.
const KEPT: f64 = 0.7;

/// One acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Instant,
    /// Bytes that it acknowledges, in order or not.
    pub(super) bytes: f64,
    /// All that was acknowledged so far.
    pub(super) delivered: u64,
    /// How much had been acknowledged when the newest burst of these left.
    pub(super) departed_at: u64,
    /// When it left, and the RTT of its first byte, unless it was sent again.
    pub(super) first: Option<(Instant, Duration)>,
    pub(super) srtt: Duration,
    pub(super) min_rtt: Duration,
    pub(super) in_flight: usize,
    /// Most that was in flight in the last RTT.
    pub(super) used: usize,
    /// Most bytes that are sent together.
    pub(super) quantum: usize,
    /// The delivery rate, and whether the application limits it.
    pub(super) rate: f64,
    pub(super) limited: bool,
    /// Whether a loss is being repaired, and whether the timer found it.
    pub(super) losing: bool,
    pub(super) timed_out: bool,
}

#[derive(Debug)]
enum Kind {
    Cubic(Cubic, HyStart),
    Bbr(Box<Bbr>),
}

/// Window, threshold, and how they change.
#[derive(Debug)]
pub(super) struct Control {
    kind: Kind,
    pub(super) window: f64,
    pub(super) threshold: f64,
    /// The smallest RTT of data: Linux's cubic does not count the handshake's.
    least: Duration,
    /// Both before the present recovery.
    prior: Option<(f64, f64)>,
}

impl Control {
    pub(super) fn cubic() -> Self {
        Self::new(Kind::Cubic(Cubic::default(), HyStart::default()))
    }

    pub(super) fn bbr(now: Instant) -> Self {
        Self::new(Kind::Bbr(Box::new(Bbr::new(now))))
    }

    const fn new(kind: Kind) -> Self {
        let (window, least) = (INITIAL_WINDOW, Duration::MAX);
        Self { kind, window, threshold: f64::MAX, least, prior: None }
    }

    pub(super) const fn is_always_paced(&self) -> bool {
        matches!(self.kind, Kind::Bbr(_))
    }

    /// Bytes per second that it spreads what it sends to.
    pub(super) fn pacing_rate(&self, srtt: Duration, in_flight: usize) -> f64 {
        match &self.kind {
            Kind::Bbr(bbr) => bbr.pacing_rate(self.window, srtt),
            Kind::Cubic(..) => {
                let ratio = if self.window * 2.0 < self.threshold { 2.0 } else { 1.2 };
                ratio * self.window.max(in_flight as f64) / srtt.as_secs_f64().max(1e-6)
            }
        }
    }

    pub(super) fn acked(&mut self, acked: &Acked) {
        self.least = acked.first.map_or(self.least, |(_, rtt)| rtt.min(self.least));
        match &mut self.kind {
            Kind::Bbr(bbr) => self.window = bbr.acked(acked, self.window),
            Kind::Cubic(..) if acked.losing && !acked.timed_out => {}
            Kind::Cubic(cubic, hystart) => {
                if self.window < self.threshold {
                    let full = acked.first.is_some_and(|(sent, rtt)| {
                        // A receiver acknowledges every second segment.
                        let samples = (acked.bytes as usize).div_ceil(2 * MSS);
                        hystart.queue_began(acked.now, sent, samples, rtt, self.least)
                    });
                    if full && self.window >= HYSTART_WINDOW {
                        self.threshold = self.window;
                    }
                }
                // A window that is not used does not grow (RFC 7661).
                let (mss, used) = (MSS as f64, acked.used as f64);
                if self.window < self.threshold {
                    if self.window < 2.0 * used {
                        self.window += acked.bytes;
                    }
                } else if self.window <= used + acked.quantum as f64 {
                    let (window, bytes) = (self.window / mss, acked.bytes / mss);
                    self.window = cubic.grow(acked.now, window, bytes, acked.srtt) * mss;
                }
            }
        }
    }

    /// Something is lost: `anew` unless something else is being repaired.
    pub(super) fn lose(&mut self, timed_out: bool, anew: bool, in_flight: usize) {
        if anew {
            self.prior = Some((self.window, self.threshold));
        }
        match &mut self.kind {
            Kind::Cubic(cubic, _) => {
                cubic.lose(self.window / MSS as f64, KEPT);
                self.threshold = (self.window * KEPT).max(2.0 * MSS as f64);
                self.window = self.threshold;
            }
            Kind::Bbr(bbr) if anew && !timed_out => {
                bbr.recover();
                self.window = (in_flight + MSS) as f64;
            }
            Kind::Bbr(_) => {}
        }
        if timed_out {
            self.window = (in_flight + MSS) as f64;
        }
    }

    /// So many bytes more are known to be lost: BBR leaves them no room in its window.
    pub(super) fn lost(&mut self, bytes: usize) {
        if matches!(self.kind, Kind::Bbr(_)) {
            self.window = (self.window - bytes as f64).max(MSS as f64);
        }
    }

    /// Nothing was lost: the window is as before.
    pub(super) fn undo(&mut self) {
        if let Kind::Bbr(bbr) = &mut self.kind {
            bbr.recovered();
        }
        if let Some((window, threshold)) = self.prior.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
        }
    }

    /// A recovery is over. BBR has its window back.
    pub(super) fn recovered(&mut self) {
        if let Some((window, _)) = self.prior
            && let Kind::Bbr(bbr) = &mut self.kind
        {
            bbr.recovered();
            self.window = self.window.max(window);
        }
    }
}
