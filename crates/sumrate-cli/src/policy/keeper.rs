//! Applies wishes to all sessions of a client, counts what paths carry, and takes a path whose quota is
//! used up out of use until the month is over or the quota is raised.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fbdt::{PathPolicies, PathPolicy, PathStats, Priority, Session};

use super::newcomers::Newcomers;
use super::{Ledger, LedgerError, Month, PathChange, PathWish, WishError};
use crate::sessions::Sessions;
use crate::status::{QuotaReport, StatusReport};

/// How often what paths carry is counted: a quota is exceeded by what a path carries in this time.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// How often the account is written: what a crash forgets at most.
const SAVE_INTERVALS: u32 = 10;

/// A wish cannot be granted.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// No path of that name.
    #[error("there is no path {name}; the paths are: {known}")]
    UnknownPath {
        /// The name.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// A setting cannot be.
    #[error(transparent)]
    Wish(#[from] WishError),
    /// What was used cannot be known.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// No place to keep what was used.
    #[error("a quota needs a state directory; start `sumrate up` with --state, or set HOME")]
    NoState,
    /// No other path is in use.
    #[error(
        "{name} is not paused: no other path is in use, and nothing would reach the server; resume \
         another path first"
    )]
    LastPath {
        /// The name.
        name: String,
    },
}

/// Why a path is out of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// The user has paused it.
    Paused,
    /// Its quota is used up.
    Spent,
}

#[derive(Debug, Default)]
struct State {
    wishes: BTreeMap<String, PathWish>,
    /// Whose quota a path uses, if not its own: that of its kind.
    accounts: BTreeMap<String, String>,
    ledger: Option<Ledger>,
    /// What paths had carried when last looked at, by session and name.
    seen: HashMap<([u8; 16], String), u64>,
    withheld: BTreeMap<String, Option<Withheld>>,
    warned: bool,
}

/// The policies of a client.
#[derive(Debug)]
pub struct Keeper {
    table: PathPolicies,
    directory: Option<PathBuf>,
    state: Mutex<State>,
    newcomers: Mutex<Newcomers>,
}

