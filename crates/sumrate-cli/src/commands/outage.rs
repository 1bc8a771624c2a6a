//! Since when the server cannot be reached, why, and what is done about it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fbdt::{ConnectError, PathFailure, PathInfo, PathSpec, PathTrouble, Priority};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::output::without_codes;
use crate::status::{OutageReport, PathErrorReport, PathReport, list};

/// How long no path may reach the server before new connections are refused: what is over sooner is
/// waited for. Where there are several servers, others are tried meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE_OF_SEVERAL: Duration = Duration::from_secs(8);

/// That the server cannot be reached, if so.
#[derive(Debug, Default)]
pub(super) struct Outage {
    found: watch::Sender<Option<Found>>,
    /// The log says that connections are refused.
    is_said: AtomicBool,
}

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
    paths: Vec<Failed>,
}

/// A path, and what went wrong with it, if it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    name: String,
    error: Option<(PathTrouble, String)>,
}

impl From<&PathInfo> for Failed {
    fn from(path: &PathInfo) -> Self {
        let error =
            path.last_error.as_ref().map(|error| (error.trouble, without_codes(&error.reason)));
        Self { name: path.name.clone(), error }
    }
}

impl From<&PathFailure> for Failed {
    fn from(failure: &PathFailure) -> Self {
        let error = Some((failure.trouble, without_codes(&failure.reason)));
        Self { name: failure.path.clone(), error }
    }
}

impl Failed {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Outage {
    /// Notes what is wrong; the first note of an outage is its beginning.
    pub(super) fn note(&self, error: String, next: Option<Instant>, paths: Vec<Failed>) {
        self.enter(Found { next, paths, ..Found::new(error) });
    }

    /// Notes that none of these paths works, and for how long that has been so.
    pub(super) fn note_lasting(&self, lasts: Duration, error: String, paths: Vec<Failed>) {
        let found = Found::new(error);
        let since = found.since.checked_sub(lasts).unwrap_or(found.since);
        self.enter(Found { since, paths, ..found });
    }

    /// Notes why an attempt failed, and when the next one is.
    pub(super) fn note_failure(&self, error: &ConnectError, next: Option<Instant>) {
        let paths = match error {
            ConnectError::NoPath { failures, .. } => failures.iter().map(Failed::from).collect(),
            _ => Vec::new(),
        };
        self.note(error.to_string(), next, paths);
    }

    /// Notes that these are all paths, and that each has used up its quota; says whether that is new.
    pub(super) fn note_spent(&self, error: String, paths: &[String]) -> bool {
        let is_new = self.spent().is_none_or(|known| known != error);
        let paths = paths.iter().map(|name| Failed { name: name.clone(), error: None }).collect();
        self.enter(Found { is_spent: true, paths, ..Found::new(error) });
        is_new
    }

    fn enter(&self, found: Found) {
        self.found.send_modify(|known| {
            let same = known.as_ref().filter(|known| known.is_spent == found.is_spent);
            let since = same.map_or(found.since, |known| known.since);
            *known = Some(Found { since, ..found });
        });
    }

    /// It is over; says how long it was, if there was one.
    pub(super) fn over(&self) -> Option<Duration> {
        let found = self.found.send_replace(None);
        self.is_said.store(false, Ordering::Relaxed);
        found.map(|found| found.since.elapsed())
    }

    fn known(&self) -> Option<Found> {
        self.found.borrow().clone()
    }

    /// What is wrong, if every path has used up its quota.
    pub(super) fn spent(&self) -> Option<String> {
        self.known().filter(|found| found.is_spent).map(|found| found.error)
    }

    /// Waits until no connection is made for anybody, and says why, once in the log: what comes back
    /// within a moment is waited for. Where there are several servers, others are tried meanwhile.
    pub(super) async fn refusal(&self, servers: impl Fn() -> Vec<String>) -> String {
        let mut known = self.found.subscribe();
        loop {
            let found = known.borrow_and_update().clone();
            let patience = match &found {
                Some(found) if found.is_spent => Duration::ZERO,
                Some(found) => {
                    let several = servers().len() > 1;
                    let least = if several { PATIENCE_OF_SEVERAL } else { PATIENCE };
                    least.saturating_sub(found.since.elapsed())
                }
                None => Duration::MAX,
            };
            if let Some(found) = found.filter(|_| patience.is_zero()) {
                let words = found.refusal_words(&servers());
                // That quotas are used up is said already.
                if !found.is_spent && !self.is_said.swap(true, Ordering::Relaxed) {
                    tracing::warn!("new connections are refused: {words}");
                }
                return words;
            }
            // The sender lives as long as `self`: that it is gone is no news.
            let _ = tokio::time::timeout(patience, known.changed()).await;
        }
    }

