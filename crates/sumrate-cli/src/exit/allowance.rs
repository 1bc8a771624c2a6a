//! What a credential may still use: rate, quota and destinations, over all its sessions.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fbdt::{CredentialId, CredentialInfo, CredentialLimits, ServerState, StateError};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::Semaphore;

use super::policy::{AllowRule, AllowRuleError, RefusedReason};
use crate::crowd::number;

/// What may pass at once beyond the rate, in bytes.
const BURST: (u32, u32) = (16 << 10, 1 << 20);

/// What one credential may have under way at a time, over all its sessions: a quarter of the server's,
/// so that one link does not keep all others out.
#[derive(Debug)]
pub struct Places {
    /// By which others know the credential.
    pub(super) number: u64,
    /// Copies of files.
    pub copies: Semaphore,
    /// Connections that are open or being made.
    pub connections: Semaphore,
    /// Reports that are made of its sessions.
    pub reports: DefaultDirectRateLimiter,
}

impl Places {
    /// Copies at a time.
    pub const COPIES: usize = 16;
    /// Reports in a second.
    pub const REPORTS: NonZeroU32 = NonZeroU32::new(40).unwrap();

    /// So many connections at a time, and the usual number of everything else.
    fn new(connections: usize) -> Self {
        Self {
            number: number(),
            copies: Semaphore::new(Self::COPIES),
            connections: Semaphore::new(connections),
            reports: RateLimiter::direct(Quota::per_second(Self::REPORTS)),
        }
    }
}

impl Default for Places {
    fn default() -> Self {
        Self::new(Semaphore::MAX_PERMITS)
    }
}

/// What one credential may use. All its sessions share it.
#[derive(Debug, Default)]
pub struct Allowance {
    places: Arc<Places>,
    pace: Option<Pace>,
    quota: Option<u64>,
    used: AtomicU64,
    destinations: Option<Vec<AllowRule>>,
}

#[derive(Debug)]
struct Pace {
    limiter: DefaultDirectRateLimiter,
    burst: NonZeroU32,
}

impl Pace {
    /// `rate` in bytes per second; above 4 GB/s nothing is limited any more.
    fn new(rate: u64) -> Option<Self> {
        let rate = NonZeroU32::new(u32::try_from(rate).ok()?)?;
        let burst = NonZeroU32::new((rate.get() / 10).clamp(BURST.0, BURST.1))?;
        let limiter = RateLimiter::direct(Quota::per_second(rate).allow_burst(burst));
        Some(Self { limiter, burst })
    }

    async fn take(&self, bytes: usize) {
        let mut left = u32::try_from(bytes).unwrap_or(u32::MAX);
        while let Some(piece) = NonZeroU32::new(left.min(self.burst.get())) {
            match self.limiter.check_n(piece) {
                Ok(Err(wait)) => {
                    tokio::time::sleep(wait.wait_time_from(DefaultClock::default().now())).await;
                }
                // A piece is never larger than a burst.
                Ok(Ok(())) | Err(_) => left -= piece.get(),
            }
        }
    }
}

impl Allowance {
    /// These limits, of whose quota `used` bytes are spent.
    ///
    /// # Errors
    /// A destination that is no rule.
    pub fn new(limits: &CredentialLimits, used: u64) -> Result<Self, AllowRuleError> {
        let rules = |texts: &Vec<String>| texts.iter().map(|text| text.parse()).collect();
        Ok(Self {
            places: Arc::default(),
            pace: limits.rate.and_then(Pace::new),
            quota: limits.quota,
            used: AtomicU64::new(used),
            destinations: limits.destinations.as_ref().map(rules).transpose()?,
        })
    }

    /// What it may have under way at a time.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Nothing is limited but the rate, in bytes per second.
    pub fn paced(rate: u64) -> Self {
        Self { pace: Pace::new(rate), ..Self::default() }
    }

    /// Counts bytes that are about to be relayed, after waiting until the rate has room for them.
    ///
    /// # Errors
    /// The quota is spent.
    pub async fn take(&self, bytes: usize) -> io::Result<()> {
        if let Some(pace) = &self.pace {
            pace.take(bytes).await;
        }
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
        self.check_quota()
    }

