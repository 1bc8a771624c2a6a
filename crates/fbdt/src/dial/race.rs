//! Attempts on one path, of which the first that gets through wins (F9b). When each of them begins is
//! [`Dialling`](fbdt_proto::Dialling)'s rule.

use std::collections::BTreeMap;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use fbdt_proto::Dialling;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::enrol::Ready;
use super::error::DialError;
use super::path::DialledPath;
use crate::identity::fill_random;

/// An answer to Join is waited for at least this long before another connection tries.
const JOIN_PATIENCE: Duration = Duration::from_secs(1);

/// How often the server's name is looked up meanwhile.
const LOOK_UP: Duration = Duration::from_secs(3);

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
    path: &'a mut DialledPath,
    /// The attempts so far, by address.
    tried: BTreeMap<SocketAddr, usize>,
    attempts: JoinSet<Attempt>,
    /// Connections with TLS done that wait for their turn.
    ready: Vec<(Instant, Ready)>,
    enrolling: Option<Enrolling>,
}

/// Dials until the path is up or `wanted` turns false; without `wanted`, until it is up.
pub(super) async fn race(
    path: &mut DialledPath,
    mut wanted: Option<&mut watch::Receiver<bool>>,
) -> Outcome {
    path.begin();
    let mut news = path.dialler.servers.news();
    let mut look_up = tokio::time::interval(LOOK_UP);
    look_up.reset();
    let mut race = Race {
        path,
        tried: BTreeMap::new(),
        attempts: JoinSet::new(),
        ready: Vec::new(),
        enrolling: None,
    };
    let kick = race.path.kick.clone();
    let outcome = loop {
        let due = race.path.due();
        tokio::select! {
            () = unwanted(wanted.as_deref_mut()) => break Outcome::Cancelled,
            (remote, result) = enrolled(&mut race.enrolling) => {
                race.enrolling = None;
                match race.judge(remote, result) {
                    Some(outcome) => break outcome,
                    None => race.enrol_next(),
                }
            }
            Some(result) = race.attempts.join_next() => {
                if let Ok((begun, result)) = result {
                    race.connected(begun, result);
                }
            }
            () = at(due.attempt) => race.attempt(),
            () = at(due.probe) => race.path.probe(),
            answer = race.path.answer() => race.path.answered(answer),
            // Another address may be the right one.
            Ok(()) = news.changed() => race.learnt(),
            // The server may have moved.
            _ = look_up.tick() => race.path.dialler.servers.refresh(&race.path.plan.spec.local),
            // What is due has changed.
            () = kick.notified() => {}
        }
    };
    race.path.end(&outcome);
    outcome
}

/// Ends at that time, if there is one.
pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

/// Ends when the path is no longer wanted.
async fn unwanted(wanted: Option<&mut watch::Receiver<bool>>) {
    match wanted {
        // Without a sender the session is gone.
        Some(wanted) => drop(wanted.wait_for(|wanted| !wanted).await),
        None => pending().await,
    }
}

async fn enrolled(enrolling: &mut Option<Enrolling>) -> (SocketAddr, Result<(), DialError>) {
    match enrolling {
        Some(enrolling) => enrolling.await,
        None => pending().await,
    }
}

impl Race<'_> {
    /// Something was learnt of the server's addresses.
    fn learnt(&self) {
        let path = &self.path;
        if path.dialler.has_another(&path.plan, &self.tried) {
            path.memory().of(&path.plan.spec, Dialling::another_address);
        }
    }

    /// Starts one more attempt, if it is due still: another one may have got further meanwhile.
    fn attempt(&mut self) {
        let path = &self.path;
        if path.due().attempt.is_none_or(|at| at > Instant::now()) {
            return;
        }
        let chosen = path.dialler.choose(&path.plan, &self.tried);
        let addresses = chosen.as_ref().map_or(1, |(_, addresses)| *addresses);
        // Without randomness it is the middle.
        let mut spread = [128];
        let _ = fill_random(&mut spread);
        let patience = path
            .memory()
            .of(&path.plan.spec, |known, now| known.attempt(now, addresses, spread[0]));
        let remote = match chosen {
            Ok((remote, _)) => remote,
            Err(none) => {
                path.memory().of(&path.plan.spec, |known, _| known.not_sent());
                return self.failed(&none.into());
            }
        };
        *self.tried.entry(remote).or_default() += 1;
        let (dialler, plan) = (path.dialler.clone(), path.plan.clone());
        self.attempts.spawn(async move {
            let begun = Instant::now();
            (begun, dialler.enrolment.connect(&plan.spec, remote, patience).await)
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
        let (dialler, plan) = (self.path.dialler.clone(), self.path.plan.clone());
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
                self.path.dialler.succeeded(&self.path.plan, remote);
                Some(Outcome::Up)
            }
            Err(error) => {
                let dialler = self.path.dialler.clone();
                let known = dialler.enrolment.membership().is_some();
                if !known || !error.is_refusal() {
                    self.failed(&error);
                    return None;
                }
                let is_forgotten = dialler.is_forgotten(&self.path.plan, remote);
                self.failed(&DialError::OtherServer { remote });
                is_forgotten.then_some(Outcome::Refused)
            }
        }
    }

    fn failed(&self, error: &DialError) {
        tracing::debug!(path = %self.path.plan.spec.name, %error, "dialling failed");
        self.path.failed(error);
    }
}
