//! Keeps a client's session: watches its paths, says once when the server is lost and once when it is
//! back, and opens a new session whenever one is over.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fbdt::{
    ClientConfig, CloseReason, ConnectError, Health, PathFailure, PathInfo, PathSpec, Priority,
    Session, connect,
};
use tokio::sync::watch;

use super::CommandError;
use super::event::{UpEvent, UpLine, path_summaries, session_id};
use crate::output;
use crate::policy::Keeper;
use crate::sessions::Sessions;
use crate::status::{OutageReport, PathErrorReport, PathReport, list};

/// Pauses between attempts to open a new session.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// How often the paths are looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Since when the server cannot be reached, why, and what is done about it.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<Option<Found>>);

#[derive(Debug, Clone)]
struct Found {
    since: Instant,
    error: String,
    /// `None` while an attempt is under way, or while the paths of a session are dialled.
    next: Option<Instant>,
    /// Every path has used up its quota: nothing is tried.
    is_spent: bool,
    /// When this was noted.
    noted: Instant,
    /// What is known of paths.
    paths: Failures,
}

/// Paths, and what went wrong with each, if it is known.
type Failures = Vec<(String, Option<String>)>;

impl Outage {
    /// Notes what is wrong; the first note of an outage is its beginning.
    fn note(&self, error: String, next: Option<Instant>, paths: Failures) {
        self.enter(Found { next, paths, ..Found::new(error) });
    }

    /// Notes that these are all paths, and that each has used up its quota; says whether that is new.
    fn note_spent(&self, error: String, paths: &[String]) -> bool {
        let is_new = self.refusal().is_none_or(|known| known != error);
        let paths = paths.iter().map(|name| (name.clone(), None)).collect();
        self.enter(Found { is_spent: true, paths, ..Found::new(error) });
        is_new
    }

    fn enter(&self, found: Found) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = known.as_ref().map_or(found.since, |known| known.since);
        *known = Some(Found { since, ..found });
    }

    /// It is over; says how long it was, if there was one.
    fn over(&self) -> Option<Duration> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.take().map(|found| found.since.elapsed())
    }

    fn found(&self) -> Option<Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why no connection is made for anybody now, if every path has used up its quota.
    pub(super) fn refusal(&self) -> Option<String> {
        self.found().filter(|found| found.is_spent).map(|found| found.error)
    }

    /// For `sumrate status`.
    pub(super) fn report(&self) -> Option<OutageReport> {
        let found = self.found()?;
        let now = Instant::now();
        Some(OutageReport {
            since_s: now.saturating_duration_since(found.since).as_secs_f64(),
            last_error: found.error,
            next_attempt_s: found
                .next
                .map(|next| next.saturating_duration_since(now).as_secs_f64()),
            quotas_spent: found.is_spent,
        })
    }

    /// What is known of a client's paths while there is no session: of those that were named, and of
    /// those that were tried.
    pub(super) fn paths(&self, named: &[PathSpec]) -> Vec<PathReport> {
        let idle = |spec: &PathSpec| PathReport::idle(&spec.name, spec.priority);
        let mut paths: Vec<PathReport> = named.iter().map(idle).collect();
        let Some(found) = self.found() else { return paths };
        for (name, reason) in found.paths {
            let ago_s = found.noted.elapsed().as_secs_f64();
            let last_error =
                reason.map(|reason| PathErrorReport { reason, ago_s, interface_gone: false });
            match paths.iter_mut().find(|path| path.name == name) {
                Some(path) => path.last_error = last_error,
                None => {
                    let idle = PathReport::idle(&name, Priority::PRIMARY);
                    paths.push(PathReport { last_error, ..idle });
                }
            }
        }
        paths
    }
}

impl Found {
    fn new(error: String) -> Self {
        let now = Instant::now();
        Self { since: now, error, next: None, is_spent: false, noted: now, paths: Vec::new() }
    }
}

/// What went wrong with the paths of a session.
fn failures_of(paths: &[PathInfo]) -> Failures {
    let failure = |path: &PathInfo| {
        (path.name.clone(), path.last_error.as_ref().map(|error| error.reason.clone()))
    };
    paths.iter().map(failure).collect()
}

