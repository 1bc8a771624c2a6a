//! Finds events by comparing a daemon's state with the state one second before.

use std::collections::{BTreeMap, VecDeque};

use fbdt::Health;

use super::{EventLevel, HistoryEvent, Look, OutageLook, PathLook, SessionLook};
use crate::policy::Withheld;
use crate::status::lasting;

/// A path that is dialled anew because its use was changed is not lost, for so many seconds.
const DIALLED_S: f64 = 5.0;
/// Events kept.
const KEPT: usize = 100;

/// The state of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Condition {
    Paused,
    Lost,
    Spent,
    Silent,
    Up,
}

/// A path, and since when it is in its condition.
#[derive(Debug, Clone, Copy)]
struct Known {
    condition: Condition,
    since_s: f64,
    /// Whether it has ever been up.
    was_up: bool,
}

/// An outage, since when, and whether used-up quotas are its reason.
#[derive(Debug, Clone, Copy)]
struct Outage {
    since_s: f64,
    is_spent: bool,
}

/// The client of a path (at a server), and the path's name.
type Key = (Option<String>, String);

/// An event with the time at which it happened.
#[derive(Debug, Clone)]
struct Noted {
    at_s: f64,
    event: HistoryEvent,
}

/// Finds events, and keeps the last of them.
#[derive(Debug, Default)]
pub(super) struct Events {
    noted: VecDeque<Noted>,
    paths: BTreeMap<Key, Known>,
    clients: BTreeMap<String, String>,
    outage: Option<Outage>,
    changed: BTreeMap<String, f64>,
}

impl Events {
    /// Compares a look with the one before.
    pub(super) fn observe(&mut self, at_s: f64, look: &Look) {
        self.observe_server(at_s, look.outage.as_ref());
        self.observe_clients(at_s, &look.sessions);
        if look.sessions.is_empty() {
            // One event says it for all paths.
            self.paths.clear();
            return;
        }
        let conditions = conditions(&look.sessions);
        let is_client = look.sessions.iter().all(|session| session.client.is_none());
        let gone: Vec<Key> =
            self.paths.keys().filter(|key| !conditions.contains_key(*key)).cloned().collect();
        for key in gone {
            self.paths.remove(&key);
            if is_client {
                let words = format!("{} is gone", key.1);
                self.note(at_s, ("path-gone", EventLevel::Notice), Some(&key), words);
            }
        }
        for (key, condition) in &conditions {
            let carries = |(other, condition): (&Key, &Condition)| {
                other.0 == key.0 && other != key && *condition == Condition::Up
            };
            self.observe_path(at_s, key, *condition, conditions.iter().any(carries));
        }
    }

    /// Notes that the user changed how a path is used.
    pub(super) fn changed(&mut self, at_s: f64, path: &str, words: String) {
        let key = (None, path.to_owned());
        self.changed.insert(path.to_owned(), at_s);
        self.note(at_s, ("path-changed", EventLevel::Notice), Some(&key), words);
    }

    /// The events, the oldest first.
    pub(super) fn report(&self, now_s: f64) -> Vec<HistoryEvent> {
        let aged = |noted: &Noted| HistoryEvent {
            ago_s: (now_s - noted.at_s).max(0.0),
            ..noted.event.clone()
        };
        self.noted.iter().map(aged).collect()
    }

    fn observe_server(&mut self, at_s: f64, outage: Option<&OutageLook>) {
        match (outage, self.outage) {
            (Some(now), before) if before.is_none_or(|before| before.is_spent != now.is_spent) => {
                let is_spent = now.is_spent;
                self.outage = Some(Outage { since_s: at_s, is_spent });
                let words = match is_spent {
                    true => now.words.clone(),
                    false => format!("the server does not answer: {}", now.words),
                };
                self.note(at_s, ("server-lost", EventLevel::Bad), None, words);
            }
            (None, Some(before)) => {
                self.outage = None;
                let lasted = lasting(at_s - before.since_s);
                let words = match before.is_spent {
                    true => format!("data is carried again after {lasted}"),
                    false => format!("the server answers again after {lasted}"),
                };
                self.note(at_s, ("server-back", EventLevel::Good), None, words);
            }
            _ => {}
        }
    }

    fn observe_clients(&mut self, at_s: f64, sessions: &[SessionLook]) {
        let now: BTreeMap<String, String> = sessions
            .iter()
            .filter_map(|session| Some((session.id.clone(), session.client.clone()?)))
            .collect();
        let before = std::mem::replace(&mut self.clients, now.clone());
        let only = |all: &BTreeMap<String, String>, others: &BTreeMap<String, String>| {
            let fresh = all.iter().filter(|(id, _)| !others.contains_key(*id));
            fresh.map(|(_, client)| client.clone()).collect::<Vec<_>>()
        };
        for client in only(&before, &now) {
            let words = format!("{client} disconnected");
            self.note_client(at_s, ("client-left", EventLevel::Notice), client, words);
        }
        for client in only(&now, &before) {
            let words = format!("{client} connected");
            self.note_client(at_s, ("client-joined", EventLevel::Good), client, words);
        }
    }

