//! Mahimahi's format: one line per 1500-byte delivery opportunity, its time in whole milliseconds; the last line's
//! time is the length of the trace.

use std::fmt::Write as _;

use super::{Step, Trace, TraceError};
use crate::time::Nanos;

const MILLISECOND: Nanos = 1_000_000;
const OPPORTUNITY_BITS: u128 = 1500 * 8;

/// Reads a mahimahi trace; equal milliseconds in a row become one step.
pub fn parse(text: &str) -> Result<Trace, TraceError> {
    let mut per_millisecond: Vec<u64> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |problem: String| TraceError::Line { line: index + 1, problem };
        let time: usize = line
            .trim()
            .parse()
            .map_err(|_| wrong(format!("expected a time in whole milliseconds, found {line:?}")))?;
        // Opportunities at time t are what the millisecond that ends at t carried.
        let slot = time.saturating_sub(1);
        if slot + 1 < per_millisecond.len() {
            return Err(wrong(format!("time {time} goes back")));
        }
        if slot > 7 * 24 * 3_600_000 {
            return Err(wrong(format!("time {time} ms is beyond a week")));
        }
        per_millisecond.resize(slot + 1, 0);
        per_millisecond[slot] += 1;
    }
    let mut steps: Vec<Step> = Vec::new();
    for count in per_millisecond {
        let rate = count.saturating_mul(12_000_000);
        match steps.last_mut() {
            Some(last) if last.rate == rate => last.duration += MILLISECOND,
            _ => steps.push(Step { duration: MILLISECOND, rate }),
        }
    }
    Trace::new(steps)
}

/// Writes one round of `trace` as a mahimahi trace, rounded down to whole opportunities and up to milliseconds.
pub fn write(trace: &Trace) -> String {
    let mut out = String::new();
    let milliseconds = trace.duration().div_ceil(MILLISECOND);
    let mut written = 0_u128;
    for millisecond in 1..=milliseconds {
        let position = (millisecond * MILLISECOND).min(trace.duration());
        let possible = trace.work_until_end(position) / (OPPORTUNITY_BITS * 1_000_000_000);
        for _ in written..possible {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{millisecond}");
        }
        written = written.max(possible);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_become_rates() {
        let trace = parse("1\n1\n2\n2\n4\n").unwrap();
        assert_eq!(
            trace.steps(),
            [
                Step { duration: 2_000_000, rate: 24_000_000 },
                Step { duration: 1_000_000, rate: 0 },
                Step { duration: 1_000_000, rate: 12_000_000 },
            ]
        );
    }

    #[test]
    fn round_trip() {
        let text = "1\n1\n2\n2\n4\n";
        assert_eq!(write(&parse(text).unwrap()), text);
    }

    #[test]
    fn time_must_not_go_back() {
        assert!(parse("5\n3\n").unwrap_err().to_string().contains("line 2"));
    }
}
