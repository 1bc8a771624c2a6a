//! The client's end: brings paths up, keeps them up, and follows the machine's interfaces.

mod backoff;
mod enrol;
mod error;
mod follow;
mod plan;
mod race;
mod servers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fbdt_proto::PathId;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use self::enrol::Enrolment;
use self::error::DialError;
use self::plan::{PathPlan, Plan};
use self::servers::Servers;
use crate::config::ClientConfig;
use crate::session::{PathError, Session};
use crate::tls;

pub use error::{ConnectError, PathFailure};

/// Close code of a session that the server no longer knows (its linger time passed, or it was
/// restarted).
pub const CLOSE_FORGOTTEN: u32 = 0x21;

/// What all paths of a client share.
struct Dialler {
    enrolment: Enrolment,
    servers: Servers,
    notes: Mutex<Notes>,
    /// A path failed, or there are other paths to dial.
    noted: Notify,
}

/// What has been learnt by trying.
#[derive(Default)]
struct Notes {
    /// The server address that worked last, by path.
    good: BTreeMap<PathId, SocketAddr>,
    /// The last failure of each path that has not succeeded since.
    failures: BTreeMap<PathId, Failure>,
    /// Names of the paths that there are to dial.
    dialling: Vec<String>,
}

/// What became of a path's last attempt.
struct Failure {
    path: String,
    error: PathError,
    /// That trying again will not cure it, if so.
    permanent: Option<ConnectError>,
}

impl Dialler {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server for a path's next attempt: what worked last, now and then another.
    fn choose(&self, plan: &PathPlan, count: usize) -> Option<SocketAddr> {
        let candidates = self.servers.candidates(usize::from(plan.id.0), &plan.spec);
        let good = self.notes().good.get(&plan.id).copied();
        match good.filter(|good| candidates.contains(good)) {
            Some(good) if count % 4 != 3 => Some(good),
            Some(_) => candidates.get(count / 4 % candidates.len().max(1)).copied(),
            None => candidates.get(count % candidates.len().max(1)).copied(),
        }
    }

    fn succeeded(&self, plan: &PathPlan, remote: SocketAddr) {
        let mut notes = self.notes();
        notes.good.insert(plan.id, remote);
        notes.failures.remove(&plan.id);
    }

    fn failed(&self, plan: &PathPlan, error: &DialError) {
        let (path, permanent) = (plan.spec.name.clone(), error.permanent());
        let error = PathError::now(error.to_string());
        if let Some(membership) = self.enrolment.membership() {
            membership.shared.update(|inner, _| inner.paths.failed(plan.id, error.clone()));
        }
        self.notes().failures.insert(plan.id, Failure { path, error, permanent });
        self.noted.notify_one();
    }

    /// Waits until trying on is pointless: the server refused, no path can ever work, or none may be used.
    async fn hopeless(&self) -> ConnectError {
        loop {
            self.noted.notified().await;
            let mut notes = self.notes();
            let is_withheld = |name: &String| self.enrolment.is_withheld(name);
            if !notes.dialling.is_empty() && notes.dialling.iter().all(is_withheld) {
                return ConnectError::Withheld { paths: notes.dialling.clone() };
            }
            let is_permanent = |failure: &&Failure| failure.permanent.is_some();
            let permanent = notes.failures.values().filter(is_permanent).count();
            let all = permanent >= notes.dialling.len();
            let found = notes.failures.values_mut().find_map(|failure| match failure.permanent {
                Some(ConnectError::Refused { .. }) => failure.permanent.take(),
                Some(_) if all => failure.permanent.take(),
                _ => None,
            });
            if let Some(error) = found {
                return error;
            }
        }
    }

    fn failures(&self) -> Vec<PathFailure> {
        let notes = self.notes();
        let failure = |failure: &Failure| PathFailure {
            path: failure.path.clone(),
            reason: failure.error.reason.clone(),
        };
        notes.failures.values().map(failure).collect()
    }

    /// What went wrong last with each path that has not succeeded since.
    fn errors(&self) -> Vec<(PathId, PathError)> {
        let notes = self.notes();
        notes.failures.iter().map(|(id, failure)| (*id, failure.error.clone())).collect()
    }
}

/// Connects to the server of a link, over every path at once.
///
/// Returns when the first path is up; the others follow, and whatever goes down is dialled again
/// for as long as the session lives.
///
/// # Errors
/// [`ConnectError`] if the configuration cannot work, if the server refuses or is not the one that
/// made the link, if every path is withheld, or if no path comes up in time.
pub async fn connect(config: ClientConfig) -> Result<Session, ConnectError> {
    check(&config)?;
    let tls = match config.link.fingerprint() {
        Some(pinned) => Some(tls::client_config(pinned)?),
        None => None,
    };
    let waited = config.connect_timeout;
    let servers = Servers::resolve(config.link.servers(), &config.known_servers).await?;
    let plan = Plan::new(&config);
    let (sender, opened) = oneshot::channel();
    let dialler = Arc::new(Dialler {
        enrolment: Enrolment::new(config, tls, sender),
        servers,
        notes: Mutex::default(),
        noted: Notify::new(),
    });
    let following = tokio::spawn(follow::follow(dialler.clone(), plan));
    // Until there is a session, nobody else would end the diallers.
    let abort = AbortUnlessKept(Some(following.abort_handle()));
    let result = tokio::select! {
        session = timeout(waited, opened) => session,
        error = dialler.hopeless() => return Err(error),
    };
    match result {
        Ok(Ok(session)) => {
            abort.keep();
            Ok(session)
        }
        _ if dialler.notes().dialling.is_empty() => Err(ConnectError::NoInterface(waited)),
        _ => Err(ConnectError::NoPath { waited, failures: dialler.failures() }),
    }
}

fn check(config: &ClientConfig) -> Result<(), ConnectError> {
    let link_is_insecure = config.link.is_insecure();
    if link_is_insecure != config.insecure_plaintext {
        return Err(ConnectError::Insecure { link_is_insecure });
    }
    if config.paths.len() > usize::from(u8::MAX) {
        return Err(ConnectError::TooManyPaths(config.paths.len()));
    }
    Ok(config.proto.validate()?)
}

/// Ends a task unless it is told to keep it.
struct AbortUnlessKept(Option<tokio::task::AbortHandle>);

impl AbortUnlessKept {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for AbortUnlessKept {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.abort();
        }
    }
}
