//! One path of a client: what it dials and probes with, and what it enters in the memory of paths.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::enrol::Membership;
use super::error::DialError;
use super::plan::PathPlan;
use super::probe::{Answer, Prober};
use super::race::{Outcome, at, race};
use super::{CLOSE_FORGOTTEN, Dialler};
use crate::dial_memory::{DialMemory, Due};
use crate::echo::EchoKey;
use crate::trouble::PathTrouble;

/// A path with its dialler.
pub(super) struct DialledPath {
    pub(super) dialler: Arc<Dialler>,
    pub(super) plan: Arc<PathPlan>,
    /// Its own interface, address or route changed.
    pub(super) kick: Arc<Notify>,
    /// What it is probed with, and whether that is the session's key.
    prober: Option<(Prober, bool)>,
}

/// Brings one path up, and up again whenever the session wants it.
pub(super) async fn run(dialler: Arc<Dialler>, plan: Arc<PathPlan>, kick: Arc<Notify>) {
    let mut path = DialledPath { dialler: dialler.clone(), plan: plan.clone(), kick, prober: None };
    let mut outcome = loop {
        dialler.enrolment.admitted(&plan.spec.name).await;
        dialler.servers.refresh(&plan.spec.local);
        tokio::select! {
            outcome = race(&mut path, None) => break outcome,
            () = dialler.enrolment.withheld(&plan.spec.name) => {}
        }
        path.end(&Outcome::Cancelled);
    };
    let Some(membership) = path.dialler.enrolment.membership().cloned() else {
        return;
    };
    let shared = &membership.shared;
    let (id, name) = (path.plan.id, path.plan.spec.name.clone());
    let mut wanted = shared.update(|inner, _| inner.dial_signal(id, &name));
    loop {
        if matches!(outcome, Outcome::Refused) {
            shared.close(CLOSE_FORGOTTEN, "the server has forgotten this session (restarted?)");
            return;
        }
        if !path.wanted(&mut wanted).await {
            return;
        }
        outcome = race(&mut path, Some(&mut wanted)).await;
    }
}

impl DialledPath {
    pub(super) fn memory(&self) -> &DialMemory {
        self.dialler.enrolment.memory()
    }

    /// When the next attempt and the next probe are due.
    pub(super) fn due(&self) -> Due {
        let due = self.memory().due(&self.plan.spec);
        let is_refused = || self.memory().of(&self.plan.spec, |known, _| known.is_refused());
        let can_probe = self.dialler.enrolment.membership().is_some() || is_refused();
        Due { probe: due.probe.filter(|_| can_probe), ..due }
    }

    /// The server's address that worked last on this path, or is tried first.
    fn server(&self) -> Option<SocketAddr> {
        self.dialler.choose(&self.plan, &BTreeMap::new()).ok().map(|(remote, _)| remote)
    }

    /// What it is probed with: without a session there are no answers, but refusals.
    fn echo_key(&self) -> EchoKey {
        let membership = self.dialler.enrolment.membership();
        membership.map_or_else(EchoKey::of_nobody, |membership| membership.echo(self.plan.id))
    }

    /// Waits until a connection is wanted, and finds out meanwhile whether probes are answered; `false` if
    /// the session is over.
    async fn wanted(&mut self, wanted: &mut watch::Receiver<bool>) -> bool {
        let kick = self.kick.clone();
        loop {
            let due = self.due();
            tokio::select! {
                result = wanted.wait_for(|wanted| *wanted) => return result.is_ok(),
                () = at(due.probe) => self.probe(),
                answer = self.answer() => {
                    self.answered(answer);
                    if let Some((prober, _)) = &mut self.prober {
                        prober.rest();
                    }
                }
                () = kick.notified() => {}
            }
        }
    }

    /// A connection is wanted.
    pub(super) fn begin(&self) {
        let id = self.plan.id;
        let membership = self.dialler.enrolment.membership();
        let seen = membership.map(|found| found.shared.inspect(|inner| inner.seen_of(id)));
        let (beside, rtt) = seen.unwrap_or_default();
        self.memory().of(&self.plan.spec, |known, now| {
            if let Some(rtt) = rtt {
                known.measured(rtt);
            }
            known.begin(now, beside);
        });
    }

    /// No connection is wanted any more.
    pub(super) fn end(&mut self, outcome: &Outcome) {
        self.memory().of(&self.plan.spec, |known, now| match outcome {
            Outcome::Cancelled => known.cancel(),
            Outcome::Up => known.up(now),
            Outcome::Refused => known.forgotten(),
        });
        if let Some((prober, _)) = &mut self.prober {
            prober.rest();
        }
    }

    /// Sends a probe.
    pub(super) fn probe(&mut self) {
        self.memory().of(&self.plan.spec, fbdt_proto::Dialling::probe);
        let Some(remote) = self.server() else { return };
        let (plan, mark) = (&self.plan, self.dialler.enrolment.mark());
        let is_member = self.dialler.enrolment.membership().is_some();
        let before = self.prober.take().filter(|(_, known)| *known == is_member);
        let (mut prober, known) =
            before.unwrap_or_else(|| (Prober::new(self.echo_key(), mark), is_member));
        let sent = prober.send(&plan.spec, remote);
        self.prober = Some((prober, known));
        if let Err(error) = sent {
            tracing::debug!(path = %plan.spec.name, %error, "no probe");
        }
    }

    /// Waits for what becomes of the probes.
    pub(super) async fn answer(&mut self) -> Answer {
        match &mut self.prober {
            Some((prober, _)) => prober.answer().await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn answered(&self, answer: Answer) {
        self.memory().of(&self.plan.spec, |known, now| match answer {
            Answer::Server(rtt) => known.answered(now, rtt),
            Answer::Nobody => known.unanswerable(now),
        });
    }

    /// An attempt failed.
    pub(super) fn failed(&self, error: &DialError) {
        let DialError::Silent { remote, waited, .. } = *error else {
            if error.trouble() == PathTrouble::ConnectionRefused {
                self.memory().of(&self.plan.spec, |known, _| known.refused());
            }
            return self.dialler.failed(&self.plan, error);
        };
        let PathPlan { id, spec } = &*self.plan;
        let limited = self.memory().of(spec, |known, _| {
            known.vanished();
            known.is_limited()
        });
        if limited {
            let error = DialError::Limited { path: spec.name.clone(), remote };
            if self.dialler.is_new_limit(&self.plan) {
                tracing::warn!("{error}");
            }
            return self.dialler.failed(&self.plan, &error);
        }
        let membership = self.dialler.enrolment.membership();
        let reached =
            |found: &Membership| found.shared.inspect(|inner| inner.is_reached_beside(*id));
        let elsewhere = membership.is_some_and(reached);
        self.dialler.failed(&self.plan, &DialError::Silent { remote, waited, elsewhere });
    }
}
