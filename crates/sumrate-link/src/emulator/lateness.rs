//! How late the emulator was: a run in which it fell behind is void.

use serde::Serialize;

use crate::time::{Nanos, to_millis};

/// Events later than this are counted.
pub const LATE: Nanos = 2_000_000;

/// Lateness since some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lateness {
    worst: Nanos,
    late: u64,
    events: u64,
}

/// Lateness as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatenessReport {
    /// Worst delay of an event behind its time, milliseconds.
    pub worst_ms: f64,
    /// Events more than 2 ms late.
    pub late_over_2ms: u64,
    /// Events in all.
    pub events: u64,
}

impl Lateness {
    /// Records an event that was due at `due` and happened at `now`.
    pub fn record(&mut self, due: Nanos, now: Nanos) {
        let late = now.saturating_sub(due);
        self.worst = self.worst.max(late);
        self.late += u64::from(late > LATE);
        self.events += 1;
    }

    /// What was recorded.
    pub fn report(&self) -> LatenessReport {
        LatenessReport {
            worst_ms: to_millis(self.worst),
            late_over_2ms: self.late,
            events: self.events,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_and_late_events() {
        let mut lateness = Lateness::default();
        lateness.record(10, 5);
        lateness.record(0, LATE);
        lateness.record(0, LATE + 1);
        let report = lateness.report();
        assert_eq!((report.late_over_2ms, report.events), (1, 3));
        assert!(report.worst_ms > 2.0 && report.worst_ms < 2.1);
    }
}
