//! Pairs of rate traces from a directory.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files are named NAME.wigig.trace and NAME.wifi.trace.
const ENDINGS: [&str; 2] = [".wigig.trace", ".wifi.trace"];

/// A pair of traces; rates in bytes per second.
#[derive(Clone, Debug, PartialEq)]
pub struct TracePair {
    /// What the two files are called.
    pub name: String,
    /// WiGig.
    pub fast: Vec<(Duration, f64)>,
    /// WiFi.
    pub slow: Vec<(Duration, f64)>,
}

/// Traces that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Not readable.
    #[error("{path}: {error}; python -m sumrate.traces writes traces")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Not a trace.
    #[error("{path}: {reason}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Where and what.
        reason: String,
    },
    /// No pair.
    #[error("{0} holds no pair of files NAME.wigig.trace and NAME.wifi.trace")]
    NoPair(PathBuf),
}

/// All pairs in a directory by name, with rates times `scale`.
///
/// # Errors
/// The first file that can't be used.
pub fn pairs(directory: &Path, scale: f64) -> Result<Vec<TracePair>, TraceError> {
    let failed = |error| TraceError::File { path: directory.to_owned(), error };
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let file = entry.map_err(failed)?.file_name();
        names.extend(file.to_string_lossy().strip_suffix(ENDINGS[0]).map(str::to_owned));
    }
    names.sort();
    let pair = |name: &String| {
        let read = |ending| steps(&directory.join(format!("{name}{ending}")), scale);
        Ok(TracePair { name: name.clone(), fast: read(ENDINGS[0])?, slow: read(ENDINGS[1])? })
    };
    let all = names.iter().map(pair).collect::<Result<Vec<_>, TraceError>>()?;
    if all.is_empty() { Err(TraceError::NoPair(directory.to_owned())) } else { Ok(all) }
}

fn steps(path: &Path, scale: f64) -> Result<Vec<(Duration, f64)>, TraceError> {
    let trace = sumrate_link::trace::load(path)
        .map_err(|e| TraceError::Format { path: path.to_owned(), reason: e.to_string() })?;
    let step = |step: &sumrate_link::trace::Step| {
        (Duration::from_nanos(step.duration), step.rate as f64 / 8.0 * scale)
    };
    Ok(trace.steps().iter().map(step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, mbps: u32) {
        let text = format!("sumrate-trace 1\n1500 {mbps}\n");
        std::fs::write(folder.join(name), text).unwrap();
    }

    #[test]
    fn pairs_come_by_name_with_scaled_rates_and_half_a_pair_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        assert!(matches!(pairs(at, 1.0), Err(TraceError::NoPair(_))));
        for (name, mbps) in [("b", 20), ("a", 80)] {
            write(at, &format!("{name}.wigig.trace"), 4 * mbps);
            write(at, &format!("{name}.wifi.trace"), mbps);
        }
        let steps = |rate: f64| vec![(Duration::from_millis(1500), rate)];
        let pair = |name: &str, fast, slow| TracePair {
            name: name.to_owned(),
            fast: steps(fast),
            slow: steps(slow),
        };
        let expected = [pair("a", 20e6, 5e6), pair("b", 5e6, 1.25e6)];
        assert_eq!(pairs(at, 0.5).unwrap(), expected);
        write(at, "c.wigig.trace", 8);
        assert!(matches!(pairs(at, 1.0), Err(TraceError::Format { .. })));
    }
}