    fn observe_path(&mut self, at_s: f64, key: &Key, condition: Condition, others_carry: bool) {
        let known = self.paths.get(key).copied();
        let changed_s = self.changed.get(&key.1).map_or(f64::INFINITY, |changed| at_s - changed);
        let is_unwell = matches!(condition, Condition::Lost | Condition::Silent);
        if known.is_some() && is_unwell && changed_s < DIALLED_S {
            return;
        }
        let was_up = condition == Condition::Up || known.is_some_and(|known| known.was_up);
        let since_s = match known {
            Some(known) if known.condition == condition => return,
            Some(known) if known.condition == Condition::Paused => at_s,
            // A break that gets worse goes on.
            Some(known) if known.condition < Condition::Up && condition < Condition::Up => {
                known.since_s
            }
            _ => at_s,
        };
        self.paths.insert(key.clone(), Known { condition, since_s, was_up });
        if let Some((kind, words)) = told(&key.1, (known, condition), at_s, others_carry) {
            self.note(at_s, kind, Some(key), words);
        }
    }

    fn note(&mut self, at_s: f64, kind: (&str, EventLevel), key: Option<&Key>, words: String) {
        let (client, path) = match key {
            Some((client, path)) => (client.clone(), Some(path.clone())),
            None => (None, None),
        };
        self.enter(at_s, kind, (client, path), words);
    }

    fn note_client(&mut self, at_s: f64, kind: (&str, EventLevel), client: String, words: String) {
        self.enter(at_s, kind, (Some(client), None), words);
    }

    fn enter(
        &mut self,
        at_s: f64,
        (event, level): (&str, EventLevel),
        (client, path): (Option<String>, Option<String>),
        words: String,
    ) {
        if self.noted.len() == KEPT {
            self.noted.pop_front();
        }
        let event =
            HistoryEvent { ago_s: 0.0, event: event.to_owned(), level, path, client, words };
        self.noted.push_back(Noted { at_s, event });
    }
}

/// The event of a path whose condition has changed.
fn told(
    name: &str,
    (known, condition): (Option<Known>, Condition),
    at_s: f64,
    others_carry: bool,
) -> Option<((&'static str, EventLevel), String)> {
    let event = |kind, level, words| Some(((kind, level), words));
    match (condition, known) {
        (Condition::Up, Some(known)) if known.condition == Condition::Spent => {
            event("quota-free", EventLevel::Good, format!("{name} has quota again"))
        }
        (Condition::Up, Some(known)) if known.was_up && known.condition != Condition::Paused => {
            let lasted = lasting(at_s - known.since_s);
            event("path-back", EventLevel::Good, format!("{name} is back after {lasted}"))
        }
        (Condition::Up, _) => event("path-up", EventLevel::Good, format!("{name} is connected")),
        (Condition::Silent, _) => {
            let words = format!("{name} does not answer; probing it");
            event("path-silent", EventLevel::Notice, words)
        }
        (Condition::Lost, Some(known)) if known.was_up => {
            let rest = if others_carry { "; the others carry on" } else { "" };
            event("path-lost", EventLevel::Bad, format!("{name} is lost{rest}"))
        }
        // Who paused it knows.
        (Condition::Lost | Condition::Paused, _) => None,
        (Condition::Spent, _) => {
            let words = format!("{name} is paused: its quota is used up");
            event("quota-used-up", EventLevel::Notice, words)
        }
    }
}

/// Each path's condition: the best one where several sessions have a path of that name.
fn conditions(sessions: &[SessionLook]) -> BTreeMap<Key, Condition> {
    let mut conditions = BTreeMap::new();
    for session in sessions {
        for path in &session.paths {
            let condition = condition(path);
            let entry = conditions.entry((session.client.clone(), path.name.clone()));
            let best: &mut Condition = entry.or_insert(condition);
            *best = (*best).max(condition);
        }
    }
    conditions
}

fn condition(path: &PathLook) -> Condition {
    match path.health {
        _ if path.withheld == Some(Withheld::Paused) => Condition::Paused,
        _ if path.withheld == Some(Withheld::Spent) => Condition::Spent,
        Health::Active => Condition::Up,
        Health::Suspect => Condition::Silent,
        Health::Dead => Condition::Lost,
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
