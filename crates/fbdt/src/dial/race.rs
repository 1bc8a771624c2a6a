//! Several attempts on one path, of which the first that gets through wins (F9b).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::Dialler;
use super::backoff::Backoff;
use super::enrol::Ready;
use super::error::DialError;
use super::plan::PathPlan;

/// How long attempts follow each other quickly, and how long each of those is kept.
const QUICK_PHASE: Duration = Duration::from_secs(3);
/// How long later attempts are kept: a path may be slow.
const PATIENT: Duration = Duration::from_secs(15);
/// Attempts of one path at once.
const MOST_PENDING: usize = 64;
/// An answer to Join is waited for at least this long before another connection tries.
const JOIN_PATIENCE: Duration = Duration::from_secs(1);

/// How quickly attempts follow each other at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// The path is new.
    First,
    /// The path was up: it may come back any moment.
    Revival,
}

impl Pace {
    fn interval(self) -> Duration {
        match self {
            Self::First => Duration::from_millis(250),
            Self::Revival => Duration::from_millis(50),
        }
    }
}

/// How a race ended.
pub(super) enum Outcome {
    /// The path has a new subflow.
    Up,
    /// The path lives again, or is no longer wanted.
    Cancelled,
    /// The server does not know the session any more.
    Refused,
}

type Enrolling = Pin<Box<dyn Future<Output = (SocketAddr, Result<(), DialError>)> + Send>>;
type Attempt = (Instant, Result<Ready, DialError>);

struct Race<'a> {
    dialler: &'a Arc<Dialler>,
    plan: &'a Arc<PathPlan>,
    pace: Pace,
    started: Instant,
    next_attempt: Instant,
    /// The attempts so far, by address.
    tried: BTreeMap<SocketAddr, usize>,
    backoff: Backoff,
    attempts: JoinSet<Attempt>,
    /// Connections with TLS done that wait for their turn.
    ready: Vec<(Instant, Ready)>,
    enrolling: Option<Enrolling>,
}

/// Dials until the path is up or `wanted` turns false; without `wanted`, until it is up.
pub(super) async fn race(
    dialler: &Arc<Dialler>,
    plan: &Arc<PathPlan>,
    pace: Pace,
    mut wanted: Option<&mut watch::Receiver<bool>>,
    kick: &Notify,
) -> Outcome {
    let now = Instant::now();
    let mut news = dialler.servers.news();
    let mut race = Race {
        dialler,
        plan,
        pace,
        started: now,
        next_attempt: now,
        tried: BTreeMap::new(),
        backoff: Backoff::new(),
        attempts: JoinSet::new(),
        ready: Vec::new(),
        enrolling: None,
    };
    loop {
        tokio::select! {
            () = unwanted(wanted.as_deref_mut()) => return Outcome::Cancelled,
            (remote, result) = enrolled(&mut race.enrolling) => {
                race.enrolling = None;
                match race.judge(remote, result) {
                    Some(outcome) => return outcome,
                    None => race.enrol_next(),
                }
            }
            Some(result) = race.attempts.join_next() => {
                if let Ok((begun, result)) = result {
                    race.connected(begun, result);
                }
            }
            () = sleep_until(race.next_attempt), if race.attempts.len() < MOST_PENDING => {
                race.attempt();
            }
            // Another address may be the right one.
            Ok(()) = news.changed() => if dialler.has_another(plan, &race.tried) {
                race.next_attempt = Instant::now();
            },
            () = kick.notified() => {
                race.backoff.reset();
                race.started = Instant::now();
                race.next_attempt = race.started;
            }
        }
    }
}

/// Ends when the path is no longer wanted.
async fn unwanted(wanted: Option<&mut watch::Receiver<bool>>) {
    match wanted {
        // Without a sender the session is gone.
        Some(wanted) => drop(wanted.wait_for(|wanted| !wanted).await),
        None => std::future::pending().await,
    }
}

async fn enrolled(enrolling: &mut Option<Enrolling>) -> (SocketAddr, Result<(), DialError>) {
    match enrolling {
        Some(enrolling) => enrolling.await,
        None => std::future::pending().await,
    }
}

impl Race<'_> {
    fn is_quick(&self) -> bool {
        self.started.elapsed() < QUICK_PHASE
    }

    /// Starts one more attempt and decides when the next one is due.
    fn attempt(&mut self) {
        if !self.is_quick() {
            // The server may have moved; later attempts see what this brings.
            self.dialler.servers.refresh(&self.plan.spec.local);
        }
        let delay = match self.is_quick() {
            true => self.pace.interval(),
            false => self.backoff.next(),
        };
        self.next_attempt = Instant::now() + delay;
        let remote = match self.dialler.choose(self.plan, &self.tried) {
            Ok(remote) => remote,
            Err(none) => return self.failed(&none.into()),
        };
        *self.tried.entry(remote).or_default() += 1;
        let limit = if self.is_quick() { QUICK_PHASE } else { PATIENT };
        let (dialler, plan) = (self.dialler.clone(), self.plan.clone());
        self.attempts.spawn(async move {
            let begun = Instant::now();
            let connecting = dialler.enrolment.connect(&plan.spec, remote);
            let result = timeout(limit, connecting)
                .await
                .unwrap_or_else(|_| Err(DialError::Silent { remote, waited: limit }));
            (begun, result)
        });
    }

    fn connected(&mut self, begun: Instant, result: Result<Ready, DialError>) {
        match result {
            Ok(ready) => {
                self.ready.push((begun, ready));
                self.enrol_next();
            }
            Err(error) => self.failed(&error),
        }
    }

    /// One connection at a time asks to be the path's subflow: the server takes the last.
    fn enrol_next(&mut self) {
        if self.enrolling.is_some() || self.ready.is_empty() {
            return;
        }
        let (begun, ready) = self.ready.remove(0);
        let (dialler, plan) = (self.dialler.clone(), self.plan.clone());
        // The answer takes about a third of what TCP and TLS took.
        let patience = JOIN_PATIENCE + begun.elapsed();
        self.enrolling = Some(Box::pin(async move {
            let remote = ready.remote;
            let label = dialler.enrolment.label(&plan.spec);
            let result = dialler.enrolment.enrol(ready, plan.id, &label, patience).await;
            if result.is_ok() {
                dialler.enrolment.tell_changes(&plan.spec, &label);
            }
            (remote, result)
        }));
    }

    fn judge(&mut self, remote: SocketAddr, result: Result<(), DialError>) -> Option<Outcome> {
        match result {
            Ok(()) => {
                self.dialler.succeeded(self.plan, remote);
                Some(Outcome::Up)
            }
            Err(error) => {
                let known = self.dialler.enrolment.membership().is_some();
                if !known || !error.is_refusal() {
                    self.failed(&error);
                    return None;
                }
                let is_forgotten = self.dialler.is_forgotten(self.plan, remote);
                self.failed(&DialError::OtherServer { remote });
                is_forgotten.then_some(Outcome::Refused)
            }
        }
    }

    /// An attempt failed: the next one waits longer, unless it merely got no answer.
    fn failed(&mut self, error: &DialError) {
        tracing::debug!(path = %self.plan.spec.name, %error, "dialling failed");
        self.dialler.failed(self.plan, error);
        if !matches!(error, DialError::Silent { .. }) {
            let earliest = Instant::now() + self.backoff.next();
            self.next_attempt = self.next_attempt.max(earliest);
        }
    }
}