    /// For `sumrate status`.
    pub(super) fn report(&self) -> Option<OutageReport> {
        let found = self.known()?;
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
        let Some(found) = self.known() else { return paths };
        let ago_s = found.noted.elapsed().as_secs_f64();
        for Failed { name, error } in found.paths {
            let last_error = error.map(|(trouble, reason)| PathErrorReport {
                trouble: trouble.name().to_owned(),
                reason,
                ago_s,
                interface_gone: trouble == PathTrouble::InterfaceGone,
            });
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
        let (now, error) = (Instant::now(), without_codes(&error));
        Self { since: now, error, next: None, is_spent: false, noted: now, paths: Vec::new() }
    }

    /// Why a program gets no connection.
    fn refusal_words(&self, servers: &[String]) -> String {
        if self.is_spent {
            return self.error.clone();
        }
        let why = troubles(&self.paths);
        let why = if why.is_empty() { self.error.clone() } else { why };
        let (which, are) = match servers {
            [_, _, ..] => ("servers", "are"),
            _ => ("server", "is"),
        };
        format!("the Sumrate {which} {} {are} not reachable ({why})", list(servers))
    }
}

/// What is wrong with paths, each kind once: `connection refused on lte0 and wifi0`.
pub(super) fn troubles(paths: &[Failed]) -> String {
    let mut kinds: Vec<(PathTrouble, Vec<&str>)> = Vec::new();
    for path in paths {
        let Some((trouble, _)) = &path.error else { continue };
        match kinds.iter_mut().find(|(known, _)| known == trouble) {
            Some((_, names)) => names.push(&path.name),
            None => kinds.push((*trouble, vec![&path.name])),
        }
    }
    let words =
        kinds.iter().map(|(trouble, names)| format!("{} on {}", trouble.words(), list(names)));
    words.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(name: &str, trouble: PathTrouble, reason: &str) -> Failed {
        Failed { name: name.to_owned(), error: Some((trouble, reason.to_owned())) }
    }

    #[test]
    fn an_outage_keeps_its_beginning_and_the_last_error() {
        let outage = Outage::default();
        assert_eq!(outage.report(), None);
        outage.note("one".to_owned(), None, Vec::new());
        std::thread::sleep(Duration::from_millis(2));
        let next = Instant::now() + Duration::from_secs(9);
        outage.note("two".to_owned(), Some(next), Vec::new());
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
        assert_eq!(outage.spent(), Some(words));
        assert!(outage.report().unwrap().quotas_spent);
        outage.note("refused".to_owned(), None, Vec::new());
        assert_eq!(outage.spent(), None);
        assert!(!outage.report().unwrap().quotas_spent);
    }

    /// Time stands still until everybody waits.
    #[tokio::test(start_paused = true)]
    async fn connections_are_refused_once_an_outage_lasts_and_told_why() {
        let outage = Outage::default();
        let one = || vec!["203.0.113.1:443".to_owned()];
        let refused = tokio::time::timeout(PATIENCE * 100, outage.refusal(one));
        assert!(refused.await.is_err(), "nothing is wrong");
        outage.note("a short silence".to_owned(), None, Vec::new());
        let refused = tokio::time::timeout(PATIENCE / 2, outage.refusal(one));
        assert!(refused.await.is_err(), "it may pass");
        outage.over();
        let (refused, silent) = (PathTrouble::ConnectionRefused, PathTrouble::NoAnswer);
        let paths = vec![
            failed("lte0", refused, "connection refused"),
            failed("eth0", silent, "no answer"),
            failed("wifi0", refused, "connection refused"),
        ];
        outage.note("no path".to_owned(), None, paths);
        let words = outage.refusal(one).await;
        let expected = "the Sumrate server 203.0.113.1:443 is not reachable (connection refused on \
                        lte0 and wifi0; no answer on eth0)";
        assert_eq!(words, expected);
        outage.over();
        outage.note("the server stops".to_owned(), None, Vec::new());
        let words = outage.refusal(|| vec!["a:1".to_owned(), "b:2".to_owned()]).await;
        assert_eq!(words, "the Sumrate servers a:1 and b:2 are not reachable (the server stops)");
    }

    #[test]
    fn paths_without_a_session_are_those_named_and_those_tried() {
        let outage = Outage::default();
        let named = [PathSpec {
            name: "lte".to_owned(),
            priority: Priority::BACKUP,
            ..PathSpec::default()
        }];
        let failures = vec![
            failed("wifi", PathTrouble::Refused, "refused"),
            failed("lte", PathTrouble::Unreachable, "unreachable"),
        ];
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
