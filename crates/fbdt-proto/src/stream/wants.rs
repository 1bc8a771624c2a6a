//! How often a peer is asked for a larger window.

use core::time::Duration;

use crate::scale::NOISE;
use fbdt_units::Instant;

/// Longest pause between two requests.
const PAUSE: Duration = Duration::from_secs(1);

/// The requests for a larger window of one stream: each that has not made it larger by a quarter
/// doubles the pause, unless it was told that the limit has moved. A peer that has no more to
/// give is not asked a hundred times a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wants {
    sent: Option<Instant>,
    pause: Duration,
    /// The largest window so far, in bytes.
    window: u64,
    /// The limit has moved since the last one.
    answered: bool,
}

impl Wants {
    /// Whether it is time to ask again, the window being `window` bytes.
    pub(crate) fn are_due(&self, now: Instant, window: u64) -> bool {
        let pause = if self.not_in_vain(window) { NOISE } else { self.pause };
        self.sent.is_none_or(|at| now.saturating_since(at) >= pause)
    }

    /// The peer is asked.
    pub(crate) fn ask(&mut self, now: Instant, window: u64) {
        let in_vain = self.sent.is_some() && !self.not_in_vain(window);
        self.pause = if in_vain { (self.pause * 2).min(PAUSE) } else { NOISE };
        self.answered = false;
        self.window = self.window.max(window);
        self.sent = Some(now);
    }

    /// The limit has moved. What waits for a place of its own needs that, and not a larger window.
    pub(crate) const fn answer(&mut self) {
        self.answered = true;
    }

    const fn not_in_vain(&self, window: u64) -> bool {
        self.answered || window > self.window + self.window / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + ms * 1_000_000)
    }

    #[test]
    fn f2_requests_in_vain_become_rare_and_a_grant_makes_them_frequent_again() {
        let mut wants = Wants::default();
        let mut asked = 0;
        for ms in 0..10_000 {
            if wants.are_due(at(ms), 1000) {
                wants.ask(at(ms), 1000);
                asked += 1;
            }
        }
        assert_eq!(asked, 16, "after 0, 10, 30 ... 630 ms, 1.27 s, and then every second");
        assert!(!wants.are_due(at(10_005), 1100));
        assert!(wants.are_due(at(10_005), 1300), "it has grown since");
        wants.ask(at(10_005), 1300);
        assert!(!wants.are_due(at(10_014), 1300) && wants.are_due(at(10_015), 1300));
    }

    #[test]
    fn f16_a_request_that_moved_the_limit_was_not_in_vain() {
        let mut wants = Wants::default();
        for ms in 0..3000 {
            if wants.are_due(at(ms), 1000) {
                wants.ask(at(ms), 1000);
            }
        }
        wants.answer();
        assert!(wants.are_due(at(3000), 1000));
        wants.ask(at(3000), 1000);
        assert!(!wants.are_due(at(3009), 1000) && wants.are_due(at(3010), 1000));
        wants.ask(at(3010), 1000);
        assert!(!wants.are_due(at(3029), 1000), "nobody has answered this one");
    }
}
