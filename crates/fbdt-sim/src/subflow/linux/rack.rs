//! Which bursts are lost, as Linux finds out (RFC 8985): something that was sent later is acknowledged,
//! and the time that segments may overtake each other by is over.
//!
//! Not modelled: the probe's own episode rules, and F-RTO. A retransmission that turns out to be
//! needless is undone when the original's acknowledgement arrives, as by timestamps.

use std::collections::VecDeque;
use std::time::Duration;

use fbdt_proto::Instant;

/// Recoveries after which a widened reordering window is narrow again.
const PERSIST: u32 = 16;
/// Segments selectively acknowledged after which order no longer matters, as long as none has overtaken.
const DUPLICATES: u64 = 3;

/// RACK's memory.
#[derive(Debug)]
pub(super) struct Rack {
    /// The transmission that was sent last of those that are acknowledged.
    newest: (Instant, u64),
    /// How long it took.
    rtt: Duration,
    reordering: bool,
    steps: u32,
    persist: u32,
    widened: Instant,
    /// Transmissions by time, also those that do not count any more.
    order: VecDeque<(Instant, u64)>,
}

/// What the reordering window depends on besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) min_rtt: Duration,
    pub(super) srtt: Duration,
    pub(super) recovering: bool,
    pub(super) sacked_segments: u64,
}

impl Rack {
    pub(super) const fn new() -> Self {
        Self {
            newest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            reordering: false,
            steps: 1,
            persist: 0,
            widened: Instant::ZERO,
            order: VecDeque::new(),
        }
    }

    pub(super) fn sent(&mut self, now: Instant, number: u64) {
        self.order.push_back((now, number));
    }

    /// A burst is acknowledged that was last sent then; `overtaken` if one behind it was before.
    pub(super) fn acked(&mut self, now: Instant, sent: Instant, number: u64, overtaken: bool) {
        self.reordering |= overtaken;
        if (sent, number) > self.newest {
            self.newest = (sent, number);
            self.rtt = now.saturating_since(sent);
        }
    }

    /// The peer has something twice: the window was too narrow. It widens once in an RTT.
    pub(super) fn duplicate(&mut self, now: Instant, srtt: Duration) {
        self.reordering = true;
        self.persist = PERSIST;
        if now.saturating_since(self.widened) >= srtt {
            self.widened = now;
            self.steps = (self.steps + 1).min(255);
        }
    }

    /// A recovery is over.
    pub(super) const fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    fn window(&self, patience: Patience) -> Duration {
        let sure = patience.recovering || patience.sacked_segments >= DUPLICATES;
        if !self.reordering && sure {
            return Duration::ZERO;
        }
        // Linux bounds it by srtt, which it stores times eight.
        (patience.min_rtt / 4 * self.steps).min(patience.srtt)
    }

    /// Numbers of bursts that are lost by `now`, and when the next one will be. `flies` says whether a
    /// transmission is still the newest of its burst, and not acknowledged.
    pub(super) fn lost(
        &mut self,
        now: Instant,
        patience: Patience,
        flies: impl Fn(Instant, u64) -> bool,
    ) -> (Vec<u64>, Option<Instant>) {
        let window = self.window(patience);
        let mut lost = Vec::new();
        while let Some(&(sent, number)) = self.order.front() {
            if flies(sent, number) {
                if (sent, number) >= self.newest {
                    break;
                }
                let at = sent + self.rtt + window;
                if at > now {
                    return (lost, Some(at));
                }
                lost.push(number);
            }
            self.order.pop_front();
        }
        (lost, None)
    }
}
