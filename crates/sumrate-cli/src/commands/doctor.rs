//! `sumrate doctor`.

use fbdt::Link;
use serde::{Deserialize, Serialize};

use super::{CommandError, SetupError, setup};
use crate::args::DoctorArgs;
use crate::config::{ConfigError, ConfigFile, check, default_path};
use crate::doctor::{Capture, Finding, Level, examine, targets};
use crate::output;

/// Name and version of the JSON form.
pub const DOCTOR_SCHEMA: &str = "sumrate.doctor.v1";

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// Findings of level `problem`.
    pub problems: usize,
    /// Findings of level `warning`.
    pub warnings: usize,
    /// All of them, also what is as it should be.
    pub findings: Vec<Finding>,
}

/// Looks at this machine and says what is wrong and what mends it.
///
/// # Errors
/// [`CommandError`], also when something does not work.
pub fn doctor(args: &DoctorArgs) -> Result<(), CommandError> {
    let link = match &args.link {
        Some(link) => Some(
            setup::link_text(link.expose())?.trim().parse::<Link>().map_err(SetupError::from)?,
        ),
        None => None,
    };
    let file = default_path().map(|path| ConfigFile::read(&path));
    let capture = file.as_ref().and_then(|read| Capture::asked_by(read.as_ref().ok()?));
    let mut findings = examine(&targets(link.as_ref()), capture);
    findings.extend(file.map(configuration));
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    let report = DoctorReport { schema: DOCTOR_SCHEMA.to_owned(), problems, warnings, findings };
    if args.json {
        output::pretty_json(&report)?
    } else {
        print(&report)?
    }
    match problems {
        0 => Ok(()),
        problems => Err(CommandError::Unwell(problems)),
    }
}

/// The configuration file.
fn configuration(read: Result<ConfigFile, ConfigError>) -> Finding {
    let checked = read.and_then(|file| check(&file).map(|()| file));
    let (level, found) = match checked {
        Ok(file) => (Level::Ok, format!("{} is valid", file.path().display())),
        Err(error) => (Level::Problem, error.to_string()),
    };
    let check = "configuration".to_owned();
    Finding { check, interface: None, level, found, mend: None }
}

fn print(report: &DoctorReport) -> std::io::Result<()> {
    for Finding { check, interface, level, found, mend } in &report.findings {
        let mark = match level {
            Level::Ok => "ok     ",
            Level::Warning => "warning",
            Level::Problem => "PROBLEM",
        };
        let of = interface.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        output::line(&format!("{mark}  {check}{of}: {found}"))?;
        if let Some(command) = mend {
            output::line(&format!("         fix: {command}"))?;
        }
    }
    Ok(())
}