impl Keeper {
    /// Policies for the sessions that are dialled with `table`; `directory` keeps what quotas have
    /// been used.
    pub fn new(table: PathPolicies, directory: Option<PathBuf>) -> Self {
        Self { table, directory, state: Mutex::default(), newcomers: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn newcomers(&self) -> MutexGuard<'_, Newcomers> {
        self.newcomers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A wish from the command line, before there is a session. `usual` is how the path would be
    /// used without it.
    ///
    /// # Errors
    /// [`PolicyError`]
    pub fn begin(
        &self,
        name: &str,
        usual: PathWish,
        change: &PathChange,
    ) -> Result<(), PolicyError> {
        self.newcomers().name(name);
        self.begin_of(name, name.to_owned(), usual, change)
    }

    /// The same for an interface that has appeared; its quota is that of `account`.
    pub(super) fn begin_of(
        &self,
        name: &str,
        account: String,
        usual: PathWish,
        change: &PathChange,
    ) -> Result<(), PolicyError> {
        let wish = change.apply(usual)?;
        if account != name {
            self.lock().accounts.insert(name.to_owned(), account);
        }
        self.enter(name, wish)?;
        self.enforce(&[]);
        Ok(())
    }

    /// Checks that a wish can be kept, and opens the account that it needs.
    pub(super) fn check(&self, wish: &PathWish) -> Result<(), PolicyError> {
        let mut state = self.lock();
        if (wish.quota.is_some() || wish.policy.metered) && state.ledger.is_none() {
            match &self.directory {
                Some(directory) => state.ledger = Some(Ledger::open(directory, Month::now())?),
                None if wish.quota.is_some() => return Err(PolicyError::NoState),
                None => {}
            }
        }
        Ok(())
    }

    /// Enters a wish for this and later sessions.
    fn enter(&self, name: &str, wish: PathWish) -> Result<(), PolicyError> {
        self.check(&wish)?;
        self.table.set(name, wish.policy);
        self.lock().wishes.insert(name.to_owned(), wish);
        Ok(())
    }

    /// Changes how a path of these sessions is used, from now on.
    ///
    /// # Errors
    /// [`PolicyError`]; then nothing has changed.
    pub fn change(
        &self,
        sessions: &[Session],
        name: &str,
        change: &PathChange,
    ) -> Result<PathWish, PolicyError> {
        let paths = || sessions.iter().flat_map(Session::paths).map(|path| path.name);
        let known = self.lock().wishes.get(name).copied();
        if known.is_none() && !paths().any(|path| path == name) {
            let mut names: Vec<String> = Vec::new();
            for path in paths() {
                if !names.contains(&path) {
                    names.push(path);
                }
            }
            let known = if names.is_empty() { "none yet".to_owned() } else { names.join(", ") };
            return Err(PolicyError::UnknownPath { name: name.to_owned(), known });
        }
        let usual = || {
            let mut paths = sessions.iter().flat_map(|session| session.stats().paths);
            let path = paths.find(|path| path.name == name)?;
            Some(PathWish { policy: path.policy, ..PathWish::default() })
        };
        let is_other_in_use = || paths().any(|path| path != name && !self.table.is_withheld(&path));
        if change.paused == Some(true) && !is_other_in_use() {
            return Err(PolicyError::LastPath { name: name.to_owned() });
        }
        let wish = change.apply(known.or_else(usual).unwrap_or_default())?;
        self.enter(name, wish)?;
        for session in sessions {
            session.set_path_policy(name, wish.policy);
        }
        // What it has carried so far counts at once: the answer says it, and a quota that is used up
        // holds from now on.
        self.count(sessions, Month::now());
        self.enforce(sessions);
        Ok(wish)
    }

    /// The configuration gives a path another priority than before: what else was wished for it stays.
    pub fn prioritise(&self, sessions: &[Session], name: &str, priority: Priority) {
        let wished = self.lock().wishes.get_mut(name).map(|wish| {
            wish.policy.priority = priority;
            wish.policy
        });
        if let Some(policy) = wished {
            self.table.set(name, policy);
        }
        let policy = wished.unwrap_or_else(|| PathPolicy::of_priority(priority));
        for session in sessions {
            session.set_path_policy(name, policy);
        }
    }

    /// Counts, writes down and enforces until the future is dropped.
    pub async fn keep(&self, sessions: &Sessions) {
        for tick in 1u32.. {
            tokio::time::sleep(COUNT_INTERVAL).await;
            sessions.settle(|all| self.count(all, Month::now()));
            if tick % SAVE_INTERVALS == 0 {
                self.save();
            }
        }
    }

    /// Counts what the sessions' paths have carried since the last time, and enforces quotas.
    pub fn count(&self, sessions: &[Session], month: Month) {
        if self.lock().ledger.is_none() {
            return;
        }
        let carried: Vec<_> =
            sessions.iter().map(|session| (session.id(), session.stats().paths)).collect();
        let mut state = self.lock();
        state.count(&carried);
        if let Some(ledger) = &mut state.ledger {
            ledger.turn(month);
        }
        drop(state);
        self.enforce(sessions);
    }

    /// Withholds paths that are paused or whose quota is used up, and lets the others back.
    fn enforce(&self, sessions: &[Session]) {
        let mut state = self.lock();
        let reasons: Vec<(String, Option<Withheld>)> =
            state.wishes.keys().map(|name| (name.clone(), state.reason(name))).collect();
        let until = state.month().end();
        let mut newly_spent = false;
        for (name, reason) in reasons {
            let before = state.withheld.insert(name.clone(), reason).unwrap_or_default();
            let spent = reason.is_some();
            if before.is_some() != spent {
                self.table.withhold(&name, spent);
            }
            if before != reason {
                newly_spent |= reason == Some(Withheld::Spent);
                match reason {
                    Some(Withheld::Spent) => tracing::warn!(
                        "{name} paused until {until} (UTC): its quota is used up; `sumrate path set \
                         {name} --quota BYTES` raises it"
                    ),
                    Some(Withheld::Paused) => tracing::warn!(
                        "{name} paused; `sumrate path set {name} --paused=false` resumes it"
                    ),
                    None => tracing::warn!("{name} may be used again"),
                }
            }
            if spent || before != reason {
                // Again each time: a connection that was being made may have come up since.
                for session in sessions.iter().filter(|session| !session.is_closed()) {
                    session.withhold_path(&name, spent);
                }
            }
        }
        drop(state);
        if newly_spent {
            // Killed now, the next start must not take it for unused.
            self.save();
        }
    }

    /// The path has carried so many bytes.
    #[cfg(test)]
    pub(super) fn use_up(&self, name: &str, bytes: u64) {
        let mut state = self.lock();
        let account = state.account(name).to_owned();
        state.ledger.as_mut().unwrap().count(&account, bytes);
        drop(state);
        self.enforce(&[]);
    }

    /// Why a path is out of use, if it is.
    pub fn withheld(&self, name: &str) -> Option<Withheld> {
        self.lock().reason(name)
    }

    /// Writes down what was used. A disk that is full is no reason to stop: it is tried again.
    pub fn save(&self) {
        let mut state = self.lock();
        let Some(ledger) = &mut state.ledger else { return };
        match ledger.save() {
            Ok(()) => state.warned = false,
            Err(error) if !state.warned => {
                tracing::warn!(%error, "cannot save the data used by paths; retrying");
                state.warned = true;
            }
            Err(_) => {}
        }
    }

    /// What to say where these are all paths and each has used up its quota.
    pub fn all_spent(&self, paths: &[String]) -> String {
        let state = self.lock();
        let until = state.month().end();
        let first = paths.first().map_or("NAME", String::as_str);
        let is_paused = |name: &&String| state.reason(name.as_str()) == Some(Withheld::Paused);
        if let Some(paused) = paths.iter().find(is_paused) {
            return format!(
                "every path is paused or has used up its quota ({}): `sumrate path set {paused} \
                 --paused=false` resumes {paused}",
                paths.join(", ")
            );
        }
        format!(
            "every path has used up its quota ({}): nothing is carried until {until} (UTC), or until a \
             quota is raised: `sumrate path set {first} --quota BYTES`",
            paths.join(", ")
        )
    }

    /// Adds to a report what only the keeper knows.
    pub fn annotate(&self, report: &mut StatusReport) {
        let state = self.lock();
        let of_sessions = report.sessions.iter_mut().flat_map(|session| &mut session.paths);
        for path in of_sessions.chain(&mut report.idle_paths) {
            let Some(wish) = state.wishes.get(&path.name).copied() else { continue };
            path.used_as(&wish.policy);
            if wish.paused {
                path.idle_for_pause();
            }
            let Some(ledger) = &state.ledger else { continue };
            if wish.quota.is_none() && !wish.policy.metered {
                continue;
            }
            let quota = QuotaReport {
                limit_bytes: wish.quota,
                used_bytes: ledger.used(state.account(&path.name)),
                month: ledger.month().to_string(),
            };
            if state.reason(&path.name) == Some(Withheld::Spent) {
                path.idle_for_quota(&quota);
            }
            path.quota = Some(quota);
        }
    }
}

impl State {
    /// The month that is counted.
    fn month(&self) -> Month {
        self.ledger.as_ref().map_or_else(Month::now, Ledger::month)
    }

    fn reason(&self, name: &str) -> Option<Withheld> {
        let is_paused = self.wishes.get(name).is_some_and(|wish| wish.paused);
        match is_paused {
            true => Some(Withheld::Paused),
            false => self.is_spent(name).then_some(Withheld::Spent),
        }
    }

    /// Whose quota the path uses.
    fn account<'a>(&'a self, name: &'a str) -> &'a str {
        self.accounts.get(name).map_or(name, String::as_str)
    }

    fn is_spent(&self, name: &str) -> bool {
        let quota = self.wishes.get(name).and_then(|wish| wish.quota);
        let used = self.ledger.as_ref().map_or(0, |ledger| ledger.used(self.account(name)));
        quota.is_some_and(|quota| used >= quota)
    }

    fn count(&mut self, sessions: &[([u8; 16], Vec<PathStats>)]) {
        self.seen.retain(|(known, _), _| sessions.iter().any(|(id, _)| id == known));
        let Some(ledger) = &mut self.ledger else { return };
        for (session, paths) in sessions {
            for path in paths {
                let before = self.seen.insert((*session, path.name.clone()), path.carried);
                let account = self.accounts.get(&path.name).unwrap_or(&path.name);
                ledger.count(account, path.carried.saturating_sub(before.unwrap_or(0)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::PathReport;
    use fbdt_proto::Weight;

    #[test]
    fn the_last_path_in_use_is_not_paused() {
        let keeper = Keeper::new(PathPolicies::default(), None);
        keeper.begin("lte", PathWish::default(), &PathChange::default()).unwrap();
        let pause = PathChange { paused: Some(true), ..PathChange::default() };
        let refused = keeper.change(&[], "lte", &pause).unwrap_err().to_string();
        assert!(refused.contains("no other path is in use"), "{refused}");
        assert_eq!(keeper.withheld("lte"), None);
    }

    #[test]
    fn a_paused_path_is_withheld_until_it_is_resumed() {
        let table = PathPolicies::default();
        let keeper = Keeper::new(table.clone(), None);
        let pause = |paused| PathChange { paused: Some(paused), ..PathChange::default() };
        keeper.begin("lte", PathWish::default(), &pause(true)).unwrap();
        assert!(keeper.withheld("lte") == Some(Withheld::Paused) && table.is_withheld("lte"));
        let words = keeper.all_spent(&["lte".to_owned()]);
        assert!(words.contains("--paused=false"), "{words}");
        let mut report = StatusReport {
            idle_paths: vec![PathReport::idle("lte", Priority::PRIMARY)],
            ..StatusReport::default()
        };
        keeper.annotate(&mut report);
        assert_eq!(report.idle_paths[0].why, "paused");
        keeper.change(&[], "lte", &pause(false)).unwrap();
        assert!(keeper.withheld("lte").is_none() && !table.is_withheld("lte"));
    }

    #[test]
    fn a_new_priority_of_the_configuration_leaves_the_other_wishes_as_they_are() {
        let table = PathPolicies::default();
        let keeper = Keeper::new(table.clone(), None);
        let change = PathChange { weight: Some(3), metered: Some(true), ..PathChange::default() };
        keeper.begin("lte", PathWish::default(), &change).unwrap();
        keeper.prioritise(&[], "lte", Priority::BACKUP);
        let wanted = PathPolicy {
            priority: Priority::BACKUP,
            weight: Weight::new(3),
            metered: true,
            ..PathPolicy::default()
        };
        assert_eq!(table.get("lte"), Some(wanted));
        // It is the wish from now on, as a later change finds it.
        let lighter = PathChange { weight: Some(0), ..PathChange::default() };
        let wish = keeper.change(&[], "lte", &lighter).unwrap();
        assert_eq!(wish.policy, PathPolicy { weight: None, ..wanted });
        // Where nothing was wished, the path's own priority counts, and nothing is to be kept.
        keeper.prioritise(&[], "wifi", Priority::BACKUP);
        assert_eq!(table.get("wifi"), None);
    }
}
