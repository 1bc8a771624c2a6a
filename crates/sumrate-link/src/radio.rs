//! A radio that sleeps while nothing is sent, and takes a while to wake. Pure: time is an argument.

use serde::Serialize;

use crate::config::Sleep;
use crate::time::Nanos;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RadioCounters {
    /// Packets that found the radio asleep.
    pub wakes: u64,
    /// Time asleep, in nanoseconds.
    pub asleep_ns: u64,
}

/// The radio of one link, which both directions share.
#[derive(Clone, Debug)]
pub struct Radio {
    sleep: Option<Sleep>,
    /// When the last packet came.
    heard: Nanos,
    counters: RadioCounters,
}

impl Radio {
    /// A radio that is awake at `now`; without `sleep` it always is.
    pub fn new(now: Nanos, sleep: Option<Sleep>) -> Radio {
        Radio { sleep, heard: now, counters: RadioCounters::default() }
    }

    /// A packet comes. If it finds the radio asleep: from when on the radio sends. `busy_until` is when the
    /// transmitters had sent everything, `None` while they have not.
    pub fn hear(&mut self, now: Nanos, busy_until: Option<Nanos>) -> Option<Nanos> {
        let sleep = self.sleep?;
        let slept = self.slept(now, busy_until);
        self.heard = self.heard.max(now);
        self.counters.asleep_ns += slept?;
        self.counters.wakes += 1;
        Some(now.saturating_add(sleep.wake))
    }

    /// How long it has been asleep; `None` while it is awake.
    fn slept(&self, now: Nanos, busy_until: Option<Nanos>) -> Option<Nanos> {
        let quiet_since = busy_until?.max(self.heard);
        now.saturating_sub(quiet_since).checked_sub(self.sleep?.after)
    }

    /// Counts until `now`, a sleep that has not ended included.
    pub fn counters(&self, now: Nanos, busy_until: Option<Nanos>) -> RadioCounters {
        let asleep_ns = self.counters.asleep_ns + self.slept(now, busy_until).unwrap_or(0);
        RadioCounters { asleep_ns, ..self.counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLEEP: Sleep = Sleep { after: 500, wake: 100 };

    #[test]
    fn a_radio_sleeps_after_a_quiet_time_and_takes_a_while_to_wake() {
        let mut radio = Radio::new(0, Some(SLEEP));
        assert_eq!(radio.hear(400, Some(0)), None);
        assert_eq!(radio.hear(899, Some(400)), None, "quiet for 499");
        assert_eq!(radio.hear(1399, Some(899)), Some(1499));
        assert_eq!(radio.hear(1410, Some(1499)), None, "it is waking");
        assert_eq!(radio.hear(2100, Some(1550)), Some(2200));
        // Asleep from 899 + 500 on, for no time, and from 1550 + 500 on, for 50.
        assert_eq!(radio.counters(2300, Some(2250)), RadioCounters { wakes: 2, asleep_ns: 50 });
        assert_eq!(radio.counters(2800, Some(2250)).asleep_ns, 50 + 50, "it is asleep again");
        assert_eq!(radio.counters(2800, None).asleep_ns, 50, "it still sends");
    }

    #[test]
    fn a_radio_that_still_sends_does_not_sleep() {
        let mut radio = Radio::new(0, Some(SLEEP));
        assert_eq!(radio.hear(10_000, None), None);
        let mut radio = Radio::new(0, Some(SLEEP));
        assert_eq!(radio.hear(10_000, Some(9_600)), None);
    }

    #[test]
    fn a_radio_without_sleep_is_always_awake() {
        let mut radio = Radio::new(0, None);
        assert_eq!(radio.hear(1_000_000, Some(0)), None);
        assert_eq!(radio.counters(2_000_000, Some(0)), RadioCounters::default());
    }
}
