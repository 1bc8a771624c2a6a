//! Acknowledgements that are held back and come all at once.
//!
//! Rule: F7.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::scale::{HICCUP, NOISE};
use fbdt_units::{Instant, SubflowSample};

/// Waits that ended longer ago do not count any more.
const MEMORY: Duration = Duration::from_secs(2);
/// As many waits must have been as long: fewer are outages.
const RECURRING: usize = 3;
/// TCP itself delays the acknowledgement of less than so many segments, by up to 40 ms
/// (RFC 9293, section 3.8.6.3): lone frames of a path that rests.
const DELAYED_ACK: u64 = 2;
/// What is certain of a path holds for so long without new evidence, what is not for `MEMORY`.
const KNOWN: Duration = Duration::from_secs(60);

/// Time in which something was under way and nothing was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Wait {
    end: Instant,
    time: Duration,
    /// Bytes that were acknowledged at its end, at once, and those of them that were sent late in it.
    acked: u64,
    late: u64,
    /// Bytes that had been sent early in it or before.
    early: u64,
    /// All bytes acknowledged, and the time in which any were under way, until it began.
    before: (u64, Duration),
}

/// What is known of a path whose acknowledgements are held back.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// When that was last seen.
    at: Instant,
    /// The smallest RTT.
    base: Duration,
    /// How much longer the waits are.
    hold: Duration,
    /// Whether bytes that were sent one after the other came back together.
    certain: bool,
}

/// How long acknowledgements are held back again and again, by receivers, radios and drivers that
/// gather them. The smallest RTT, that of a byte whose acknowledgement was next to go, does not show
/// it; meanwhile bytes have arrived long ago of which TCP still says that they are under way.
///
/// Behind others' queue acknowledgements come all at once too, where bytes were sent all at once; that
/// holding less would not shorten it is the same. What is certain to be held back are acknowledgements
/// that bring together what was sent one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct AckAggregation {
    /// Counters of the subflow at its last sample, and when that was.
    delivered: u64,
    in_flight: u64,
    sampled: Option<Instant>,
    /// When something was last acknowledged, or nothing was under way; bytes sent again until then.
    since: Instant,
    retransmitted: u64,
    /// Bytes sent until [`NOISE`] after that.
    early: u64,
    /// Bytes acknowledged on all subflows, and the time in which any were under way: now, and at
    /// `since`.
    total: (u64, Duration),
    total_since: (u64, Duration),
    waits: VecDeque<Wait>,
    found: Option<Found>,
}

impl AckAggregation {
    /// Takes in a sample of the subflow.
    pub(super) fn update(&mut self, now: Instant, sample: &SubflowSample) {
        let old = |at: Instant, age: Duration| now.saturating_since(at) > age;
        while self.waits.front().is_some_and(|wait| old(wait.end, MEMORY)) {
            self.waits.pop_front();
        }
        let lasts = |found: &Found| if found.certain { KNOWN } else { MEMORY };
        self.found = self.found.filter(|found| !old(found.at, lasts(found)));
        let delivered = sample.acked_total + sample.sacked;
        let acked = delivered.saturating_sub(self.delivered);
        // Where TCP sent something again, it was lost and not held back.
        let lost = sample.retransmitted_total != self.retransmitted;
        match self.sampled {
            Some(before) if self.in_flight > 0 => {
                self.total.1 += now.saturating_since(before);
                self.total.0 += acked;
                if acked > 0 && !lost {
                    self.acknowledged(now, acked, delivered, sample);
                }
            }
            _ => {}
        }
        if acked > 0 || sample.in_flight == 0 || self.sampled.is_none() {
            (self.since, self.total_since) = (now, self.total);
            self.retransmitted = sample.retransmitted_total;
        }
        if now.saturating_since(self.since) <= NOISE {
            self.early = sample.acked_total + sample.in_flight;
        }
        self.delivered = delivered;
        self.in_flight = sample.in_flight;
        self.sampled = Some(now);
    }

    /// Bytes were acknowledged after a wait.
    fn acknowledged(&mut self, now: Instant, acked: u64, delivered: u64, sample: &SubflowSample) {
        let time = now.saturating_since(self.since);
        if (NOISE..=HICCUP).contains(&time) {
            let late = delivered.saturating_sub(self.early).min(acked);
            let (before, early) = (self.total_since, self.early);
            self.waits.push_back(Wait { end: now, time, acked, late, early, before });
            self.judge(now, sample);
        } else if let Some(last) = self.waits.back_mut()
            && now.saturating_since(last.end) <= NOISE / 2
        {
            last.acked += acked;
            last.late = delivered.saturating_sub(last.early).min(last.acked);
        }
    }

