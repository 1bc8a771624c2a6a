//! How a test that cannot run here is counted as skipped: `tools/skips.py` reads these lines.

use std::io::Write as _;

/// Reports that the current test, or a part of it, does not run, and why.
///
/// libtest calls a test that returns passed and captures what it prints with macros. This line goes
/// to standard error itself, with the test's name, which its thread has.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED {}: {reason}\n", thread.name().unwrap_or("unknown"));
    // A closed standard error is no reason to fail a test.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
