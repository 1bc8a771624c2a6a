//! Keeps a client's session: watches its paths, says once when the server is lost and once when it is
//! back, and opens a new session whenever one is over.

use std::collections::BTreeSet;
use std::time::Duration;

use fbdt::{ClientConfig, CloseReason, ConnectError, Health, PathInfo, Session};
use tokio::time::Instant;

use super::CommandError;
use super::event::{UpEvent, UpLine, path_summaries, session_id};
use super::outage::{Failed, Outage, troubles};
use super::servers::{Servers, is_final, is_reached};
use crate::output;
use crate::policy::Keeper;
use crate::sessions::Sessions;
use crate::status::list;

/// Pauses between attempts to open a new session.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
/// How often the paths are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How long every path may be silent before the server counts as unreachable.
const SILENCE: Duration = Duration::from_secs(2);

/// Opens a new session whenever one is over, and one at another server where that is better; ends when
/// every server wants no more.
pub(super) async fn keep_session(
    servers: &Servers,
    sessions: &Sessions,
    outage: &Outage,
    keeper: &Keeper,
    json: bool,
) -> CommandError {
    let mut changes = sessions.subscribe();
    loop {
        let current = changes.borrow_and_update().clone();
        if let (Some(session), Some(watched)) = (current, servers.current()) {
            let reason = tokio::select! {
                reason = session.closed() => why_closed(reason),
                never = watch_paths(&session, &watched, outage, keeper) => match never {},
                (index, better) = servers.better(&session) => {
                    change_server(servers, sessions, outage, (index, better), json);
                    continue;
                }
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
            found = reconnect(servers, outage, keeper) => found,
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
                announce(&session, json);
                sessions.replace(Some(session));
            }
            Err(error) => return error.into(),
        }
    }
}

/// New connections go by another server; those that there are stay with theirs.
fn change_server(
    servers: &Servers,
    sessions: &Sessions,
    outage: &Outage,
    (index, session): (usize, Session),
    json: bool,
) {
    tracing::warn!("{}", servers.changed_words(index));
    servers.enter(index);
    let _ = outage.over();
    announce(&session, json);
    sessions.replace(Some(session));
}

fn announce(session: &Session, json: bool) {
    let (id, paths) = (session_id(session), path_summaries(session));
    print(json, UpEvent::SessionRestored { session: id, paths }.into_line());
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
    if outage.spent().is_some() {
        // Why is known; it does not end with the session.
        tracing::warn!("disconnected from the server: {reason}");
        return;
    }
    tracing::warn!("disconnected from the server: {reason}; reconnecting now");
    let paths = session.paths();
    outage.note(reason.to_owned(), None, paths.iter().map(Failed::from).collect());
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
    let mut silent: Option<Instant> = None;
    loop {
        let paths = session.paths();
        let any_up = paths.iter().any(|path| path.health != Health::Dead);
        // Their connections are there, and nothing comes back: a moment of that is a radio's.
        silent = if is_reached(session) { None } else { silent.or(Some(Instant::now())) };
        let silent_for = silent.map_or(Duration::ZERO, |since| since.elapsed());
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
        if any_up && silent_for < SILENCE {
            let was_spent = outage.spent().is_some();
            if let Some(lasted) = outage.over() {
                let what = if was_spent { "data is carried" } else { "the server answers" };
                tracing::warn!("{what} again, after {:.0} s", lasted.as_secs_f64());
            }
        } else if all_withheld {
            say_spent(outage, keeper, &names);
        } else {
            let usable = session.paths();
            let usable = usable.iter().filter(|path| !is_withheld(&path.name));
            say_lost(outage, config, silent_for, usable.map(Failed::from).collect());
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
        Some(error) => {
            format!("{name} lost: {}; it is tried again, ever more rarely", error.reason)
        }
        None => format!("{name} lost; it is tried again, ever more rarely"),
    }
}

/// Says once that no path reaches the server, since when, and notes what is known of each.
fn say_lost(outage: &Outage, config: &ClientConfig, lasts: Duration, paths: Vec<Failed>) {
    let is_spent = outage.spent().is_some();
    if !is_spent && outage.report().is_none() {
        let names: Vec<&str> = paths.iter().map(Failed::name).collect();
        // Also when the first look comes too late to see a path up: a session begins with one.
        tracing::warn!(
            "the server is unreachable over {}; retrying, open connections survive for {} s",
            list(&names),
            config.proto.linger.as_secs_f64()
        );
    }
    let words = match troubles(&paths) {
        words if words.is_empty() => "no path reaches it".to_owned(),
        words => words,
    };
    outage.note_lasting(lasts, words, paths);
}

/// Says once that these are all paths and that none may be used, and what would change that.
fn say_spent(outage: &Outage, keeper: &Keeper, paths: &[String]) {
    let words = keeper.all_spent(paths);
    if outage.note_spent(words.clone(), paths) {
        tracing::warn!("{words}");
    }
}

/// Tries until there is a session, or every server says that there will be none.
async fn reconnect(
    servers: &Servers,
    outage: &Outage,
    keeper: &Keeper,
) -> Result<Session, ConnectError> {
    let mut pause = RETRY.0;
    loop {
        match servers.open().await {
            Ok(session) => return Ok(session),
            // Only the server itself can say so. Another key or version is what anybody on the network
            // can show, to end what keeps programs off it.
            Err(error) if is_final(&error) => return Err(error),
            Err(ConnectError::Withheld { paths }) => {
                say_spent(outage, keeper, &paths);
                // Another interface may come, too.
                let policies = servers.current().map(|config| config.policies).unwrap_or_default();
                let admitted = policies.any_admitted(&paths);
                if tokio::time::timeout(RETRY.1, admitted).await.is_ok() {
                    let words = "a path may be used again; connecting".to_owned();
                    outage.note(words, None, Vec::new());
                }
                pause = RETRY.0;
                continue;
            }
            Err(error) => note_failure(outage, &error, pause),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

/// Logs that there is no session yet, and notes what is known of each path.
fn note_failure(outage: &Outage, error: &ConnectError, pause: Duration) {
    match error {
        ConnectError::WrongKey { .. } | ConnectError::NoCommonVersion { .. } => {
            tracing::warn!("cannot connect to the server: {error}; next attempt in {pause:?}");
        }
        _ => tracing::info!("cannot connect to the server: {error}; next attempt in {pause:?}"),
    }
    outage.note_failure(error, Some(Instant::now() + pause));
}

fn print(json: bool, line: UpLine) {
    if json && let Err(error) = output::json(&line) {
        tracing::warn!(%error, "cannot print an event");
    }
}
