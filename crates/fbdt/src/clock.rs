//! The clock that a session's instants come from.

use std::time::{Duration, Instant as StdInstant};

use fbdt_proto::Instant;

/// Monotonic time since the clock was made, as the protocol counts it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(StdInstant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(StdInstant::now())
    }

    /// A clock that has run for so long already.
    #[cfg(test)]
    pub(crate) fn started_before(age: Duration) -> Self {
        Self(StdInstant::now() - age)
    }

    pub(crate) fn now(&self) -> Instant {
        let nanos = self.0.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The same point in time for tokio's timers.
    pub(crate) fn to_tokio(self, instant: Instant) -> tokio::time::Instant {
        (self.0 + Duration::from_nanos(instant.as_nanos())).into()
    }
}
