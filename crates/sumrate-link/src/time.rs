//! Time inside the emulator: nanoseconds since it started. Only the run loop reads a clock.

use std::time::{Duration, Instant};

/// Nanoseconds since the emulator started.
pub type Nanos = u64;

/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// Milliseconds, as configured, in nanoseconds. Negative and non-finite values become 0.
pub fn from_millis(milliseconds: f64) -> Nanos {
    Duration::try_from_secs_f64(milliseconds / 1e3).map_or(0, whole)
}

/// Nanoseconds in milliseconds, for people and JSON.
pub fn to_millis(nanos: Nanos) -> f64 {
    nanos as f64 / 1e6
}

/// A duration in whole nanoseconds, at most 584 years.
pub fn whole(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The emulator's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads 0 now.
    pub fn start() -> Clock {
        Clock { origin: Instant::now() }
    }

    /// Nanoseconds since `start`.
    pub fn now(&self) -> Nanos {
        whole(self.origin.elapsed())
    }
}
