//! `sumrate path`.

use serde::{Deserialize, Serialize};

use super::{CommandError, status};
use crate::args::{PathAction, PathCommandArgs};
use crate::control::{ControlRequest, control_path, request};
use crate::output;
use crate::status::{PathReport, QuotaReport, StatusReport, ask, bytes, write_columns};

/// Name and version of the JSON form.
pub const PATH_SCHEMA: &str = "sumrate.path.v1";

/// The paths of a process and how they are used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathListReport {
    /// [`PATH_SCHEMA`].
    pub schema: String,
    /// The paths of all its sessions, in order.
    pub paths: Vec<PathSummaryReport>,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathSummaryReport {
    /// The session's id; empty for a path of a client that has none.
    pub session: String,
    /// Its name.
    pub name: String,
    /// `active`, `suspect` or `dead`.
    pub health: String,
    /// `primary`, `backup`, or `backup2` to `backup9`.
    pub priority: String,
    /// Its share beside other paths with a weight.
    pub weight: Option<u8>,
    /// Most that this end sends on it.
    pub rate_cap_mbps: Option<f64>,
    /// Whether its bytes cost money.
    pub metered: bool,
    /// Classes that it never carries.
    pub never: Vec<String>,
    /// What it has used, where that is counted.
    pub quota: Option<QuotaReport>,
    /// Why it sends no data now, in a word.
    pub why: String,
}

/// Lists the paths, after changing one if asked to.
///
/// # Errors
/// [`CommandError`]
pub async fn path(args: PathCommandArgs) -> Result<(), CommandError> {
    let socket = status::socket(args.socket.as_deref()).await?;
    if let PathAction::Set { name, settings } = &args.action {
        let change = ControlRequest::new(name, settings.change());
        request(&control_path(&socket), &change).await?;
    }
    let report = list(&ask(&socket).await?);
    if args.json {
        return Ok(output::pretty_json(&report)?);
    }
    Ok(output::line(&table(&report)?)?)
}

fn list(status: &StatusReport) -> PathListReport {
    let summary = |session: &str, path: &PathReport| PathSummaryReport {
        session: session.to_owned(),
        name: path.name.clone(),
        health: path.health.clone(),
        priority: path.priority.clone(),
        weight: path.weight,
        rate_cap_mbps: path.rate_cap_mbps,
        metered: path.metered,
        never: path.never.clone(),
        quota: path.quota.clone(),
        why: path.why.clone(),
    };
    let of_session = |session: &crate::status::SessionReport| {
        session.paths.iter().map(|path| summary(&session.id, path)).collect::<Vec<_>>()
    };
    let idle = status.idle_paths.iter().map(|path| summary("", path));
    let paths = status.sessions.iter().flat_map(of_session).chain(idle).collect();
    PathListReport { schema: PATH_SCHEMA.to_owned(), paths }
}

fn table(report: &PathListReport) -> std::io::Result<String> {
    let head = [
        "path",
        "health",
        "priority",
        "weight",
        "rate cap",
        "metered",
        "never",
        "this month",
        "now",
    ];
    let none = || "-".to_owned();
    let row = |path: &PathSummaryReport| {
        let used = path.quota.as_ref().map(|quota| {
            let limit = quota.limit_bytes.map_or_else(String::new, |l| format!(" of {}", bytes(l)));
            format!("{}{limit}", bytes(quota.used_bytes))
        });
        vec![
            path.name.clone(),
            path.health.clone(),
            path.priority.clone(),
            path.weight.map_or_else(none, |weight| weight.to_string()),
            path.rate_cap_mbps.map_or_else(none, |rate| format!("{rate} Mbit/s")),
            if path.metered { "yes" } else { "no" }.to_owned(),
            if path.never.is_empty() { none() } else { path.never.join(", ") },
            used.unwrap_or_else(none),
            match &path.quota {
                Some(quota) if path.why == "quota" => quota.reached(),
                _ => path.why.replace('-', " "),
            },
        ]
    };
    let rows: Vec<_> = report.paths.iter().map(row).collect();
    let mut text = Vec::new();
    write_columns(&mut text, &head, &rows)?;
    Ok(String::from_utf8_lossy(&text).trim_end().to_owned())
}
