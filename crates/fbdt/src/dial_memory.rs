//! What a client has learnt by dialling its paths, for as long as it runs: a new session goes on where the
//! last one was, with the same budget (F18).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fbdt_proto::{Dialling, DiallingSeries, Instant};

use crate::clock::Clock;
use crate::config::PathSpec;

/// A memory of paths. Clones are handles to the same one.
#[derive(Clone)]
pub struct DialMemory {
    session: Arc<OfSession>,
}

/// The session that a handle is for.
struct OfSession {
    shared: Arc<Shared>,
    number: u64,
}

struct Shared {
    clock: Clock,
    sessions: AtomicU64,
    paths: Mutex<HashMap<Key, Known>>,
}

/// The path, however it is used.
type Key = (String, crate::socket::LocalBinding);

#[derive(Default)]
struct Known {
    /// What all sessions share.
    dialling: Dialling,
    /// Its interface, addresses and routes to the server when they were looked at last.
    place: Option<String>,
    sessions: BTreeMap<u64, Own>,
    /// Attempts of a session that is over, for the next one to go on with.
    left: Option<DiallingSeries>,
}

/// A path of one session.
#[derive(Default)]
struct Own {
    series: Option<DiallingSeries>,
    place: Option<String>,
}

/// When a path's next attempt and probe are due.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Due {
    pub(crate) attempt: Option<tokio::time::Instant>,
    pub(crate) probe: Option<tokio::time::Instant>,
}

impl Default for DialMemory {
    fn default() -> Self {
        let clock = Clock::start();
        let shared = Shared { clock, sessions: AtomicU64::new(1), paths: Mutex::default() };
        Self { session: Arc::new(OfSession { shared: Arc::new(shared), number: 0 }) }
    }
}

impl Drop for OfSession {
    fn drop(&mut self) {
        let mut paths = self.shared.paths.lock().unwrap_or_else(PoisonError::into_inner);
        for known in paths.values_mut() {
            let own = known.sessions.remove(&self.number);
            known.left = own.and_then(|own| own.series).or(known.left);
        }
    }
}

impl fmt::Debug for DialMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DialMemory").finish_non_exhaustive()
    }
}

impl DialMemory {
    /// The same memory for another session.
    pub(crate) fn of_session(&self) -> Self {
        let shared = self.session.shared.clone();
        let number = shared.sessions.fetch_add(1, Ordering::Relaxed);
        Self { session: Arc::new(OfSession { shared, number }) }
    }

    fn known<R>(
        &self,
        spec: &PathSpec,
        change: impl FnOnce(&mut Known, &mut Own, Instant) -> R,
    ) -> R {
        let OfSession { shared, number } = &*self.session;
        let mut paths = shared.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let known = paths.entry((spec.name.clone(), spec.local.clone())).or_default();
        let left = known.sessions.is_empty().then(|| known.left.take()).flatten();
        let begun = || Own { series: left, place: known.place.clone() };
        let mut own = known.sessions.remove(number).unwrap_or_else(begun);
        known.dialling.exchange(own.series);
        let result = change(known, &mut own, shared.clock.now());
        own.series = known.dialling.exchange(None);
        if own.series.is_none() {
            // The path is up, or nobody wants it: attempts from before are no part of the next outage.
            known.left = None;
        }
        known.sessions.insert(*number, own);
        result
    }

    /// Looks at a path, or enters what has happened.
    pub(crate) fn of<R>(
        &self,
        spec: &PathSpec,
        change: impl FnOnce(&mut Dialling, Instant) -> R,
    ) -> R {
        self.known(spec, |known, _, now| change(&mut known.dialling, now))
    }

    /// When something is to be done next.
    pub(crate) fn due(&self, spec: &PathSpec) -> Due {
        let clock = self.session.shared.clock;
        self.of(spec, |dialling, _| {
            let tokio = |at: Option<Instant>| at.map(|at| clock.to_tokio(at));
            Due { attempt: tokio(dialling.next_attempt()), probe: tokio(dialling.next_probe()) }
        })
    }

    /// The path's interface is as described, or gone; says whether that is new to this session.
    pub(crate) fn moved(&self, spec: &PathSpec, place: Option<String>) -> bool {
        self.known(spec, |known, own, now| {
            if own.place == place {
                return false;
            }
            own.place.clone_from(&place);
            if known.place == place {
                known.dialling.restart(now);
            } else {
                known.place = place;
                known.dialling.moved(now);
            }
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f18_a_path_begins_anew_when_its_own_place_changes_and_not_otherwise() {
        let memory = DialMemory::default();
        let spec = PathSpec { name: "wifi".to_owned(), ..PathSpec::default() };
        let place = || Some("wlan0 10.0.0.2".to_owned());
        assert!(memory.moved(&spec, place()) && !memory.clone().moved(&spec, place()));
        memory.of(&spec, |dialling, now| {
            dialling.begin(now, false);
            for _ in 0..3 {
                dialling.attempt(now, 1, 128);
            }
        });
        let is_due = || memory.due(&spec).attempt.is_some_and(|at| at.elapsed().as_secs() < 1);
        let now = tokio::time::Instant::now();
        assert!(memory.due(&spec).attempt.is_some_and(|at| at > now), "the budget is used up");
        assert!(!memory.moved(&spec, place()));
        assert!(memory.due(&spec).attempt.is_some_and(|at| at > now));
        assert!(memory.moved(&spec, None) && memory.moved(&spec, place()));
        assert!(is_due(), "its address is back");
    }

    #[test]
    fn f18_sessions_share_a_budget_and_not_their_attempts() {
        let first = DialMemory::default().of_session();
        let second = first.of_session();
        let spec = PathSpec { name: "wifi".to_owned(), ..PathSpec::default() };
        first.moved(&spec, Some("wlan0".to_owned()));
        assert!(second.moved(&spec, Some("wlan1".to_owned())));
        assert!(first.moved(&spec, Some("wlan1".to_owned())), "it is news to the first one too");
        for memory in [&first, &second] {
            memory.of(&spec, |dialling, now| dialling.begin(now, false));
        }
        first.of(&spec, |dialling, now| {
            dialling.attempt(now, 1, 128);
            dialling.up(now);
        });
        assert!(first.due(&spec).attempt.is_none());
        assert!(second.due(&spec).attempt.is_some(), "the second one goes on");
        second.of(&spec, |dialling, now| {
            dialling.attempt(now, 1, 128);
            dialling.attempt(now, 1, 128);
        });
        first.of(&spec, |dialling, now| dialling.begin(now, false));
        let now = tokio::time::Instant::now();
        assert!(first.due(&spec).attempt.is_some_and(|at| at > now), "three were made in all");
        second.of(&spec, |dialling, _| dialling.cancel());
        let due = first.due(&spec).attempt;
        let third = first.of_session();
        drop((first, second));
        third.of(&spec, |dialling, now| dialling.begin(now, false));
        let later = |at: tokio::time::Instant| at + std::time::Duration::from_millis(1);
        assert!(
            third.due(&spec).attempt <= due.map(later)
                && due <= third.due(&spec).attempt.map(later)
        );
    }
}
