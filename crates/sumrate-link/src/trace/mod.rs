//! Rate traces: piecewise constant, repeated at the end. Format and import: `docs/traces.md`.

pub mod mahimahi;
pub mod native;

use std::path::PathBuf;

use crate::time::Nanos;

/// Why a trace could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error(
        "cannot read the trace {path}: {source}; check the path (it is relative to the configuration file)"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is wrong.
    #[error("line {line} of the trace: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The whole is unusable.
    #[error("unusable trace: {0}")]
    Whole(String),
}

/// One step: a rate that holds for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How long, nanoseconds.
    pub duration: Nanos,
    /// Bits per second.
    pub rate: u64,
}

/// A rate over time, repeated for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    steps: Vec<Step>,
    /// Time at each step's end.
    ends: Vec<Nanos>,
    /// Bits x 10^9 that were possible by each step's end.
    work: Vec<u128>,
}

impl Trace {
    /// A trace of these steps. Refused: no step, a step of no duration, no step with a rate above 0, over 2^63 ns.
    pub fn new(steps: Vec<Step>) -> Result<Trace, TraceError> {
        let whole = |text: &str| Err(TraceError::Whole(text.to_owned()));
        if steps.iter().any(|step| step.duration == 0) {
            return whole("a step lasts 0 ns");
        }
        if steps.iter().all(|step| step.rate == 0) {
            return whole("no step has a rate above 0");
        }
        let (mut end, mut done) = (0_u64, 0_u128);
        let (mut ends, mut work) = (Vec::new(), Vec::new());
        for step in &steps {
            end = match end.checked_add(step.duration) {
                Some(end) if end < 1 << 63 => end,
                _ => return whole("it lasts longer than 292 years"),
            };
            done += u128::from(step.rate) * u128::from(step.duration);
            ends.push(end);
            work.push(done);
        }
        Ok(Trace { steps, ends, work })
    }

    /// The steps of one round.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Length of one round.
    pub fn duration(&self) -> Nanos {
        self.ends.last().copied().unwrap_or(1)
    }

    /// Mean rate, bits per second.
    pub fn mean_rate(&self) -> u64 {
        clamp(self.round() / u128::from(self.duration()))
    }

    /// Rate at a position since the trace began, bits per second.
    pub fn rate_at(&self, position: Nanos) -> u64 {
        let inside = position % self.duration();
        let index = self.ends.partition_point(|end| *end <= inside);
        self.steps.get(index).map_or(0, |step| step.rate)
    }

    /// Bits x 10^9 that are possible from the trace's start to `position`.
    pub fn work_until(&self, position: Nanos) -> u128 {
        let rounds = position / self.duration();
        let inside = position % self.duration();
        let index = self.ends.partition_point(|end| *end <= inside);
        let (begin, done) = self.before(index);
        let rate = self.steps.get(index).map_or(0, |step| step.rate);
        u128::from(rounds) * self.round() + done + u128::from(rate) * u128::from(inside - begin)
    }

    /// Like `work_until`, for a `position` within the first round, its end included.
    pub(crate) fn work_until_end(&self, position: Nanos) -> u128 {
        if position >= self.duration() { self.round() } else { self.work_until(position) }
    }

    /// The earliest position at which `work` (bits x 10^9) has become possible.
    pub fn position_of(&self, work: u128) -> Nanos {
        if work == 0 {
            return 0;
        }
        let rounds = (work - 1) / self.round();
        let rest = work - rounds * self.round();
        let index = self.work.partition_point(|done| *done < rest);
        let (begin, done) = self.before(index);
        let rate = self.steps.get(index).map_or(1, |step| step.rate.max(1));
        let inside = u128::from(begin) + (rest - done).div_ceil(u128::from(rate));
        clamp(rounds * u128::from(self.duration()) + inside)
    }

    fn round(&self) -> u128 {
        self.work.last().copied().unwrap_or(1)
    }

    /// Time and work at the start of step `index`.
    fn before(&self, index: usize) -> (Nanos, u128) {
        match index.checked_sub(1) {
            Some(last) => (self.ends[last], self.work[last]),
            None => (0, 0),
        }
    }
}

fn clamp(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Megabits per second as bits per second.
pub(crate) fn bits_per_second(megabits: f64) -> u64 {
    // Saturating float-to-integer conversion; callers have checked the sign.
    (megabits * 1e6).round() as u64
}

/// Reads a native trace file.
pub fn load(path: &std::path::Path) -> Result<Trace, TraceError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| TraceError::Read { path: path.to_owned(), source })?;
    native::parse(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;
    use proptest::prelude::*;

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (1..5 * SECOND, 0..5_000_000_000_u64)
            .prop_map(|(duration, rate)| Step { duration, rate });
        proptest::collection::vec(step, 1..20)
            .prop_filter("some rate", |steps| steps.iter().any(|step| step.rate > 0))
    }

    proptest! {
        #[test]
        fn position_inverts_work(steps in steps(), from in 0..100 * SECOND, bits in 1..10_000_000_u128) {
            let trace = Trace::new(steps).unwrap();
            let goal = trace.work_until(from) + bits * u128::from(SECOND);
            let finish = trace.position_of(goal);
            prop_assert!(finish > from);
            prop_assert!(trace.work_until(finish) >= goal);
            prop_assert!(trace.work_until(finish - 1) < goal);
        }
    }

    #[test]
    fn silence_is_waited_out_and_the_trace_repeats() {
        let trace = Trace::new(vec![
            Step { duration: 1_000, rate: SECOND },
            Step { duration: 9_000, rate: 0 },
        ])
        .unwrap();
        // One bit per nanosecond in the first microsecond of every ten.
        assert_eq!(trace.position_of(1_000 * u128::from(SECOND)), 1_000);
        assert_eq!(trace.position_of(1_001 * u128::from(SECOND)), 10_001);
        assert_eq!(trace.mean_rate(), SECOND / 10);
        assert_eq!(trace.rate_at(25_000), 0);
    }

    #[test]
    fn a_dead_trace_is_refused() {
        assert!(Trace::new(vec![Step { duration: 1, rate: 0 }]).is_err());
        assert!(Trace::new(Vec::new()).is_err());
    }
}
