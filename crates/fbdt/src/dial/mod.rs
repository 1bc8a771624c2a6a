//! The client's end: brings paths up, keeps them up, and follows the machine's interfaces.

mod enrol;
mod error;
mod follow;
mod path;
mod plan;
mod probe;
mod race;
mod servers;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fbdt_proto::{Health, PathId};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use self::enrol::Enrolment;
use self::error::{DialError, NoServer, Permanent};
use self::plan::{PathPlan, Plan};
use crate::config::ClientConfig;
use crate::session::{PathError, Session};
use crate::tls;

pub(crate) use self::enrol::Enrolment as Prober;
pub(crate) use self::servers::Servers;
pub use error::{Attempt, ConnectError, PathFailure};

/// Close code of a session that the server no longer knows (its linger time passed, or it was
/// restarted).
pub const CLOSE_FORGOTTEN: u32 = 0x21;

/// What all paths of a client share.
struct Dialler {
    enrolment: Enrolment,
    servers: Arc<Servers>,
    notes: Mutex<Notes>,
    /// A path failed, or there are other paths to dial.
    noted: Notify,
}

/// What has been learnt by trying.
#[derive(Default)]
struct Notes {
    /// The server address that worked last, by path.
    good: BTreeMap<PathId, SocketAddr>,
    /// The server address that opened the session.
    opener: Option<SocketAddr>,
    /// Where the session has been accepted, and where it was refused since.
    accepted: BTreeSet<SocketAddr>,
    refused: BTreeSet<SocketAddr>,
    /// Addresses that are wrong for a path, and why.
    wrong: BTreeMap<(PathId, SocketAddr), Permanent>,
    /// The last failure of each path that has not succeeded since.
    failures: BTreeMap<PathId, PathFailure>,
    /// The same as the session lists it.
    errors: BTreeMap<PathId, PathError>,
    /// The paths that there are to dial.
    dialling: Vec<Arc<PathPlan>>,
    /// Paths of which it was said that the server limits new connections.
    limited: BTreeSet<PathId>,
}

impl Notes {
    /// Whether trying this address again on the path would bring nothing else, as far as it is known.
    fn is_wrong(&self, path: PathId, address: SocketAddr) -> bool {
        self.refused.contains(&address) || self.wrong.contains_key(&(path, address))
    }
}

impl Dialler {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses that a path may dial, most preferred first.
    fn candidates(&self, plan: &PathPlan) -> Result<Vec<SocketAddr>, NoServer> {
        let opener = self.notes().opener;
        self.servers.candidates(usize::from(plan.id.0), &plan.spec, opener)
    }

    /// The server for a path's next attempt: what worked last, now and then another; none that is known
    /// to be the wrong one, unless all are. Of others, those come first that were not `tried` yet. And how
    /// many are as good as it.
    fn choose(
        &self,
        plan: &PathPlan,
        tried: &BTreeMap<SocketAddr, usize>,
    ) -> Result<(SocketAddr, usize), NoServer> {
        let mut candidates = self.candidates(plan)?;
        let notes = self.notes();
        let is_right = |address: &SocketAddr| !notes.is_wrong(plan.id, *address);
        if candidates.iter().any(is_right) {
            candidates.retain(is_right);
        }
        let good = notes.good.get(&plan.id).filter(|good| candidates.contains(good)).copied();
        let count: usize = tried.values().sum();
        if let Some(good) = good.filter(|_| count % 4 != 3) {
            return Ok((good, 1));
        }
        let times = |address: &&SocketAddr| tried.get(address).copied().unwrap_or(0);
        let least = candidates.iter().min_by_key(times).copied();
        let as_good = if good.is_some() { 1 } else { candidates.len() };
        least.map(|least| (least, as_good)).ok_or_else(|| NoServer::Unresolved(Vec::new()))
    }

    /// Whether there is an address that the path has not tried yet, and none that it knows to be good.
    fn has_another(&self, plan: &PathPlan, tried: &BTreeMap<SocketAddr, usize>) -> bool {
        let candidates = self.candidates(plan).unwrap_or_default();
        let notes = self.notes();
        let is_new = |address: &SocketAddr| {
            !tried.contains_key(address) && !notes.is_wrong(plan.id, *address)
        };
        let is_good = |address: &SocketAddr| notes.good.get(&plan.id) == Some(address);
        candidates.iter().any(is_new) && !candidates.iter().any(is_good)
    }

    fn succeeded(&self, plan: &PathPlan, remote: SocketAddr) {
        let mut notes = self.notes();
        notes.opener.get_or_insert(remote);
        notes.good.insert(plan.id, remote);
        notes.accepted.insert(remote);
        notes.refused.remove(&remote);
        notes.failures.remove(&plan.id);
        notes.errors.remove(&plan.id);
        notes.limited.remove(&plan.id);
        drop(notes);
        self.servers.prove(remote);
    }

    /// Notes that the server limits a path's new connections; says whether that is new.
    fn is_new_limit(&self, plan: &PathPlan) -> bool {
        self.notes().limited.insert(plan.id)
    }