    /// # Errors
    /// The quota is spent.
    pub fn check_quota(&self) -> io::Result<()> {
        match self.quota {
            Some(quota) if self.used() > quota => Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!("the credential's quota of {} is used up", crate::status::bytes(quota)),
            )),
            _ => Ok(()),
        }
    }

    /// Bytes relayed so far, both directions together.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether anything is limited. Such a credential takes no part in measurements, which could
    /// not be told from abuse.
    pub fn is_limited(&self) -> bool {
        self.pace.is_some() || self.quota.is_some() || self.destinations.is_some()
    }

    /// Whether the credential may connect to `target`; the exit's policy comes on top.
    ///
    /// # Errors
    /// It is no destination of the credential.
    pub fn check(&self, target: SocketAddr) -> Result<(), RefusedReason> {
        match &self.destinations {
            Some(rules) if !rules.iter().any(|rule| rule.covers(target)) => {
                Err(RefusedReason::NotForCredential)
            }
            _ => Ok(()),
        }
    }
}

/// The allowances of all credentials that have been in use since the start.
#[derive(Debug)]
pub struct Allowances {
    state: ServerState,
    /// Connections that one credential may have at a time.
    connections: usize,
    known: Mutex<HashMap<CredentialId, Known>>,
    /// Held while files are written: an older count must not replace a later one.
    saving: Mutex<()>,
}

#[derive(Debug)]
struct Known {
    allowance: Arc<Allowance>,
    limits: CredentialLimits,
    /// What the state directory says was used.
    saved: u64,
}

/// A credential's limits cannot be kept, so its sessions reach nothing.
#[derive(Debug, thiserror::Error)]
pub enum AllowanceError {
    /// A destination in its file is no rule.
    #[error("destinations of credential {id}: {source}; correct its file or revoke it")]
    Destinations {
        /// The credential.
        id: CredentialId,
        /// What is wrong.
        source: AllowRuleError,
    },
    /// What it has used cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
}

impl Allowances {
    /// Reads and keeps what was used in this state directory. Each credential may have so many
    /// connections at a time.
    pub fn new(state: ServerState, connections: usize) -> Self {
        Self { state, connections, known: Mutex::default(), saving: Mutex::default() }
    }

    /// Connections that one credential may have at a time.
    pub fn connections(&self) -> usize {
        self.connections
    }

