//! What each path carried between two reports.

use serde::{Deserialize, Serialize};

use super::words;
use crate::status::{PathReport, SessionReport, StatusReport};

/// Name and version of the JSON form.
pub const EXPLAIN_SCHEMA: &str = "sumrate.explain.v1";

/// Every path of a process, explained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainReport {
    /// [`EXPLAIN_SCHEMA`].
    pub schema: String,
    /// Seconds that were looked at.
    pub seconds: f64,
    /// What holds for all paths.
    pub sentences: Vec<String>,
    /// The paths.
    pub paths: Vec<PathExplanation>,
}

/// One path, explained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathExplanation {
    /// The session's id; empty for a path of a client that has none.
    pub session: String,
    /// Name of the client's credential; absent at a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Its name.
    pub name: String,
    /// What this end sent on it, copies included.
    pub sent_mbps: f64,
    /// What this end received on it.
    pub received_mbps: f64,
    /// Its part of what this end sent; absent when nothing was.
    pub sent_share: Option<f64>,
    /// Its part of what this end received; absent when nothing was.
    pub received_share: Option<f64>,
    /// The reason that counts most, as in the status.
    pub why: String,
    /// The explanation.
    pub sentences: Vec<String>,
}

/// What a path did between two reports.
#[derive(Clone, Copy)]
pub(super) struct Interval<'a> {
    pub(super) path: &'a PathReport,
    pub(super) session: &'a SessionReport,
    pub(super) sent_mbps: f64,
    pub(super) received_mbps: f64,
    pub(super) all_sent_mbps: f64,
    pub(super) all_received_mbps: f64,
    /// Where most of the time went, and which part of it.
    pub(super) why: &'a str,
    pub(super) why_share: f64,
    /// Whether the reason is the other end's, for what it sends.
    pub(super) is_far: bool,
}

/// Explains what happened between two reports of one process.
pub fn explain(before: &StatusReport, after: &StatusReport) -> ExplainReport {
    let seconds = (after.uptime_s - before.uptime_s).max(1e-3);
    let mut paths = Vec::new();
    for session in &after.sessions {
        let earlier = before.sessions.iter().find(|known| known.id == session.id);
        paths.extend(of_session(earlier, session, seconds));
    }
    paths.extend(after.idle_paths.iter().map(without_session));
    ExplainReport {
        schema: EXPLAIN_SCHEMA.to_owned(),
        seconds,
        sentences: words::of_process(after),
        paths,
    }
}

fn without_session(path: &PathReport) -> PathExplanation {
    PathExplanation {
        session: String::new(),
        credential: None,
        name: path.name.clone(),
        sent_mbps: 0.0,
        received_mbps: 0.0,
        sent_share: None,
        received_share: None,
        why: path.why.clone(),
        sentences: words::of_idle_path(path),
    }
}

fn of_session(
    earlier: Option<&SessionReport>,
    session: &SessionReport,
    seconds: f64,
) -> Vec<PathExplanation> {
    let before = |path: &PathReport| earlier?.paths.iter().find(|known| known.name == path.name);
    let mbps = |now: u64, then: u64| now.saturating_sub(then) as f64 * 8e-6 / seconds;
    let rates: Vec<(f64, f64)> = session
        .paths
        .iter()
        .map(|path| {
            let then = before(path);
            let sent = |path: &PathReport| path.sent_bytes + path.redundant_bytes;
            (
                mbps(sent(path), then.map_or(0, sent)),
                mbps(path.received_bytes, then.map_or(0, |then| then.received_bytes)),
            )
        })
        .collect();
    let (all_sent, all_received) =
        rates.iter().fold((0.0, 0.0), |sum, rate| (sum.0 + rate.0, sum.1 + rate.1));
    let explained = session.paths.iter().zip(&rates).map(|(path, (sent, received))| {
        let (why, why_share) = prevailing(before(path), path);
        let interval = Interval {
            path,
            session,
            sent_mbps: *sent,
            received_mbps: *received,
            all_sent_mbps: all_sent,
            all_received_mbps: all_received,
            why,
            why_share,
            is_far: false,
        };
        let (far_before, far_path) = (before(path).and_then(from_afar), from_afar(path));
        let far = far_path.as_ref().map(|path| {
            let (why, why_share) = prevailing(far_before.as_ref(), path);
            Interval { path, why, why_share, is_far: true, ..interval }
        });
        PathExplanation {
            session: session.id.clone(),
            credential: session.credential.clone(),
            name: path.name.clone(),
            sent_mbps: *sent,
            received_mbps: *received,
            sent_share: share(*sent, all_sent),
            received_share: share(*received, all_received),
            why: why.to_owned(),
            sentences: words::of_path(&interval, far.as_ref()),
        }
    });
    explained.collect()
}

/// The path as the other end sends on it, if that has said it.
fn from_afar(path: &PathReport) -> Option<PathReport> {
    let far = path.far.as_ref()?;
    Some(PathReport {
        why_idle: far.words().to_owned(),
        why: far.why.clone(),
        waited_s: far.waited_s.clone(),
        rate_mbps: far.rate_mbps,
        commit_bytes: far.commit_bytes,
        commit_limit_bytes: far.commit_limit_bytes,
        retransmitted_share: far.retransmitted_share,
        sent_bytes: path.received_bytes,
        redundant_bytes: path.duplicate_bytes,
        ..path.clone()
    })
}

fn share(part: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| part / all)
}

/// The reason that took most of the time between two reports; the present one if none has ended.
fn prevailing<'a>(before: Option<&PathReport>, path: &'a PathReport) -> (&'a str, f64) {
    if words::AT_BOTH_ENDS.contains(&path.why.as_str()) {
        return (&path.why, 1.0);
    }
    let spent = |(why, time): (&'a String, &f64)| {
        let then = before.and_then(|before| before.waited_s.get(why)).copied().unwrap_or(0.0);
        (why.as_str(), (time - then).max(0.0))
    };
    let spent: Vec<(&str, f64)> = path.waited_s.iter().map(spent).collect();
    let all: f64 = spent.iter().map(|(_, time)| time).sum();
    match spent.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((why, time)) if time > 0.0 => (why, time / all),
        _ => (&path.why, 1.0),
    }
}