/// Opens a new session whenever one is over; ends when the server wants no more.
pub(super) async fn keep_session(
    config: &watch::Sender<ClientConfig>,
    sessions: &Sessions,
    outage: &Outage,
    keeper: &Keeper,
    json: bool,
) -> CommandError {
    let mut changes = sessions.subscribe();
    loop {
        let current = changes.borrow_and_update().clone();
        if let Some(session) = current {
            let watched = config.borrow().clone();
            let reason = tokio::select! {
                reason = session.closed() => why_closed(reason),
                never = watch_paths(&session, &watched, outage, keeper) => match never {},
                // A reload opened another; this one ends with its last stream.
                _ = changes.changed() => continue,
            };
            note_loss(&session, &reason, outage);
            print(json, UpEvent::SessionLost { session: session_id(&session), reason }.into_line());
            sessions.replace(None);
        }
        let opened = async {
            // It is another's session then: the guard must not outlive this.
            let _ = changes.wait_for(Option::is_some).await;
        };
        let found = tokio::select! {
            found = reconnect(config, outage, keeper) => found,
            // A reload opened one, by a link that may be another one.
            () = opened => {
                let _ = outage.over();
                continue;
            }
        };
        match found {
            Ok(session) => {
                let lasted = outage.over().unwrap_or_default();
                tracing::warn!(
                    "connected to the server again, after {:.0} s",
                    lasted.as_secs_f64()
                );
                let (id, paths) = (session_id(&session), path_summaries(&session));
                print(json, UpEvent::SessionRestored { session: id, paths }.into_line());
                sessions.replace(Some(session));
            }
            Err(error) => return error.into(),
        }
    }
}

/// Why a session ended, without the protocol's close codes.
fn why_closed(reason: CloseReason) -> String {
    match reason {
        CloseReason::Local { reason, .. } => reason,
        CloseReason::Peer { reason, .. } => format!("the server closed the session: {reason}"),
        other => other.to_string(),
    }
}

/// Logs that a session is over, and what follows.
fn note_loss(session: &Session, reason: &str, outage: &Outage) {
    if outage.refusal().is_some() {
        // Why is known; it does not end with the session.
        tracing::warn!("disconnected from the server: {reason}");
        return;
    }
    tracing::warn!("disconnected from the server: {reason}; reconnecting now");
    outage.note(reason.to_owned(), None, failures_of(&session.paths()));
}

