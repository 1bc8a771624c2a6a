//! A stop that lets streams finish: how it ends, and what those who watch are told of it.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::interrupt::Interrupts;
use crate::status::{SessionReport, StoppingReport};
use crate::systemd;

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

/// What became of the streams. The daemon itself logs it, so that filters take it for one of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drained {
    /// All came to their end, after this time.
    Finished(Duration),
    /// Not all did within this time.
    TooLong(Duration),
    /// A second signal ended them.
    Interrupted,
}

impl Drained {
    /// Whether streams were cut off.
    pub(super) fn is_cut(self) -> bool {
        !matches!(self, Self::Finished(_))
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished(after) => write!(f, "all connections finished after {after:.1?}"),
            Self::TooLong(Duration::ZERO) => f.write_str("connections cut off at once (--drain 0)"),
            Self::TooLong(limit) => {
                write!(f, "connections cut off after {limit:.1?} (--drain allows more time)")
            }
            Self::Interrupted => f.write_str("connections cut off by a second signal"),
        }
    }
}

/// Lets work that takes nothing new on come to its end, within a limit; a second signal ends it.
pub(super) async fn drain<T>(
    work: impl Future<Output = T>,
    limit: Duration,
    interrupts: &mut Interrupts,
) -> Drained {
    systemd::stopping();
    let begun = Instant::now();
    tokio::select! {
        _ = work => Drained::Finished(begun.elapsed()),
        () = tokio::time::sleep(limit) => Drained::TooLong(limit),
        _ = interrupts.next() => Drained::Interrupted,
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
        assert_eq!(said.words(), "stopping: 1 connection left to finish, at most 12 s");
    }
}
