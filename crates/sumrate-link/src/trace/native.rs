//! The native format: a header line with a version, then `duration_ms rate_mbps` a line.

use std::fmt::Write as _;

use super::{Step, Trace, TraceError, bits_per_second};
use crate::time::{from_millis, to_millis};

/// First line of every file.
pub const HEADER: &str = "sumrate-trace 1";

/// Reads the format. Empty lines and what follows a `#` are ignored.
pub fn parse(text: &str) -> Result<Trace, TraceError> {
    let mut lines = text.lines().enumerate();
    let header = lines.next().map_or("", |(_, line)| line.trim());
    if header != HEADER {
        return Err(TraceError::Line {
            line: 1,
            problem: format!(
                "expected {HEADER:?}, found {header:?}; convert other formats with `sumrate-link import`"
            ),
        });
    }
    let mut steps = Vec::new();
    for (index, line) in lines {
        let content = line.split('#').next().unwrap_or("").trim();
        if !content.is_empty() {
            steps.push(
                step(content).map_err(|problem| TraceError::Line { line: index + 1, problem })?,
            );
        }
    }
    Trace::new(steps)
}

fn step(content: &str) -> Result<Step, String> {
    let fields: Vec<&str> = content.split_whitespace().collect();
    let [duration, rate] = fields.as_slice() else {
        return Err(format!("expected `duration_ms rate_mbps`, found {content:?}"));
    };
    let number = |name: &str, text: &str| {
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
        value.ok_or_else(|| format!("{name} must be a number of at least 0, found {text:?}"))
    };
    let step = Step {
        duration: from_millis(number("duration_ms", duration)?),
        rate: bits_per_second(number("rate_mbps", rate)?),
    };
    if step.duration == 0 {
        return Err(format!("duration_ms must be at least 0.000001, found {duration:?}"));
    }
    Ok(step)
}

/// Writes the format; `comment` becomes the second line.
pub fn write(trace: &Trace, comment: &str) -> String {
    let mut out = format!("{HEADER}\n# {comment}\n# duration_ms rate_mbps\n");
    for step in trace.steps() {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{} {}", to_millis(step.duration), step.rate as f64 / 1e6);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comments_and_blank_lines() {
        let trace = parse("sumrate-trace 1\n# note\n\n10 1800 # beam up\n2.5 0\n").unwrap();
        assert_eq!(
            trace.steps(),
            [
                Step { duration: 10_000_000, rate: 1_800_000_000 },
                Step { duration: 2_500_000, rate: 0 },
            ]
        );
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = parse("sumrate-trace 1\n10 1800\n10 fast\n").unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("fast"), "{error}");
        let error = parse("1\n2\n").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("import"), "{error}");
    }

    proptest! {
        #[test]
        fn written_traces_read_back(steps in proptest::collection::vec((1_u64..1 << 40, 1_u64..20_000_000_000), 1..30)) {
            let steps: Vec<Step> = steps.into_iter().map(|(duration, rate)| Step { duration, rate }).collect();
            let trace = Trace::new(steps).unwrap();
            prop_assert_eq!(parse(&write(&trace, "round trip")).unwrap(), trace);
        }
    }
}