    /// A join was refused by a server that is the right one by its key: it has forgotten the session, or
    /// it is another one of the same name, which the session never was at. That costs the attempt only,
    /// while a path works or another address is left.
    fn is_forgotten(&self, plan: &PathPlan, remote: SocketAddr) -> bool {
        let works = |membership: &enrol::Membership| {
            let paths = membership.shared.inspect(|inner| inner.paths.list());
            paths.iter().any(|path| path.health == Health::Active)
        };
        let works = self.enrolment.membership().is_some_and(works);
        let candidates = self.candidates(plan).unwrap_or_default();
        let mut notes = self.notes();
        notes.refused.insert(remote);
        let is_left = candidates.iter().any(|address| !notes.is_wrong(plan.id, *address));
        !works && (notes.accepted.contains(&remote) || !is_left)
    }

    fn failed(&self, plan: &PathPlan, error: &DialError) {
        let path = plan.spec.name.clone();
        let shown = PathError::now(error.trouble(), error.to_string());
        if let Some(membership) = self.enrolment.membership() {
            membership.shared.update(|inner, _| inner.paths.failed(plan.id, shown.clone()));
        }
        let mut notes = self.notes();
        if let Some((remote, permanent)) = error.permanent() {
            notes.wrong.insert((plan.id, remote), permanent);
        }
        let (reason, trouble) = (shown.reason.clone(), shown.trouble);
        notes.failures.insert(plan.id, PathFailure { path, reason, trouble });
        notes.errors.insert(plan.id, shown);
        drop(notes);
        self.noted.notify_one();
    }

    /// Waits until trying on is pointless: no path can ever work, or none may be used.
    async fn hopeless(&self) -> ConnectError {
        let mut news = self.servers.news();
        loop {
            tokio::select! {
                () = self.noted.notified() => {}
                // The sender lives as long as `self`: no error.
                _ = news.changed() => {}
            }
            let dialling = self.notes().dialling.clone();
            let is_withheld = |plan: &Arc<PathPlan>| self.enrolment.is_withheld(&plan.spec.name);
            if !dialling.is_empty() && dialling.iter().all(is_withheld) {
                let paths = dialling.iter().map(|plan| plan.spec.name.clone()).collect();
                return ConnectError::Withheld { paths };
            }
            if let Some(error) = self.refused_everywhere(&dialling) {
                return error;
            }
        }
    }

    /// What is wrong with every address of every path, once nothing else can be learnt. What the right
    /// server has refused, it refuses over each path; a wrong key may be one network's.
    fn refused_everywhere(&self, dialling: &[Arc<PathPlan>]) -> Option<ConnectError> {
        if self.servers.is_looking() || self.enrolment.membership().is_some() {
            return None;
        }
        let plans = dialling.iter().filter(|plan| !self.enrolment.is_withheld(&plan.spec.name));
        let candidates: Vec<_> = plans
            .flat_map(|plan| {
                let candidates = self.candidates(plan).unwrap_or_default();
                candidates.into_iter().map(|address| (plan.clone(), address))
            })
            .collect();
        let notes = self.notes();
        let verdict = |plan: &PathPlan, address: SocketAddr| {
            let own = notes.wrong.get(&(plan.id, address)).map(|verdict| (plan.id, verdict));
            let refused = || {
                let mut all = notes.wrong.iter();
                all.find(|((_, other), verdict)| *other == address && verdict.is_refusal())
                    .map(|((path, _), verdict)| (*path, verdict))
            };
            own.or_else(refused)
        };
        let mut first = None;
        for (plan, address) in &candidates {
            let (path, verdict) = verdict(plan, *address)?;
            let path = dialling.iter().find(|plan| plan.id == path).unwrap_or(plan);
            let found =
                (verdict.clone(), Attempt { server: *address, path: path.spec.name.clone() });
            // What the right server says counts before what a wrong one does.
            if first.as_ref().is_none_or(|(known, _): &(Permanent, _)| !known.is_refusal()) {
                first = Some(found);
            }
        }
        first.map(|(permanent, attempt)| permanent.of(attempt))
    }

    fn failures(&self) -> Vec<PathFailure> {
        self.notes().failures.values().cloned().collect()
    }

    /// What went wrong last with each path that has not succeeded since.
    fn errors(&self) -> Vec<(PathId, PathError)> {
        self.notes().errors.iter().map(|(id, error)| (*id, error.clone())).collect()
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
        Some(pinned) => {
            Some(tls::client_config(pinned, config.server_name().is_some(), &config.alpn)?)
        }
        None => None,
    };
    let waited = config.connect_timeout;
    let servers = Servers::new(config.link.servers(), &config.known_servers, config.socket_mark);
    let plan = Plan::new(&config);
    servers.resolve(&plan.bindings()).await?;
    let (sender, opened) = oneshot::channel();
    let dialler = Arc::new(Dialler {
        enrolment: Enrolment::new(config, tls, sender),
        servers: servers.clone(),
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
