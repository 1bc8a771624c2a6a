//! A stop that lets streams finish, and what those who watch are told of it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::status::{SessionReport, StoppingReport};

/// Since when a daemon stops, and how long it lets streams finish; nothing before.
#[derive(Debug, Default)]
pub(super) struct Stopping(OnceLock<(Instant, Duration)>);

impl Stopping {
    /// From now on streams have `limit` to finish.
    pub(super) fn begin(&self, limit: Duration) {
        // A second signal ends the process; there is one beginning.
        let _ = self.0.set((Instant::now(), limit));
    }

    /// For `sumrate status`: what these sessions have left.
    pub(super) fn report(&self, sessions: &[SessionReport]) -> Option<StoppingReport> {
        let (begun, limit) = self.0.get()?;
        Some(StoppingReport {
            streams: sessions.iter().map(|session| session.streams.len() as u64).sum(),
            most_s: limit.saturating_sub(begun.elapsed()).as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said_once_it_stops() {
        let stopping = Stopping::default();
        assert_eq!(stopping.report(&[]), None);
        stopping.begin(Duration::from_secs(30));
        stopping.begin(Duration::from_secs(90));
        let report = stopping.report(&[]).unwrap();
        assert!(report.most_s > 29.0 && report.most_s <= 30.0, "{report:?}");
        assert_eq!(report.streams, 0);
        let said = StoppingReport { streams: 1, most_s: 11.6 };
        assert_eq!(said.words(), "stopping: 1 stream left, at most 12 s");
    }
}
