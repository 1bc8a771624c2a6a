//! Keeps one dialler per path, as interfaces come and go.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fbdt_proto::PathId;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::Dialler;
use super::path::run;
use super::plan::{PathPlan, Plan};
use crate::clock::Clock;
use crate::config::PathSpec;
use crate::interfaces::{InterfaceWatch, Places, SuspensionWatch};
use crate::session::PathError;

/// After the system did not tell which interfaces there are.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A machine that was suspended for less has missed nothing.
const SLEEP: Duration = Duration::from_secs(1);

/// A path's running dialler.
struct Running {
    plan: Arc<PathPlan>,
    kick: Arc<Notify>,
    task: AbortHandle,
    /// Whether its interface was there when last looked at.
    present: bool,
}

/// All diallers of a client.
struct Diallers {
    dialler: Arc<Dialler>,
    tasks: JoinSet<()>,
    running: BTreeMap<PathId, Running>,
    /// Where paths leave this machine, if the system says so.
    places: Option<Places>,
    /// How long the machine had been suspended when that was looked at last.
    slept: Duration,
}

/// Dials the plan's paths until the session is over or this future is dropped.
pub(super) async fn follow(dialler: Arc<Dialler>, mut plan: Plan) {
    let (mut watch, mut suspension) = (InterfaceWatch::start(), SuspensionWatch::start());
    let mut diallers = Diallers {
        dialler: dialler.clone(),
        tasks: JoinSet::new(),
        running: BTreeMap::new(),
        places: None,
        slept: Clock::slept(),
    };
    let servers = || dialler.servers.addresses();
    // What the system does not tell now is asked again soon.
    let mut look_again = None;
    diallers.look(&servers());
    match plan.initial(&servers()) {
        Ok(paths) => paths.into_iter().for_each(|path| diallers.start(path, false)),
        Err(error) => look_again = Some(untold(&error)),
    }
    match plan.present(&servers()) {
        Ok(present) => diallers.mark_present(&present),
        Err(error) => look_again = Some(untold(&error)),
    }
    // All of them are known now: that none of them may be used is seen only then.
    dialler.noted.notify_one();
    let mut registered = false;
    loop {
        tokio::select! {
            () = dialler.enrolment.formed(), if !registered => {
                registered = true;
                diallers.register();
            }
            () = suspension.over() => diallers.resume(),
            () = changed(&mut watch, look_again) => match plan.present(&servers()) {
                Ok(present) => {
                    look_again = None;
                    diallers.look(&servers());
                    diallers.adapt(present);
                    diallers.resume();
                }
                Err(error) => look_again = Some(untold(&error)),
            },
            Some(_) = diallers.tasks.join_next() => {}
            () = dialler.enrolment.session_over() => return,
        }
    }
}

/// Interfaces that cannot be listed are no interfaces that are gone: paths stay as they are. When to
/// look again.
fn untold(error: &std::io::Error) -> Instant {
    tracing::debug!(%error, "interfaces cannot be listed");
    Instant::now() + LOOK_AGAIN
}

/// Ends when interfaces may have changed, or at that time.
async fn changed(watch: &mut InterfaceWatch, look_again: Option<Instant>) {
    let Some(at) = look_again else { return watch.changed().await };
    tokio::select! {
        () = watch.changed() => {}
        () = sleep_until(at) => {}
    }
}

impl Diallers {
    /// Looks where paths leave this machine.
    fn look(&mut self, servers: &[IpAddr]) {
        self.places = Places::read(servers)
            .inspect_err(|error| tracing::debug!(%error, "interfaces cannot be listed"))
            .ok();
    }

    /// Enters where a path leaves this machine; says whether that has changed.
    fn has_moved(&self, spec: &PathSpec) -> bool {
        let Some(places) = &self.places else { return false };
        self.dialler.enrolment.memory().moved(spec, places.of(&spec.local))
    }

    fn start(&mut self, plan: PathPlan, present: bool) {
        let kick = Arc::new(Notify::new());
        let plan = Arc::new(plan);
        tracing::debug!(path = %plan.spec.name, "dialling");
        self.has_moved(&plan.spec);
        let task = self.tasks.spawn(run(self.dialler.clone(), plan.clone(), kick.clone()));
        self.running.insert(plan.id, Running { plan, kick, task, present });
        self.register();
        self.dialler.notes().dialling = self.plans();
    }

    /// Shows every path, and what went wrong with it, in the session's list, if there is a session yet.
    fn register(&self) {
        if let Some(membership) = self.dialler.enrolment.membership() {
            let errors = self.dialler.errors();
            membership.shared.update(|inner, _| {
                for (id, running) in &self.running {
                    inner.paths.register(*id, &running.plan.spec.name);
                }
                for (id, error) in errors {
                    inner.paths.failed(id, error);
                }
            });
        }
    }

    fn plans(&self) -> Vec<Arc<PathPlan>> {
        self.running.values().map(|running| running.plan.clone()).collect()
    }

    fn mark_present(&mut self, present: &[PathPlan]) {
        for (id, running) in &mut self.running {
            running.present = present.iter().any(|plan| plan.id == *id);
        }
    }

    /// Interfaces may have changed: ends what lost its interface, starts what has one now, and
    /// has a path try at once whose own interface, address or route changed.
    fn adapt(&mut self, present: Vec<PathPlan>) {
        let gone: Vec<PathId> = self
            .running
            .iter()
            .filter(|(id, running)| running.present && !present.iter().any(|plan| plan.id == **id))
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            self.stop(id);
        }
        for plan in present {
            match self.running.get_mut(&plan.id) {
                Some(running) => running.present = true,
                None => self.start(plan, true),
            }
        }
        for running in self.running.values().filter(|running| self.has_moved(&running.plan.spec)) {
            running.kick.notify_one();
        }
        self.dialler.noted.notify_one();
    }

    /// Tells the session if the machine was suspended since the last look.
    fn resume(&mut self) {
        let slept = Clock::slept();
        let before = std::mem::replace(&mut self.slept, slept);
        if slept.saturating_sub(before) >= SLEEP
            && let Some(membership) = self.dialler.enrolment.membership()
        {
            tracing::info!("the machine was suspended: each path is probed");
            membership.shared.resume();
        }
    }

    fn stop(&mut self, id: PathId) {
        if let Some(running) = self.running.remove(&id) {
            running.task.abort();
            self.dialler.enrolment.memory().moved(&running.plan.spec, None);
        }
        {
            let mut notes = self.dialler.notes();
            notes.dialling = self.plans();
            notes.failures.remove(&id);
            notes.errors.remove(&id);
            notes.wrong.retain(|(path, _), _| *path != id);
        }
        if let Some(membership) = self.dialler.enrolment.membership() {
            membership.shared.update(|inner, now| {
                inner.remove_path(now, id);
                inner.paths.failed(id, PathError::interface_gone());
            });
        }
    }
}
