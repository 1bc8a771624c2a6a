//! `sumrate doctor`.

use std::net::IpAddr;

use fbdt::{ClientConfig, KnownServers, Link, examine as examine_networks};
use serde::{Deserialize, Serialize};

use super::{CommandError, SetupError, setup};
use crate::args::DoctorArgs;
use crate::config::{ConfigError, ConfigFile, check, default_path};
use crate::doctor::{Capture, Finding, Level, WITNESS, examine, server_findings, targets};
use crate::output;
use crate::status::{ask_all, missing_family};

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
pub async fn doctor(args: &DoctorArgs) -> Result<(), CommandError> {
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
    if let Some(link) = link {
        findings.extend(servers(link).await?);
    }
    findings.extend(processes().await);
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

/// How far each network leads to the servers of the link.
async fn servers(link: Link) -> Result<Vec<Finding>, CommandError> {
    let mut config = ClientConfig::new(link);
    let directory = setup::state_directory(None).ok();
    config.known_servers = directory.as_deref().map(KnownServers::kept_in).unwrap_or_default();
    let networks = examine_networks(&config, WITNESS).await?;
    Ok(server_findings(&networks, &name_servers()))
}

/// The system's name servers.
fn name_servers() -> Vec<IpAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let server = |line: &str| {
        let address = line.strip_prefix("nameserver")?.split_whitespace().next()?;
        address.split('%').next()?.parse().ok()
    };
    text.lines().filter_map(server).collect()
}

/// What running clients know of their servers.
async fn processes() -> Vec<Finding> {
    let running = ask_all().await.unwrap_or_default();
    let missing = running.iter().filter_map(|(_, report)| missing_family(report.sessions.first()));
    missing.map(Finding::of_process).collect()
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
