//! The clock that a session's instants come from.

use std::time::{Duration, Instant as StdInstant};

use fbdt_proto::Instant;
use nix::time::{ClockId, clock_gettime};

/// Time since the clock was made, that in which the machine was suspended included: what was heard before
/// is old afterwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Duration,
}

/// Time since the machine was started. A kernel has this clock always.
fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default()
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: since_boot() }
    }

    /// A clock that has run for so long already.
    #[cfg(test)]
    pub(crate) fn started_before(age: Duration) -> Self {
        Self { start: since_boot() - age }
    }

    pub(crate) fn now(&self) -> Instant {
        let nanos = since_boot().saturating_sub(self.start).as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long the machine has been suspended since it was started.
    pub(crate) fn slept() -> Duration {
        let awake = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        since_boot().saturating_sub(awake)
    }

    /// The same point in time for tokio's timers, unless the machine is suspended before: those stand still
    /// then.
    pub(crate) fn to_tokio(self, instant: Instant) -> tokio::time::Instant {
        (StdInstant::now() + instant.saturating_since(self.now())).into()
    }
}
