//! Keeps a client's session: watches its paths, says once when the server is lost and once when it is
//! back, and opens a new session whenever one is over.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fbdt::{ClientConfig, ConnectError, Health, Session, connect};
use tokio::sync::watch;

use super::CommandError;
use super::event::{UpEvent, UpLine, path_summaries, session_id};
use crate::output;
use crate::sessions::Sessions;
use crate::status::OutageReport;

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
}

impl Outage {
    /// Notes what is wrong; the first note of an outage is its beginning.
    fn note(&self, error: String, next: Option<Instant>) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = found.as_ref().map_or_else(Instant::now, |found| found.since);
        *found = Some(Found { since, error, next });
    }

    /// It is over; says how long it was, if there was one.
    fn over(&self) -> Option<Duration> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.take().map(|found| found.since.elapsed())
    }

    /// For `sumrate status`.
    pub(super) fn report(&self) -> Option<OutageReport> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let now = Instant::now();
        Some(OutageReport {
            since_s: now.saturating_duration_since(found.since).as_secs_f64(),
            last_error: found.error,
            next_attempt_s: found
                .next
                .map(|next| next.saturating_duration_since(now).as_secs_f64()),
        })
    }
}

/// Opens a new session whenever one is over; ends when the server wants no more.
pub(super) async fn keep_session(
    config: &watch::Sender<ClientConfig>,
    sessions: &Sessions,
    outage: &Outage,
    json: bool,
) -> CommandError {
    let mut changes = sessions.subscribe();
    loop {
        let Some(session) = changes.borrow_and_update().clone() else {
            return ConnectError::WrongProof.into();
        };
        let watched = config.borrow().clone();
        let reason = tokio::select! {
            reason = session.closed() => reason.to_string(),
            never = watch_paths(&session, &watched, outage) => match never {},
            // A reload opened another; this one ends with its last stream.
            _ = changes.changed() => continue,
        };
        tracing::warn!("the session is over: {reason}; a new one is dialled now");
        outage.note(reason.clone(), None);
        print(json, UpEvent::SessionLost { session: session_id(&session), reason }.into_line());
        sessions.replace(None);
        drop(session);
        match reconnect(config, outage).await {
            Ok(session) => {
                let lasted = outage.over().unwrap_or_default();
                tracing::warn!("there is a session again, after {:.1} s", lasted.as_secs_f64());
                let (id, paths) = (session_id(&session), path_summaries(&session));
                print(json, UpEvent::SessionRestored { session: id, paths }.into_line());
                sessions.replace(Some(session));
            }
            Err(error) => return error.into(),
        }
    }
}

/// Says which path is lost, that all are, and that they are back.
async fn watch_paths(
    session: &Session,
    config: &ClientConfig,
    outage: &Outage,
) -> std::convert::Infallible {
    let mut seen = BTreeSet::new();
    let mut lost: BTreeSet<String> = BTreeSet::new();
    loop {
        let paths = session.paths();
        let any_up = paths.iter().any(|path| path.health != Health::Dead);
        let names: Vec<String> = paths.iter().map(|path| path.name.clone()).collect();
        for path in paths {
            let up = path.health != Health::Dead;
            // Whoever took it out of use has said so.
            let withheld = config.policies.is_withheld(&path.name);
            if up && lost.remove(&path.name) {
                tracing::warn!("path {} is back", path.name);
            } else if !up
                && !withheld
                && seen.contains(&path.name)
                && lost.insert(path.name.clone())
            {
                tracing::warn!(
                    "path {} lost its connection; it is dialled again at once, then every 5 s or so",
                    path.name
                );
            }
            if up {
                seen.insert(path.name);
            }
        }
        if any_up {
            if let Some(lasted) = outage.over() {
                tracing::warn!("the server is reached again, after {:.1} s", lasted.as_secs_f64());
            }
        } else if outage.report().is_none() {
            // Also when the first look comes too late to see a path up: a session begins with one.
            tracing::warn!(
                "the server is lost: no path is up; the session waits {} s for one of: {}",
                config.proto.linger.as_secs_f64(),
                names.join(", ")
            );
            outage.note("no path to the server is up; all are being dialled".to_owned(), None);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Tries until there is a session, or the server says that there will be none.
async fn reconnect(
    config: &watch::Sender<ClientConfig>,
    outage: &Outage,
) -> Result<Session, ConnectError> {
    let mut pause = RETRY.0;
    loop {
        let current = config.borrow().clone();
        match connect(current).await {
            Ok(session) => return Ok(session),
            Err(
                error @ (ConnectError::Refused { .. }
                | ConnectError::WrongKey
                | ConnectError::NoCommonVersion),
            ) => return Err(error),
            Err(error) => {
                tracing::info!("no session yet: {error}; next attempt in {pause:?}");
                outage.note(error.to_string(), Some(Instant::now() + pause));
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
        outage.note("one".to_owned(), None);
        std::thread::sleep(Duration::from_millis(2));
        outage.note("two".to_owned(), Some(Instant::now() + Duration::from_secs(9)));
        let report = outage.report().unwrap();
        assert!(report.since_s >= 0.002 && report.last_error == "two");
        assert!(report.next_attempt_s.is_some_and(|next| next > 8.0));
        assert!(outage.over().is_some() && outage.over().is_none());
    }
}
