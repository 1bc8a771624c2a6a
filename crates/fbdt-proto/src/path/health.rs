//! Active, suspect, dead (F9).

use core::time::Duration;

use crate::scale::HICCUP;
use fbdt_units::{Instant, SubflowSample};

/// Whether a path can be relied on now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Bytes given to it are being acknowledged.
    Active,
    /// It holds bytes and has been silent too long: others may send them.
    Suspect,
    /// It has no subflow.
    #[default]
    Dead,
}

impl Health {
    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspect => "suspect",
            Self::Dead => "dead",
        }
    }
}

/// Watches whether what a subflow holds is being acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    last: Instant,
    acked: u64,
    /// When anything was acknowledged last, in order or not.
    alive: Instant,
    delivered: u64,
    timeout: Duration,
}

impl Progress {
    /// A subflow that has just come up.
    pub(crate) const fn new(now: Instant, timeout: Duration) -> Self {
        Self { last: now, acked: 0, alive: now, delivered: 0, timeout }
    }

    /// Something was acknowledged, or nothing is owed.
    pub(crate) const fn mark(&mut self, now: Instant) {
        self.last = now;
        self.alive = now;
    }

    /// Takes in a sample; says whether it shows progress.
    pub(crate) fn update(&mut self, now: Instant, sample: &SubflowSample, floor: Duration) -> bool {
        self.timeout = (sample.srtt * 2 + sample.rttvar * 4).max(floor);
        let progress = sample.acked_total > self.acked;
        self.acked = sample.acked_total;
        if progress {
            self.last = now;
        }
        let delivered = sample.acked_total + sample.sacked;
        if core::mem::replace(&mut self.delivered, delivered) != delivered {
            self.alive = now;
        }
        progress
    }

    /// When the subflow becomes suspect if nothing happens.
    pub(crate) fn deadline(&self) -> Instant {
        self.last + self.timeout
    }

    /// How long TCP has acknowledged nothing, neither in order nor by SACK.
    pub(crate) const fn dead_time(&self, now: Instant) -> Duration {
        now.saturating_since(self.alive)
    }

    /// How long TCP has acknowledged nothing in order.
    pub(crate) const fn silence(&self, now: Instant) -> Duration {
        now.saturating_since(self.last)
    }
}

/// Watches whether the peer itself answers: a proxy on the way may acknowledge
/// TCP segments whose bytes the peer never sees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    owed: Option<Instant>,
}

impl Answers {
    /// Data or a probe leaves.
    pub(crate) fn ask(&mut self, now: Instant) {
        self.owed.get_or_insert(now);
    }

    /// A frame arrived.
    pub(crate) const fn heard(&mut self) {
        self.owed = None;
    }

    /// When the subflow becomes suspect if nothing is heard.
    pub(crate) fn deadline(&self, progress: &Progress) -> Option<Instant> {
        self.owed.map(|at| at + progress.timeout + HICCUP)
    }

    /// How long an answer has been owed.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        self.owed.map_or(Duration::ZERO, |at| now.saturating_since(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f9_an_answer_is_missed_half_a_second_after_tcp_would_be() {
        let floor = Duration::from_millis(50);
        let progress = Progress::new(Instant::ZERO, floor);
        let mut answers = Answers::default();
        assert_eq!(answers.deadline(&progress), None, "nothing was asked");
        let asked = Instant::from_nanos(7);
        answers.ask(asked);
        answers.ask(asked + Duration::from_secs(1));
        assert_eq!(answers.deadline(&progress), Some(asked + floor + HICCUP));
        answers.heard();
        assert_eq!(answers.deadline(&progress), None);
    }

    #[test]
    fn f9_suspect_after_two_srtt_and_four_rttvar_but_not_before_the_floor() {
        let floor = Duration::from_millis(50);
        let mut progress = Progress::new(Instant::ZERO, floor);
        let mut sample = SubflowSample { acked_total: 1, ..SubflowSample::default() };
        assert!(progress.update(Instant::ZERO, &sample, floor));
        assert_eq!(progress.deadline(), Instant::ZERO + floor);
        sample.srtt = Duration::from_millis(100);
        sample.rttvar = Duration::from_millis(10);
        let later = Instant::from_nanos(1);
        assert!(!progress.update(later, &sample, floor), "nothing new was acknowledged");
        assert_eq!(progress.deadline(), Instant::ZERO + Duration::from_millis(240));
    }

    #[test]
    fn f9_what_is_acknowledged_out_of_order_is_no_progress_but_life() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let floor = Duration::from_millis(50);
        let mut progress = Progress::new(at(0), floor);
        let sample = SubflowSample { sacked: 1448, ..SubflowSample::default() };
        assert!(!progress.update(at(40), &sample, floor));
        assert_eq!(progress.silence(at(100)), Duration::from_millis(100));
        assert_eq!(progress.dead_time(at(100)), Duration::from_millis(60));
        assert!(!progress.update(at(100), &sample, floor), "nothing new");
        assert_eq!(progress.dead_time(at(100)), Duration::from_millis(60));
    }
}