    /// The allowance of a credential, shared by its sessions. Limits that were changed since count
    /// from the next session on.
    ///
    /// # Errors
    /// [`AllowanceError`]
    pub fn of(&self, credential: &CredentialInfo) -> Result<Arc<Allowance>, AllowanceError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let id = credential.id;
        let before = known.get(&id);
        if let Some(before) = before.filter(|before| before.limits == credential.limits) {
            return Ok(Arc::clone(&before.allowance));
        }
        let saved = self.state.usage(id)?;
        let used = before.map_or(saved, |before| before.allowance.used().max(saved));
        let allowance = Allowance::new(&credential.limits, used)
            .map_err(|source| AllowanceError::Destinations { id, source })?;
        let places = before.map(|before| Arc::clone(&before.allowance.places));
        let places = places.unwrap_or_else(|| Arc::new(Places::new(self.connections)));
        let allowance = Allowance { places, ..allowance };
        let allowance = Arc::new(allowance);
        let limits = credential.limits.clone();
        known.insert(id, Known { allowance: Arc::clone(&allowance), limits, saved });
        Ok(allowance)
    }

    /// Writes down what has been used since the last time, for credentials that have a quota.
    ///
    /// # Errors
    /// The first file that could not be written; the others were.
    pub fn save(&self) -> Result<(), AllowanceError> {
        let _one = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = Ok(());
        // Sessions begin while a slow disk writes.
        for (id, used) in self.unsaved() {
            match self.state.set_usage(id, used) {
                Ok(()) => {
                    let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(entry) = known.get_mut(&id) {
                        entry.saved = used;
                    }
                }
                Err(error) => result = result.and(Err(error.into())),
            }
        }
        result
    }

    /// What credentials with a quota have used, where the state directory does not say so.
    fn unsaved(&self) -> Vec<(CredentialId, u64)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let limited = known.iter().filter(|(_, entry)| entry.limits.quota.is_some());
        let used = limited.map(|(id, entry)| (*id, entry.allowance.used(), entry.saved));
        used.filter(|(_, used, saved)| used != saved).map(|(id, used, _)| (id, used)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(rate: Option<u64>, quota: Option<u64>) -> CredentialLimits {
        CredentialLimits { rate, quota, ..CredentialLimits::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_limited_by_default() {
        let allowance = Allowance::new(&limits(None, None), 0).unwrap();
        allowance.take(1 << 40).await.unwrap();
        assert_eq!(allowance.used(), 1 << 40);
        assert!(!allowance.is_limited());
        assert_eq!(allowance.check("1.2.3.4:5".parse().unwrap()), Ok(()));
    }

    #[tokio::test]
    async fn a_quota_ends() {
        let allowance = Allowance::new(&limits(None, Some(100)), 50).unwrap();
        allowance.take(50).await.unwrap();
        let error = allowance.take(1).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
        assert!(allowance.check_quota().is_err() && allowance.is_limited());
    }

    #[tokio::test]
    async fn a_rate_holds_back_what_exceeds_it() {
        // A burst of 16 KiB, whose time comes again in 16 s.
        let allowance = Allowance::new(&limits(Some(1000), None), 0).unwrap();
        allowance.take(16 << 10).await.unwrap();
        let pace = allowance.pace.as_ref().unwrap();
        assert!(pace.limiter.check_n(pace.burst).unwrap().is_err());
        // More than a burst passes piece by piece.
        let fast = Allowance::new(&limits(Some(1 << 30), None), 0).unwrap();
        fast.take(3 << 20).await.unwrap();
        assert_eq!(fast.used(), 3 << 20);
    }

    #[test]
    fn destinations_are_rules() {
        let some = |texts: &[&str]| CredentialLimits {
            destinations: Some(texts.iter().map(ToString::to_string).collect()),
            ..CredentialLimits::default()
        };
        let allowance = Allowance::new(&some(&["10.0.0.0/8", "1.2.3.4:443"]), 0).unwrap();
        for (target, permitted) in [
            ("10.9.8.7:1", true),
            ("[::ffff:10.9.8.7]:1", true),
            ("1.2.3.4:443", true),
            ("1.2.3.4:80", false),
            ("8.8.8.8:53", false),
        ] {
            assert_eq!(allowance.check(target.parse().unwrap()).is_ok(), permitted, "{target}");
        }
        assert!(
            Allowance::new(&some(&[]), 0).unwrap().check("1.1.1.1:1".parse().unwrap()).is_err()
        );
        assert!(Allowance::new(&some(&["example.org"]), 0).is_err());
    }

    #[tokio::test]
    async fn places_are_shared_by_the_sessions_of_a_credential_and_by_nobody_else() {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let credential = |name| state.new_credential(name, limits(None, None)).unwrap().info();
        let (mut one, two) = (credential("one"), credential("two"));
        let allowances = Allowances::new(state.clone(), 3);
        let first = allowances.of(&one).unwrap();
        let most = u32::try_from(Places::COPIES).unwrap();
        let _all = first.places().copies.try_acquire_many(most).unwrap();
        assert!(allowances.of(&one).unwrap().places().copies.try_acquire().is_err());
        // Nor do other limits bring other places.
        one.limits = limits(Some(1000), None);
        let changed = allowances.of(&one).unwrap();
        assert!(changed.is_limited() && changed.places().copies.try_acquire().is_err());
        assert_eq!(changed.places().number, first.places().number);
        let other = allowances.of(&two).unwrap();
        assert!(other.places().copies.try_acquire().is_ok());
        assert_ne!(other.places().number, first.places().number);
        let _connections = first.places().connections.try_acquire_many(3).unwrap();
        assert!(changed.places().connections.try_acquire().is_err());
    }

    #[tokio::test]
    async fn usage_outlives_the_server_and_is_shared_by_sessions() {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let credential = state.new_credential("laptop", limits(None, Some(1000))).unwrap().info();
        let allowances = Allowances::new(state.clone(), 3);
        let (one, two) = (allowances.of(&credential).unwrap(), allowances.of(&credential).unwrap());
        one.take(300).await.unwrap();
        two.take(300).await.unwrap();
        assert_eq!(one.used(), 600);
        allowances.save().unwrap();
        let again = Allowances::new(state.clone(), 3).of(&credential).unwrap();
        assert_eq!(again.used(), 600);
        assert!(again.take(401).await.is_err());
        state.revoke(credential.id).unwrap();
        assert_eq!(state.usage(credential.id).unwrap(), 0, "forgotten with the credential");
    }
}
