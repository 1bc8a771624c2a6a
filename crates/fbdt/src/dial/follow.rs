//! Keeps one dialler per path, as interfaces come and go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fbdt_proto::PathId;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::backoff::Backoff;
use super::plan::{PathPlan, Plan};
use super::race::{Outcome, Pace, race};
use super::{CLOSE_FORGOTTEN, Dialler};
use crate::interfaces::InterfaceWatch;
use crate::session::PathError;

/// After the system did not tell which interfaces there are.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A subflow that lived no longer than this is no sign that the next one will.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// Most that the next one waits then: radios that flap make such subflows too.
const SHORT_WAIT: Duration = Duration::from_millis(500);

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
}

/// Dials the plan's paths until the session is over or this future is dropped.
pub(super) async fn follow(dialler: Arc<Dialler>, mut plan: Plan) {
    let mut watch = InterfaceWatch::start();
    let mut diallers =
        Diallers { dialler: dialler.clone(), tasks: JoinSet::new(), running: BTreeMap::new() };
    let servers = || dialler.servers.addresses();
    // What the system does not tell now is asked again soon.
    let mut look_again = None;
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
            () = changed(&mut watch, look_again) => match plan.present(&servers()) {
                Ok(present) => {
                    look_again = None;
                    diallers.adapt(present);
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
    fn start(&mut self, plan: PathPlan, present: bool) {
        let kick = Arc::new(Notify::new());
        let plan = Arc::new(plan);
        tracing::debug!(path = %plan.spec.name, "dialling");
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
    /// has everything else try at once.
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
                Some(running) => {
                    running.present = true;
                    running.kick.notify_one();
                }
                None => self.start(plan, true),
            }
        }
        self.dialler.noted.notify_one();
    }

    fn stop(&mut self, id: PathId) {
        if let Some(running) = self.running.remove(&id) {
            running.task.abort();
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

/// Brings one path up, and up again whenever the session wants it.
async fn run(dialler: Arc<Dialler>, plan: Arc<PathPlan>, kick: Arc<Notify>) {
    dialler.enrolment.admitted(&plan.spec.name).await;
    dialler.servers.refresh(&plan.spec.local);
    let mut outcome = race(&dialler, &plan, Pace::First, None, &kick).await;
    let Some(membership) = dialler.enrolment.membership() else {
        return;
    };
    let shared = &membership.shared;
    let mut wanted = shared.update(|inner, _| inner.dial_signal(plan.id, &plan.spec.name));
    let mut backoff = Backoff::new();
    loop {
        if matches!(outcome, Outcome::Refused) {
            shared.close(CLOSE_FORGOTTEN, "the server has forgotten this session (restarted?)");
            return;
        }
        let (up, fresh) = (Instant::now(), matches!(outcome, Outcome::Up));
        if wanted.wait_for(|wanted| *wanted).await.is_err() {
            return;
        }
        // Something on the way may end every connection as soon as it is there.
        if up.elapsed() > SHORT_LIFE {
            backoff.reset();
        } else if fresh {
            tokio::select! {
                () = sleep(backoff.next().min(SHORT_WAIT)) => {}
                () = kick.notified() => backoff.reset(),
            }
        }
        outcome = race(&dialler, &plan, Pace::Revival, Some(&mut wanted), &kick).await;
    }
}
