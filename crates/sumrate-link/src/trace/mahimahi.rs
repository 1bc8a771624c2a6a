//! Mahimahi's format: one line per 1500-byte delivery opportunity, its time in whole milliseconds; the last line's
//! time is the length of the trace.

use std::fmt::Write as _;

use super::{Step, Trace, TraceError};
use crate::time::Nanos;

const MILLISECOND: Nanos = 1_000_000;
const OPPORTUNITY_BITS: u128 = 1500 * 8;

/// Latest time in a trace.
const WEEK_MS: u64 = 7 * 24 * 3_600_000;

/// Reads a mahimahi trace; equal milliseconds in a row become one step.
pub fn parse(text: &str) -> Result<Trace, TraceError> {
    let mut steps: Vec<Step> = Vec::new();
    // The millisecond that is being counted, and its opportunities.
    let (mut slot, mut count) = (0_u64, 0_u64);
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |problem: String| TraceError::Line { line: index + 1, problem };
        let time: u64 = line
            .trim()
            .parse()
            .map_err(|_| wrong(format!("expected a time in whole milliseconds, found {line:?}")))?;
        // Opportunities at time t are what the millisecond that ends at t carried.
        let next = time.saturating_sub(1);
        if next < slot {
            return Err(wrong(format!("time {time} goes back")));
        }
        if next > WEEK_MS {
            return Err(wrong(format!("time {time} ms is beyond a week")));
        }
        if next > slot {
            append(&mut steps, 1, count);
            append(&mut steps, next - slot - 1, 0);
            (slot, count) = (next, 0);
        }
        count += 1;
    }
    append(&mut steps, 1, count);
    Trace::new(steps)
}

/// So many milliseconds with so many opportunities each.
fn append(steps: &mut Vec<Step>, milliseconds: u64, opportunities: u64) {
    let duration = milliseconds * MILLISECOND;
    let rate = opportunities.saturating_mul(12_000_000);
    match steps.last_mut() {
        _ if duration == 0 => {}
        Some(last) if last.rate == rate => last.duration += duration,
        _ => steps.push(Step { duration, rate }),
    }
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

    /// Found by fuzzing: one late line took 8 bytes of memory per millisecond.
    #[test]
    fn a_late_opportunity_costs_two_steps() {
        let week = parse("604800000\n").unwrap();
        assert_eq!(week.steps().len(), 2);
        assert_eq!(week.duration(), 604_800_000 * MILLISECOND);
        assert_eq!(week.rate_at(week.duration() - 1), 12_000_000);
        assert!(parse("604800002\n").unwrap_err().to_string().contains("beyond a week"));
    }

    #[test]
    fn time_must_not_go_back() {
        assert!(parse("5\n3\n").unwrap_err().to_string().contains("line 2"));
    }
}
