//! Runs a link's schedule: pure, time is an argument.

use crate::config::{Schedule, ScheduleEntry, ScheduleStart};
use crate::time::Nanos;

/// A schedule on its way.
#[derive(Clone, Debug)]
pub struct Timeline {
    schedule: Schedule,
    origin: Option<Nanos>,
    next: usize,
}

impl Timeline {
    /// A schedule that begins at `now`, or waits for `trigger`.
    pub fn new(schedule: Schedule, now: Nanos) -> Timeline {
        let origin = (schedule.start == ScheduleStart::Start).then_some(now);
        Timeline { schedule, origin, next: 0 }
    }

    /// Begins a triggered schedule (anew) at `now`; returns whether it is one.
    pub fn trigger(&mut self, now: Nanos) -> bool {
        let triggered = self.schedule.start == ScheduleStart::Trigger;
        if triggered {
            self.origin = Some(now);
            self.next = 0;
        }
        triggered && !self.schedule.entries.is_empty()
    }

    /// When the next entry is due.
    pub fn next_time(&self) -> Option<Nanos> {
        let entry = self.schedule.entries.get(self.next)?;
        Some(self.origin?.saturating_add(entry.at))
    }

    /// Takes the next entry if it is due, with the time at which it was.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, ScheduleEntry)> {
        let time = self.next_time().filter(|time| *time <= now)?;
        let entry = self.schedule.entries.get(self.next)?.clone();
        self.next += 1;
        if self.next == self.schedule.entries.len()
            && let (Some(origin), Some(every)) = (self.origin, self.schedule.every)
        {
            self.origin = Some(origin.saturating_add(every));
            self.next = 0;
        }
        Some((time, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Directions;
    use crate::config::parameters::Update;

    fn schedule(start: ScheduleStart, every: Option<Nanos>, times: &[Nanos]) -> Schedule {
        let entries = times.iter().map(|at| ScheduleEntry {
            at: *at,
            directions: Directions::Both,
            update: Update::default(),
        });
        Schedule { start, every, entries: entries.collect() }
    }

    fn times_until(timeline: &mut Timeline, now: Nanos) -> Vec<Nanos> {
        std::iter::from_fn(|| timeline.pop_due(now).map(|(time, _)| time)).collect()
    }

    #[test]
    fn runs_once_from_the_start() {
        let mut timeline = Timeline::new(schedule(ScheduleStart::Start, None, &[1, 4]), 100);
        assert_eq!(times_until(&mut timeline, 103), [101]);
        assert_eq!(timeline.next_time(), Some(104));
        assert!(!timeline.trigger(103));
        assert_eq!(times_until(&mut timeline, 1_000), [104]);
        assert_eq!(timeline.next_time(), None);
    }

    #[test]
    fn repeats() {
        let mut timeline = Timeline::new(schedule(ScheduleStart::Start, Some(10), &[0, 3]), 0);
        assert_eq!(times_until(&mut timeline, 21), [0, 3, 10, 13, 20]);
    }

    #[test]
    fn a_trigger_begins_it_anew() {
        let mut timeline = Timeline::new(schedule(ScheduleStart::Trigger, None, &[1, 4]), 0);
        assert!(times_until(&mut timeline, 50).is_empty());
        assert!(timeline.trigger(50));
        assert_eq!(times_until(&mut timeline, 52), [51]);
        assert!(timeline.trigger(52));
        assert_eq!(times_until(&mut timeline, 100), [53, 56]);
    }
}
