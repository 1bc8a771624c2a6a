//! `sumrate path`.

use serde::{Deserialize, Serialize};

use super::{CommandError, status};
use crate::args::{PathAction, PathCommandArgs};
use crate::control::{ControlRequest, control_path, request};
use crate::output;
use crate::status::{
    PathReport, QuotaReport, SessionReport, StatusReport, ask, bytes, label, write_columns,
};

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
    /// Name of the client's credential; absent at a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Its name.
    pub name: String,
    /// `active`, `suspect` or `dead`.
    pub health: String,
    /// How it works, in a few words.
    #[serde(default)]
    pub state: String,
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
    let status = ask(&socket).await?;
    let report = list(&status);
    if args.json {
        return Ok(output::pretty_json(&report)?);
    }
    if report.paths.is_empty() {
        return Ok(output::line(&nothing(&status))?);
    }
    Ok(output::line(&table(&report)?)?)
}

/// Why there are no paths.
fn nothing(status: &StatusReport) -> String {
    let why = match (&status.outage, status.role.as_str()) {
        (Some(outage), _) => outage.words(),
        (None, "server") => "no client is connected".to_owned(),
        (None, _) => "not connected to the server".to_owned(),
    };
    format!("no paths: {why}")
}

fn list(status: &StatusReport) -> PathListReport {
    let summary = |session: Option<&SessionReport>, path: &PathReport| PathSummaryReport {
        session: session.map_or_else(String::new, |session| session.id.clone()),
        credential: session.and_then(|session| session.credential.clone()),
        name: path.name.clone(),
        health: path.health.clone(),
        state: path.state.as_ref().map_or(&path.health, |state| &state.words).clone(),
        priority: path.priority.clone(),
        weight: path.weight,
        rate_cap_mbps: path.rate_cap_mbps,
        metered: path.metered,
        never: path.never.clone(),
        quota: path.quota.clone(),
        why: path.why.clone(),
    };
    let of_session = |session: &SessionReport| {
        session.paths.iter().map(|path| summary(Some(session), path)).collect::<Vec<_>>()
    };
    let idle = status.idle_paths.iter().map(|path| summary(None, path));
    let paths = status.sessions.iter().flat_map(of_session).chain(idle).collect();
    PathListReport { schema: PATH_SCHEMA.to_owned(), paths }
}

/// The session has a column where there are several.
fn table(report: &PathListReport) -> std::io::Result<String> {
    let is_one = report.paths.windows(2).all(|two| two[0].session == two[1].session);
    let mut head =
        vec!["path", "state", "priority", "weight", "limit", "metered", "never", "data this month"];
    if !is_one {
        head.insert(1, "session");
    }
    let none = || "-".to_owned();
    let row = |path: &PathSummaryReport| {
        let used = path.quota.as_ref().map(|quota| {
            let limit = quota.limit_bytes.map_or_else(String::new, |l| format!(" of {}", bytes(l)));
            format!("{}{limit}", bytes(quota.used_bytes))
        });
        let mut row = vec![
            path.name.clone(),
            path.state.clone(),
            path.priority.clone(),
            path.weight.map_or_else(none, |weight| weight.to_string()),
            path.rate_cap_mbps.map_or_else(none, |rate| format!("{rate} Mbit/s")),
            if path.metered { "yes" } else { "no" }.to_owned(),
            if path.never.is_empty() { none() } else { path.never.join(", ") },
            used.unwrap_or_else(none),
        ];
        if !is_one {
            row.insert(1, label(&path.session, path.credential.as_deref()));
        }
        row
    };
    let rows: Vec<_> = report.paths.iter().map(row).collect();
    let mut text = Vec::new();
    write_columns(&mut text, &head, &rows)?;
    Ok(String::from_utf8_lossy(&text).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, credential: Option<&str>) -> SessionReport {
        let path = |name: &str| PathReport { name: name.to_owned(), ..PathReport::default() };
        let credential = credential.map(str::to_owned);
        let paths = vec![path("wlan0"), path("usb0")];
        SessionReport { id: id.repeat(32), credential, paths, ..SessionReport::default() }
    }

    fn status(sessions: Vec<SessionReport>) -> StatusReport {
        StatusReport { sessions, ..StatusReport::default() }
    }

    #[test]
    fn a_server_tells_the_paths_of_its_clients_apart() {
        let one = list(&status(vec![session("a", Some("office"))]));
        assert!(!table(&one).unwrap().contains("session"), "one needs no column");
        let two = list(&status(vec![session("a", Some("office")), session("b", None)]));
        let table = table(&two).unwrap();
        let cells: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(cells[0][..3], ["path", "session", "state"], "{table}");
        assert_eq!(cells[2][..3], ["usb0", "aaaaaaaa", "office"], "{table}");
        assert_eq!(cells[3][..2], ["wlan0", "bbbbbbbb"], "{table}");
    }

    #[test]
    fn where_there_is_no_path_it_is_said_why() {
        assert_eq!(nothing(&status(vec![])), "no paths: not connected to the server");
    }
}
