//! `sumrate cc`.

use serde::{Deserialize, Serialize};
use sumrate_cc::{Algorithm, CouplingError, Group, GroupedBy, find, load, loaded, unload};

use super::CommandError;
use crate::args::{CcAction, CcArgs};
use crate::output;

/// Name and version of the JSON form.
pub const CC_SCHEMA: &str = "sumrate.cc.v1";

/// The answer of every action: how things are after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CcReport {
    /// [`CC_SCHEMA`].
    pub schema: String,
    /// Every algorithm, loaded or not.
    pub algorithms: Vec<AlgorithmReport>,
}

/// One algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlgorithmReport {
    /// Its name here, such as `lia`.
    pub name: String,
    /// Its name for TCP_CONGESTION, such as `sumrate_lia`.
    pub kernel_name: String,
    /// Whether the kernel has it.
    pub loaded: bool,
    /// Connections whose subflows it runs on now, and couples, but for `reno`; absent where this process may not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<GroupReport>>,
    /// Whether another build of this program has loaded it, so that this one does not use it; absent where it is not
    /// loaded or this process may not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_build: Option<bool>,
}

/// Subflows that are coupled as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReport {
    /// `session` or `mptcp`.
    pub kind: String,
    /// Number of the session, or the connection's token.
    pub number: u64,
    /// How many subflows it has.
    pub subflows: usize,
}

/// Loads, unloads or lists.
///
/// # Errors
/// [`CommandError`]
pub fn cc(args: &CcArgs) -> Result<(), CommandError> {
    match &args.action {
        CcAction::Load { algorithms } => {
            for algorithm in or(algorithms, &Algorithm::COUPLED) {
                match load(algorithm) {
                    // It is loaded; to say which sockets belong together is not asked for here.
                    Ok(_) | Err(CouplingError::Unreachable { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        CcAction::Unload { algorithms } => {
            for algorithm in or(algorithms, &loaded()) {
                unload(algorithm)?;
            }
        }
        CcAction::List => {}
    }
    let report = report();
    if args.json {
        output::pretty_json(&report)?;
    } else {
        for algorithm in &report.algorithms {
            output::line(&line(algorithm))?;
        }
    }
    Ok(())
}

fn or(given: &[Algorithm], default: &[Algorithm]) -> Vec<Algorithm> {
    if given.is_empty() { default.to_vec() } else { given.to_vec() }
}

fn report() -> CcReport {
    let there = loaded();
    let algorithms = Algorithm::ALL.into_iter().map(|algorithm| {
        let loaded = there.contains(&algorithm);
        let groups = loaded.then(|| groups(algorithm));
        AlgorithmReport {
            name: algorithm.name().to_owned(),
            kernel_name: algorithm.kernel_name().to_owned(),
            loaded,
            other_build: match &groups {
                Some(Ok(_)) => Some(false),
                Some(Err(CouplingError::OtherBuild { .. })) => Some(true),
                _ => None,
            },
            groups: groups.and_then(Result::ok),
        }
    });
    CcReport { schema: CC_SCHEMA.to_owned(), algorithms: algorithms.collect() }
}

fn groups(algorithm: Algorithm) -> Result<Vec<GroupReport>, CouplingError> {
    let action = "list what is coupled by";
    let failed = |source| CouplingError::System { action, algorithm, source };
    let groups = find(algorithm)?.groups().map_err(failed)?;
    let report = |group: Group| GroupReport {
        kind: match group.by {
            GroupedBy::Process => "session",
            GroupedBy::Mptcp => "mptcp",
        }
        .to_owned(),
        number: group.number,
        subflows: group.subflows,
    };
    Ok(groups.into_iter().map(report).collect())
}

fn line(algorithm: &AlgorithmReport) -> String {
    let AlgorithmReport { name, kernel_name, loaded, groups, other_build } = algorithm;
    match (loaded, groups) {
        (false, _) => format!("{name}  not loaded; it would be {kernel_name}"),
        (true, None) if *other_build == Some(true) => format!(
            "{name}  loaded as {kernel_name} by another build of this program, which this one does \
             not use; `sumrate cc unload {name}` takes it out"
        ),
        (true, None) => format!("{name}  loaded as {kernel_name}"),
        (true, Some(groups)) => {
            let subflows: usize = groups.iter().map(|group| group.subflows).sum();
            let does = if name == Algorithm::Reno.name() { "runs on" } else { "couples" };
            format!(
                "{name}  loaded as {kernel_name}, {does} {subflows} subflows of {} connections",
                groups.len()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_build_has_loaded_is_called_so() {
        let report = |other_build| AlgorithmReport {
            name: "lia".to_owned(),
            kernel_name: "sumrate_lia".to_owned(),
            loaded: true,
            groups: None,
            other_build,
        };
        assert!(line(&report(Some(true))).contains("another build of this program"));
        assert_eq!(line(&report(None)), "lia  loaded as sumrate_lia");
    }
}
