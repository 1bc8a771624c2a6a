//! What it takes to have other programs' connections taken. Nobody needs it who has not asked for it:
//! proxies and `sumrate run` do without.

use std::fs::File;
use std::io;

use sumrate_capture::guardian::{Guardian, Leftover, is_installed, leftovers};

use super::{Finding, Level};
use crate::config::ConfigFile;

const CHECK: &str = "capture";
const DEVICE: &str = "/dev/net/tun";
/// What makes the rules, and the Debian package that has it.
const PROGRAMS: [(&str, &str); 2] = [("nft", "nftables"), ("ip", "iproute2")];

/// A flag of `sumrate up` that takes connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// `--redirect`
    Redirect,
    /// `--tproxy`
    Tproxy,
    /// `--tun`
    Tun,
}

impl Capture {
    const fn flag(self) -> &'static str {
        match self {
            Self::Redirect => "--redirect",
            Self::Tproxy => "--tproxy",
            Self::Tun => "--tun",
        }
    }

    /// The one that a configuration file asks for.
    pub fn asked_by(file: &ConfigFile) -> Option<Self> {
        [(Self::Redirect, "redirect"), (Self::Tproxy, "tproxy"), (Self::Tun, "tun")]
            .into_iter()
            .find_map(|(capture, key)| file.is_switched_on("up", key).then_some(capture))
    }
}

/// Every check of it; `asked` is what the configuration asks for.
pub(super) fn findings(asked: Option<Capture>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = PROGRAMS
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(program, package)| missing(program, package, asked))
        .collect();
    findings.extend(device(File::options().read(true).write(true).open(DEVICE), asked));
    if let Some(capture) = asked {
        findings.extend(rights(Guardian::check_rights(capture.flag()).is_ok(), capture));
    }
    findings.extend(leftovers().into_iter().map(refusing));
    if findings.is_empty() {
        let what = asked.map_or("--redirect, --tproxy and --tun", Capture::flag);
        findings.push(Finding::ok(CHECK, format!("requirements of {what} met")));
    }
    findings
}

/// Rules of a daemon that is no more.
fn refusing(left: Leftover) -> Finding {
    let found = format!(
        "a `sumrate up` crashed or was killed; its firewall rules (nftables table {}) still block the \
         captured connections; the next `sumrate up` with --redirect, --tproxy or --tun replaces them",
        left.table
    );
    Finding::problem(CHECK, found).mend(left.lift)
}

/// Only what was asked for can fail.
fn finding(asked: bool, found: String) -> Finding {
    Finding::new(CHECK, if asked { Level::Problem } else { Level::Warning }, found)
}

fn missing(program: &str, package: &str, asked: Option<Capture>) -> Finding {
    let found = match asked {
        Some(capture) => format!(
            "{program} is not installed, and the configuration asks for {}, which needs it",
            capture.flag()
        ),
        None => format!(
            "{program} is not installed: --redirect, --tproxy and --tun of `sumrate up` need it"
        ),
    };
    finding(asked.is_some(), found).mend(format!("apt-get install {package}"))
}

fn device(opened: io::Result<File>, asked: Option<Capture>) -> Option<Finding> {
    let error = opened.err()?;
    // It is only for --tun.
    if asked.is_some_and(|capture| capture != Capture::Tun) {
        return None;
    }
    let consequence = match asked {
        Some(_) => "and the configuration asks for --tun, which needs it",
        None => "so --tun cannot be used",
    };
    let found = format!("{DEVICE} cannot be opened ({error}), {consequence}");
    let finding = finding(asked.is_some(), found);
    match error.kind() {
        io::ErrorKind::NotFound => Some(finding.mend("modprobe tun")),
        // Root may open it.
        io::ErrorKind::PermissionDenied if asked.is_none() => None,
        _ => Some(finding),
    }
}

fn rights(has_them: bool, capture: Capture) -> Option<Finding> {
    let found = format!(
        "the configuration asks for {}, which needs CAP_NET_ADMIN, but this user lacks \
         it: start `sumrate up` as root, or use `sumrate run -- COMMAND`",
        capture.flag()
    );
    (!has_them).then(|| finding(true, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn asked_by(text: &str) -> Option<Capture> {
        Capture::asked_by(&ConfigFile::parse(text, Path::new("c.toml"), 0o600).unwrap())
    }

    #[test]
    fn the_configuration_says_what_is_asked_for() {
        assert_eq!(asked_by("[up]\ntproxy = true\n"), Some(Capture::Tproxy));
        assert_eq!(asked_by("[up]\ntun = true\nredirect = false\n"), Some(Capture::Tun));
        assert_eq!(asked_by("[up]\nlink = \"@l\"\n"), None);
        assert_eq!(asked_by("[serve]\nlisten = [\"0.0.0.0:1\"]\n"), None);
    }

    #[test]
    fn what_is_missing_fails_only_who_asks_for_it() {
        let noted = missing("nft", "nftables", None);
        assert_eq!(noted.level, Level::Warning);
        assert_eq!(noted.mend.as_deref(), Some("apt-get install nftables"));
        let failed = missing("nft", "nftables", Some(Capture::Redirect));
        assert_eq!(failed.level, Level::Problem);
        assert!(failed.found.contains("--redirect"), "{}", failed.found);
    }

    #[test]
    fn the_device_is_for_tun() {
        let opened = |kind: io::ErrorKind, asked| device(Err(kind.into()), asked);
        let gone = opened(io::ErrorKind::NotFound, Some(Capture::Tun)).unwrap();
        assert_eq!((gone.level, gone.mend.as_deref()), (Level::Problem, Some("modprobe tun")));
        assert_eq!(opened(io::ErrorKind::NotFound, None).unwrap().level, Level::Warning);
        assert_eq!(opened(io::ErrorKind::NotFound, Some(Capture::Tproxy)), None);
        assert_eq!(opened(io::ErrorKind::PermissionDenied, None), None);
        let denied = opened(io::ErrorKind::PermissionDenied, Some(Capture::Tun)).unwrap();
        assert_eq!((denied.level, denied.mend), (Level::Problem, None));
        assert_eq!(device(File::open("/dev/null"), Some(Capture::Tun)), None);
    }

    #[test]
    fn rules_that_refuse_are_a_problem() {
        let lift = "nft delete table inet sumrate_7_99".to_owned();
        let table = "sumrate_7_99".to_owned();
        let found = refusing(Leftover { table: table.clone(), lift: lift.clone() });
        assert_eq!((found.level, found.mend), (Level::Problem, Some(lift)));
        assert!(found.found.contains(&table), "{}", found.found);
    }

    #[test]
    fn rights_are_missed_only_where_they_are_needed() {
        assert_eq!(rights(true, Capture::Tun), None);
        let missed = rights(false, Capture::Tun).unwrap();
        assert!(missed.level == Level::Problem && missed.found.contains("CAP_NET_ADMIN"));
    }
}