    /// Are waits the rule, does most come at their ends, and are they longer than the RTT? Behind a
    /// long RTT acknowledgements come as the bytes were sent, and outages are few.
    fn judge(&mut self, now: Instant, sample: &SubflowSample) {
        let Some(first) = self.waits.front() else { return };
        let (bytes, busy) = (self.total.0 - first.before.0, self.total.1 - first.before.1);
        let least = DELAYED_ACK * u64::from(sample.mss);
        let gathered = || self.waits.iter().filter(|wait| wait.acked >= least);
        let waited: Duration = gathered().map(|wait| wait.time).sum();
        let at_once: u64 = gathered().map(|wait| wait.acked).sum();
        let late: u64 = gathered().map(|wait| wait.late).sum();
        if waited * 2 < busy || at_once * 2 < bytes {
            return;
        }
        let certain = late * 4 >= at_once || self.is_certain();
        let mut longest = [Duration::ZERO; RECURRING];
        for wait in gathered() {
            if wait.time > longest[RECURRING - 1] {
                longest[RECURRING - 1] = wait.time;
                longest.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        let base = sample.base_rtt();
        let base = self.found.map_or(base, |found| found.base.min(base));
        let hold = longest[RECURRING - 1].saturating_sub(base);
        if hold >= NOISE {
            self.found = Some(Found { at: now, base, hold, certain });
        }
    }

    /// Another subflow counts anew; the path is the same one.
    pub(super) fn restart(&mut self) {
        let waits = core::mem::take(&mut self.waits);
        *self = Self { waits, found: self.found, total: self.total, ..Self::default() };
    }

    /// Whether it is certain that the path's acknowledgements are held back.
    pub(super) fn is_certain(&self) -> bool {
        self.found.is_some_and(|found| found.certain)
    }

    /// How much longer than the smallest RTT acknowledgements keep being held back.
    pub(super) fn hold(&self) -> Duration {
        self.found.map_or(Duration::ZERO, |found| found.hold)
    }

    /// The sample with the path's own smallest RTT: a subflow that sends only when
    /// acknowledgements come never sees it.
    pub(super) fn corrected(&self, sample: &SubflowSample) -> SubflowSample {
        let least = self.found.map(|found| found.base.min(sample.base_rtt()));
        SubflowSample { min_rtt: least.unwrap_or(sample.min_rtt), ..*sample }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn rtt(ms: u64) -> SubflowSample {
        SubflowSample { min_rtt: Duration::from_millis(ms), ..SubflowSample::default() }
    }

    /// Samples every 2 ms until `end`; `acked` and `sent` say how much is when.
    fn watch(
        seen: &mut AckAggregation,
        (from, end): (u64, u64),
        sample: SubflowSample,
        acked: impl Fn(u64) -> u64,
        sent: impl Fn(u64) -> u64,
    ) {
        for ms in (from..end).step_by(2) {
            let (acked_total, in_flight) = (acked(ms), sent(ms) - acked(ms));
            seen.update(at(ms), &SubflowSample { acked_total, in_flight, ..sample });
        }
    }

    /// What has come back of 1000 bytes per ms that are sent from `from` on: all, every 46 ms.
    fn held(from: u64) -> impl Fn(u64) -> u64 {
        move |ms| from * 1000 + (ms - from) / 46 * 46_000
    }

    fn steady(ms: u64) -> u64 {
        ms * 1000
    }

    #[test]
    fn f7_acknowledgements_every_46_ms_are_held_back() {
        let mut seen = AckAggregation::default();
        watch(&mut seen, (0, 1000), rtt(3), held(0), steady);
        assert_eq!(seen.hold(), Duration::from_millis(43), "46 ms less the RTT");
        assert!(seen.is_certain());
        watch(&mut seen, (1000, 64_000), rtt(3), |ms| steady(ms - 3), steady);
        assert!(seen.hold().is_zero(), "not any more");
    }

    #[test]
    fn f7_a_subflow_that_sends_when_acknowledgements_come_has_the_paths_rtt() {
        let mut seen = AckAggregation::default();
        watch(&mut seen, (0, 1000), rtt(3), held(0), steady);
        seen.restart();
        let begun = |ms: u64| (ms - 1000) / 46 * 1000;
        watch(&mut seen, (1000, 9000), rtt(46), begun, |ms| begun(ms) + 1000);
        assert_eq!(seen.hold(), Duration::from_millis(43));
        assert_eq!(seen.corrected(&rtt(46)).base_rtt(), Duration::from_millis(3));
    }

    #[test]
    fn f7_what_is_sent_at_once_and_acknowledged_at_once_waits_in_a_queue() {
        let mut seen = AckAggregation::default();
        let rounds = |ms: u64| ms / 46 * 1000;
        watch(&mut seen, (0, 2000), rtt(3), rounds, |ms| rounds(ms) + 1000);
        assert!(seen.hold() > Duration::ZERO, "holding less would not help");
        assert!(!seen.is_certain());
        watch(&mut seen, (2000, 4100), rtt(3), |ms| 43_000 + ms - 2000, |ms| 45_000 + ms - 2000);
        assert_eq!(seen.hold(), Duration::ZERO);
    }

    #[test]
    fn f7_steady_acknowledgements_a_pause_and_outages_are_none() {
        let mut seen = AckAggregation::default();
        let late = |ms: u64| steady(ms.saturating_sub(4));
        watch(&mut seen, (0, 400), rtt(3), late, steady);
        watch(&mut seen, (400, 700), rtt(3), |_| late(400), steady);
        watch(&mut seen, (700, 1000), rtt(3), late, steady);
        assert!(seen.hold().is_zero(), "one wait is an outage");
        // 30 ms of darkness now and then.
        let dark = |ms: u64| late(ms - (ms % 300).min(30));
        watch(&mut seen, (1000, 9000), rtt(3), dark, steady);
        assert!(seen.hold().is_zero(), "these are few");
        let mut seen = AckAggregation::default();
        watch(&mut seen, (0, 1000), rtt(3), |ms| ms / 100, |ms| ms / 100);
        assert!(seen.hold().is_zero(), "nothing was under way");
    }

    #[test]
    fn f7_silence_in_which_nothing_was_sent_is_no_evidence_against_it() {
        let mut seen = AckAggregation::default();
        watch(&mut seen, (0, 60), rtt(3), held(0), steady);
        watch(&mut seen, (60, 1000), rtt(3), |_| 60_000, |_| 60_000);
        let since = |ms: u64| 60_000 + held(0)(ms - 1000);
        watch(&mut seen, (1000, 1160), rtt(3), since, |ms| 60_000 + steady(ms - 1000));
        assert_eq!(seen.hold(), Duration::from_millis(43));
    }

    #[test]
    fn f7_lone_frames_wait_for_delayed_acknowledgements() {
        // 42 bytes every 60 ms, acknowledged 44 ms later, as a path that rests sends them.
        let lone = |ms: u64| (ms + 16) / 60 * 42;
        let sent = |ms: u64| (ms + 60) / 60 * 42;
        let sample = |mss| SubflowSample { mss, ..rtt(3) };
        let mut seen = AckAggregation::default();
        watch(&mut seen, (0, 2000), sample(1448), lone, sent);
        assert!(seen.hold().is_zero());
        let mut seen = AckAggregation::default();
        watch(&mut seen, (0, 2000), sample(21), lone, sent);
        assert!(seen.hold() > Duration::ZERO, "segments for which TCP does not wait");
    }

    #[test]
    fn f7_what_was_lost_was_not_held_back() {
        let mut seen = AckAggregation::default();
        for ms in (0..1000).step_by(2) {
            let sample = SubflowSample {
                acked_total: held(0)(ms),
                in_flight: steady(ms) - held(0)(ms),
                retransmitted_total: (ms + 20) / 46 * 1000,
                ..rtt(3)
            };
            seen.update(at(ms), &sample);
        }
        assert!(seen.hold().is_zero());
    }

    #[test]
    fn f7_what_an_rtt_explains_is_none_and_neither_is_a_window_that_trickles_in() {
        let mut seen = AckAggregation::default();
        let rounds = |ms: u64| ms / 190 * 190_000;
        watch(&mut seen, (0, 2000), rtt(200), rounds, steady);
        assert!(seen.hold().is_zero());
        // Behind another flow's queue: 40 ms of silence, 20 ms of acknowledgements.
        let mut seen = AckAggregation::default();
        let trickle = |ms: u64| ms / 60 * 1000 + (ms % 60).saturating_sub(40) * 50;
        watch(&mut seen, (0, 2000), rtt(3), trickle, |ms| trickle(ms) + 1000);
        assert!(seen.hold().is_zero());
    }
}
