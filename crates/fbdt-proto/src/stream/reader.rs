//! How long the peer's application has let this end wait.
//!
//! Rule: F11.

use core::time::Duration;

use fbdt_units::Instant;

/// The time in which the peer held all that its limit lets it be sent: what was
/// missing then was a reader, hardly ever a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReaderWait {
    since: Option<Instant>,
    past: Duration,
}

impl ReaderWait {
    /// Notes whether the peer holds all that it may be sent.
    pub(super) fn update(&mut self, now: Instant, full: bool) {
        if full {
            self.since.get_or_insert(now);
        } else if let Some(since) = self.since.take() {
            self.past += now.saturating_since(since);
        }
    }

    /// All of it so far.
    pub(super) fn total(&self, now: Instant) -> Duration {
        self.past + self.since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f11_only_the_time_in_which_the_peer_holds_all_it_may_counts() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut wait = ReaderWait::default();
        wait.update(at(5), false);
        assert_eq!(wait.total(at(10)), Duration::ZERO);
        wait.update(at(10), true);
        wait.update(at(15), true);
        assert_eq!(wait.total(at(30)), Duration::from_millis(20), "it goes on");
        wait.update(at(40), false);
        wait.update(at(100), true);
        assert_eq!(wait.total(at(110)), Duration::from_millis(40));
    }
}
