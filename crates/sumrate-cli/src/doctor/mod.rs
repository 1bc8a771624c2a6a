//! What of this machine keeps paths from adding up, and the command that mends it. Each check is a
//! function from what was read to findings, so that it can be tried on any reading.

mod capture;
mod clock;
mod kernel;
mod network;
mod servers;
mod sysctl;

use serde::{Deserialize, Serialize};

pub use capture::Capture;
pub use network::{Target, targets};
pub(crate) use servers::{WITNESS, findings as server_findings};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, but not as well as it could, or not in every case.
    Warning,
    /// Something does not work.
    Problem,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at.
    pub check: String,
    /// The interface, where it is about one.
    pub interface: Option<String>,
    /// How bad it is.
    pub level: Level,
    /// What was found, in words.
    pub found: String,
    /// A command that mends it; as root, unless it is a `sumrate` command.
    pub mend: Option<String>,
}

impl Finding {
    fn new(check: &str, level: Level, found: impl Into<String>) -> Self {
        let (check, found) = (check.to_owned(), found.into());
        Self { check, interface: None, level, found, mend: None }
    }

    fn ok(check: &str, found: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, found)
    }

    /// What a client's running process knows.
    pub(crate) fn of_process(found: String) -> Self {
        Self::warning("exit", found).mend("on the server: ip -6 route show default")
    }

    fn warning(check: &str, found: impl Into<String>) -> Self {
        Self::new(check, Level::Warning, found)
    }

    fn problem(check: &str, found: impl Into<String>) -> Self {
        Self::new(check, Level::Problem, found)
    }

    fn mend(mut self, command: impl Into<String>) -> Self {
        self.mend = Some(command.into());
        self
    }

    fn of(mut self, interface: &str) -> Self {
        self.interface = Some(interface.to_owned());
        self
    }
}

/// Runs every check; `targets` are addresses of servers to ask routes for, `capture` is what the
/// configuration has taken.
pub fn examine(targets: &[Target], capture: Option<Capture>) -> Vec<Finding> {
    let mut findings = kernel::findings();
    findings.extend(capture::findings(capture));
    findings.extend(network::findings(targets));
    findings.extend(clock::findings());
    findings
}
