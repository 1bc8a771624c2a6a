//! The end of a daemon that takes nothing new on: what is under way may finish, within a limit.

use std::fmt;
use std::time::{Duration, Instant};

use crate::interrupt::Interrupts;
use crate::systemd;

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
            Self::Finished(after) => write!(f, "every stream was finished after {after:.1?}"),
            Self::TooLong(limit) => write!(
                f,
                "streams are cut off: they were not finished within {limit:.1?} (--drain gives them more)"
            ),
            Self::Interrupted => f.write_str("streams are cut off by a second signal"),
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
