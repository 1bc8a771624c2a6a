//! Takes a sample a second, and answers with the last five minutes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::events::Events;
use super::series::{Counter, Ring, Sample};
use super::{HISTORY_SCHEMA, HistoryReport, Look, PathSeriesReport, TotalSeriesReport};
use crate::status::{PathReport, RatesReport, StatusReport};

/// Time between two samples.
const STEP: Duration = Duration::from_secs(1);
/// Paths with samples of their own: those of further clients of a server are in the total alone.
const MOST_PATHS: usize = 64;

/// The client of a path (at a server), and the path's name.
type Key = (Option<String>, String);

#[derive(Debug, Default)]
struct State {
    at_s: f64,
    total: Ring,
    /// In the order in which the paths came.
    paths: Vec<(Key, Ring)>,
    /// At a client: bytes of TCP since the start by path, also of sessions that are over.
    carried: BTreeMap<String, u64>,
    /// By session and path.
    counters: HashMap<(String, String), Counter>,
    events: Events,
}

/// The history of one daemon.
#[derive(Debug)]
pub struct History {
    started: Instant,
    state: Mutex<State>,
}

impl History {
    /// The history of a process that started then.
    pub fn new(started: Instant) -> Self {
        Self { started, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Takes a sample a second until the future is dropped.
    pub async fn keep(&self, look: impl Fn() -> Look) {
        loop {
            let look = look();
            self.lock().observe(self.now_s(), &look);
            tokio::time::sleep(STEP).await;
        }
    }

    /// Notes that the user changed how a path is used.
    pub fn note_change(&self, path: &str, words: String) {
        self.lock().events.changed(self.now_s(), path, words);
    }

    /// The last five minutes.
    pub fn report(&self) -> HistoryReport {
        self.lock().report(self.now_s())
    }

    /// Adds to a status report the rates of the last two seconds, and the bytes since the start.
    pub fn annotate(&self, report: &mut StatusReport) {
        self.lock().annotate(self.now_s(), report);
    }
}

impl State {
    fn observe(&mut self, at_s: f64, look: &Look) {
        let seconds = (at_s - self.at_s).max(1e-3);
        // A second that was slept through has the mean of the time around it.
        let times = (seconds.round() as usize).max(1);
        self.at_s = at_s;
        let mut samples: BTreeMap<Key, Sample> = BTreeMap::new();
        let mut total = Sample::default();
        for session in &look.sessions {
            for path in &session.paths {
                let counter =
                    self.counters.entry((session.id.clone(), path.name.clone())).or_default();
                let [down, up, carried] = counter.advance(at_s, path.down, path.up, path.carried);
                let sample = Sample::new(down, up, path.rtt_us, seconds);
                let key = (session.client.clone(), path.name.clone());
                total.join(sample);
                if session.client.is_none() {
                    *self.carried.entry(path.name.clone()).or_default() += carried;
                }
                samples.entry(key).or_default().join(sample);
            }
        }
        self.total.push(total, times);
        self.append(samples, times);
        self.forget(look);
        self.events.observe(at_s, look);
    }

    fn append(&mut self, mut samples: BTreeMap<Key, Sample>, times: usize) {
        self.paths.retain_mut(|(key, ring)| {
            let sample = samples.remove(key);
            ring.push(sample.unwrap_or_default(), times);
            sample.is_some() || !ring.is_still()
        });
        let room = MOST_PATHS.saturating_sub(self.paths.len());
        for (key, sample) in samples.into_iter().take(room) {
            let mut ring = Ring::default();
            ring.push(sample, times);
            self.paths.push((key, ring));
        }
    }

    /// Drops the counters of sessions that are over.
    fn forget(&mut self, look: &Look) {
        let ids: HashSet<&str> = look.sessions.iter().map(|session| session.id.as_str()).collect();
        self.counters.retain(|(id, _), _| ids.contains(id.as_str()));
    }

    fn report(&self, now_s: f64) -> HistoryReport {
        let length = self.total.len();
        let mbps = |kbps: u32| f64::from(kbps) / 1e3;
        let down = |ring: &Ring| ring.values(length, &0.0, |sample| mbps(sample.down_kbps));
        let up = |ring: &Ring| ring.values(length, &0.0, |sample| mbps(sample.up_kbps));
        let rtt = |sample: &Sample| (sample.rtt_us > 0).then(|| f64::from(sample.rtt_us) / 1e3);
        let path = |((client, name), ring): &(Key, Ring)| PathSeriesReport {
            name: name.clone(),
            client: client.clone(),
            down_mbps: down(ring),
            up_mbps: up(ring),
            rtt_ms: ring.values(length, &None, rtt),
        };
        HistoryReport {
            schema: HISTORY_SCHEMA.to_owned(),
            uptime_s: self.at_s,
            step_s: STEP.as_secs_f64(),
            total: TotalSeriesReport { down_mbps: down(&self.total), up_mbps: up(&self.total) },
            paths: self.paths.iter().map(path).collect(),
            events: self.events.report(now_s),
        }
    }

    fn annotate(&self, now_s: f64, report: &mut StatusReport) {
        let is_server = report.role == "server";
        let mut total = RatesReport::default();
        for session in &mut report.sessions {
            for path in &mut session.paths {
                self.annotate_path(now_s, &session.id, is_server, path);
                total.down_mbps += path.down_mbps;
                total.up_mbps += path.up_mbps;
            }
        }
        for path in &mut report.idle_paths {
            self.annotate_path(now_s, "", is_server, path);
        }
        report.rates = total;
    }

    fn annotate_path(&self, now_s: f64, session: &str, is_server: bool, path: &mut PathReport) {
        let counter = self.counters.get(&(session.to_owned(), path.name.clone()));
        // Several clients of a server may have one name: their sessions are counted apart.
        path.carried_bytes = match is_server {
            true => counter.map_or(0, |counter| counter.carried),
            false => self.carried.get(&path.name).copied().unwrap_or_default(),
        };
        let rates = |counter: &Counter| counter.rates(now_s, path.received_bytes, path.sent_bytes);
        // A path that is lost carries nothing now, whatever it did a second ago.
        let counter = counter.filter(|_| path.health != "dead");
        (path.down_mbps, path.up_mbps) = counter.map(rates).unwrap_or_default();
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