/// Says which path is lost, that all are, and that they are back.
async fn watch_paths(
    session: &Session,
    config: &ClientConfig,
    outage: &Outage,
    keeper: &Keeper,
) -> std::convert::Infallible {
    let mut seen = BTreeSet::new();
    let mut lost: BTreeSet<String> = BTreeSet::new();
    loop {
        let paths = session.paths();
        let any_up = paths.iter().any(|path| path.health != Health::Dead);
        let names: Vec<String> = paths.iter().map(|path| path.name.clone()).collect();
        let is_withheld = |name: &String| config.policies.is_withheld(name);
        let all_withheld = !names.is_empty() && names.iter().all(is_withheld);
        for path in paths {
            let up = path.health != Health::Dead;
            // Whoever took it out of use has said so.
            let withheld = config.policies.is_withheld(&path.name);
            if up && lost.remove(&path.name) {
                tracing::warn!("{} is back", path.name);
            } else if !up
                && !withheld
                && seen.contains(&path.name)
                && lost.insert(path.name.clone())
            {
                tracing::warn!("{}", lost_words(&path));
            }
            if up {
                seen.insert(path.name);
            }
        }
        if any_up {
            let was_spent = outage.refusal().is_some();
            if let Some(lasted) = outage.over() {
                let what = if was_spent { "data is carried" } else { "the server answers" };
                tracing::warn!("{what} again, after {:.0} s", lasted.as_secs_f64());
            }
        } else if all_withheld {
            say_spent(outage, keeper, &names);
        } else {
            let usable: Vec<String> =
                names.iter().filter(|name| !is_withheld(name)).cloned().collect();
            say_lost(outage, config, &usable);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// That a path is lost, why, and what follows.
fn lost_words(path: &PathInfo) -> String {
    let name = &path.name;
    match &path.last_error {
        Some(error) if error.interface_gone => {
            format!(
                "{name} lost: its interface or address is gone; it reconnects when that is back"
            )
        }
        Some(error) => format!("{name} lost: {}; retrying every 5 s", error.reason),
        None => format!("{name} lost; retrying every 5 s"),
    }
}

/// Says once that no path is up.
fn say_lost(outage: &Outage, config: &ClientConfig, paths: &[String]) {
    let is_spent = outage.refusal().is_some();
    if !is_spent && outage.report().is_some() {
        return;
    }
    if !is_spent {
        // Also when the first look comes too late to see a path up: a session begins with one.
        tracing::warn!(
            "the server is unreachable over {}; retrying, open connections survive for {} s",
            list(paths),
            config.proto.linger.as_secs_f64()
        );
    }
    let words = "no path reaches it".to_owned();
    outage.note(words, None, Failures::new());
}

/// Says once that these are all paths and that none may be used, and what would change that.
fn say_spent(outage: &Outage, keeper: &Keeper, paths: &[String]) {
    let words = keeper.all_spent(paths);
    if outage.note_spent(words.clone(), paths) {
        tracing::warn!("{words}");
    }
}

/// Tries until there is a session, or the server says that there will be none.
async fn reconnect(
    config: &watch::Sender<ClientConfig>,
    outage: &Outage,
    keeper: &Keeper,
) -> Result<Session, ConnectError> {
    let mut pause = RETRY.0;
    loop {
        let current = config.borrow().clone();
        let policies = current.policies.clone();
        match connect(current).await {
            Ok(session) => return Ok(session),
            // Only the server itself can say so. Another key or version is what anybody on the network
            // can show, to end what keeps programs off it.
            Err(error @ ConnectError::Refused { .. }) => return Err(error),
            Err(ConnectError::Withheld { paths }) => {
                say_spent(outage, keeper, &paths);
                // Another interface may come, too.
                let admitted = policies.any_admitted(&paths);
                if tokio::time::timeout(RETRY.1, admitted).await.is_ok() {
                    let words = "a path may be used again; connecting".to_owned();
                    outage.note(words, None, Failures::new());
                }
                pause = RETRY.0;
                continue;
            }
            Err(error) => {
                if matches!(error, ConnectError::WrongKey | ConnectError::NoCommonVersion) {
                    tracing::warn!(
                        "cannot connect to the server: {error}; next attempt in {pause:?}"
                    );
                } else {
                    tracing::info!(
                        "cannot connect to the server: {error}; next attempt in {pause:?}"
                    );
                }
                let failures = match &error {
                    ConnectError::NoPath { failures, .. } => failures.as_slice(),
                    _ => &[],
                };
                let failure =
                    |failure: &PathFailure| (failure.path.clone(), Some(failure.reason.clone()));
                let failures = failures.iter().map(failure).collect();
                outage.note(error.to_string(), Some(Instant::now() + pause), failures);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

fn print(json: bool, line: UpLine) {
    if json && let Err(error) = output::json(&line) {
        tracing::warn!(%error, "cannot print an event");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_keeps_its_beginning_and_the_last_error() {
        let outage = Outage::default();
        assert_eq!(outage.report(), None);
        outage.note("one".to_owned(), None, Failures::new());
        std::thread::sleep(Duration::from_millis(2));
        let next = Instant::now() + Duration::from_secs(9);
        outage.note("two".to_owned(), Some(next), Failures::new());
        let report = outage.report().unwrap();
        assert!(report.since_s >= 0.002 && report.last_error == "two");
        assert!(report.next_attempt_s.is_some_and(|next| next > 8.0));
        assert!(outage.over().is_some() && outage.over().is_none());
    }

    #[test]
    fn used_up_quotas_are_said_once_and_refuse_until_something_else_is_wrong() {
        let outage = Outage::default();
        let (words, paths) = ("every path".to_owned(), ["lte".to_owned()]);
        assert!(outage.note_spent(words.clone(), &paths));
        assert!(!outage.note_spent(words.clone(), &paths), "it is said once");
        assert_eq!(outage.refusal(), Some(words));
        assert!(outage.report().unwrap().quotas_spent);
        outage.note("refused".to_owned(), None, Failures::new());
        assert_eq!(outage.refusal(), None);
        assert!(!outage.report().unwrap().quotas_spent);
    }

    #[test]
    fn paths_without_a_session_are_those_named_and_those_tried() {
        let outage = Outage::default();
        let named = [PathSpec {
            name: "lte".to_owned(),
            priority: Priority::BACKUP,
            ..PathSpec::default()
        }];
        let failure = |name: &str, reason: &str| (name.to_owned(), Some(reason.to_owned()));
        let failures = vec![failure("wifi", "refused"), failure("lte", "unreachable")];
        outage.note("no path".to_owned(), None, failures);
        let paths = outage.paths(&named);
        let said = |path: &PathReport| {
            let reason = path.last_error.as_ref().map(|error| error.reason.clone());
            (path.name.clone(), path.priority.clone(), path.health.clone(), reason.unwrap())
        };
        let wanted =
            [("lte", "backup", "dead", "unreachable"), ("wifi", "primary", "dead", "refused")].map(
                |(name, priority, health, reason)| {
                    (name.to_owned(), priority.to_owned(), health.to_owned(), reason.to_owned())
                },
            );
        assert_eq!(paths.iter().map(said).collect::<Vec<_>>(), wanted);
    }
}
