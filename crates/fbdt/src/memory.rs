//! Memory that clients make a server hold, counted over the sessions of a credential and over all.
//!
//! Each session notes what it holds and is told by how much it may grow. Three quarters of a limit
//! are for growing, an eighth more is for new connections, and sessions that hold little may always
//! grow to a least size: others that hold much do not keep them out. A credential above its limit
//! loses its largest session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Notify, watch};

use crate::identity::CredentialId;

/// A session notes what it holds when that has changed by this much, in bytes.
const STEP: u64 = 32 << 10;
/// This part of the whole is there for each credential that holds less, whatever others hold.
const LEAST_PART: u64 = 16;
/// This part of a credential's limit is there for each of its sessions that holds less beside its
/// subflows, while any is left.
const LEAST_PART_OF_SESSION: u64 = 64;

/// Both limits, and what is held.
#[derive(Debug)]
pub(crate) struct Ledger {
    most: u64,
    most_of_credential: u64,
    held: AtomicU64,
    accounts: Mutex<HashMap<CredentialId, Weak<Account>>>,
    over: Notify,
}

/// Memory that the sessions of one credential hold together, in bytes.
#[derive(Debug, Default)]
struct Account {
    held: AtomicU64,
}

/// A part of a limit that is for growing.
const fn soft(limit: u64) -> u64 {
    limit / 4 * 3
}

/// A part of a limit that is for growing, and for connections.
const fn firm(limit: u64) -> u64 {
    limit / 8 * 7
}

impl Ledger {
    /// Nothing is held; `most` bytes may be by all, `most_of_credential` by the sessions of one.
    pub(crate) fn new(most: u64, most_of_credential: u64) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_of_credential,
            held: AtomicU64::new(0),
            accounts: Mutex::default(),
            over: Notify::new(),
        })
    }

    /// The account of a new session of that credential; `None` where no memory is left for it.
    pub(crate) fn lease(self: &Arc<Self>, credential: CredentialId) -> Option<Lease> {
        let account = {
            let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
            accounts.retain(|_, account| account.strong_count() > 0);
            let known = accounts.get(&credential).and_then(Weak::upgrade);
            let account = known.unwrap_or_default();
            accounts.insert(credential, Arc::downgrade(&account));
            account
        };
        let session = Arc::new(SessionMemory::default());
        let lease = Lease { ledger: self.clone(), account, session, held: 0, of_subflows: 0 };
        (lease.room() > 0).then_some(lease)
    }

    /// Waits until a limit may be exceeded.
    pub(crate) async fn exceeded(&self) {
        self.over.notified().await;
    }

    /// The credential whose sessions hold too much, and how much of how many bytes.
    pub(crate) fn offender(&self) -> Option<Excess> {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let held = |account: &Weak<Account>| {
            account.upgrade().map_or(0, |account| account.held.load(Ordering::Relaxed))
        };
        let most = accounts.iter().map(|(id, account)| (*id, held(account)));
        let (credential, held) = most.max_by_key(|(_, held)| *held)?;
        let all = self.held.load(Ordering::Relaxed);
        if held > self.most_of_credential {
            let limit = self.most_of_credential;
            return Some(Excess { credential, held, limit });
        }
        (all > self.most).then_some(Excess { credential, held: all, limit: self.most })
    }
}

/// Too much is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    /// The credential whose sessions hold most.
    pub(crate) credential: CredentialId,
    /// Bytes that its sessions hold, or that all sessions hold.
    pub(crate) held: u64,
    /// The limit of that, in bytes.
    pub(crate) limit: u64,
}

/// Shared by a session's lease and its reservations.
#[derive(Debug, Default)]
struct SessionMemory {
    /// Sum of the reservations, in bytes.
    reserved: AtomicU64,
    /// Closed with the last of them.
    alive: watch::Sender<()>,
}

/// Memory that one session holds. It holds nothing once this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    ledger: Arc<Ledger>,
    account: Arc<Account>,
    session: Arc<SessionMemory>,
    held: u64,
    /// The part of it that its subflows take, however little it does.
    of_subflows: u64,
}

impl Lease {
    /// Notes that the session holds `held` bytes, and so many of them for its subflows; by how many more
    /// it may grow.
    pub(crate) fn note(&mut self, held: u64, of_subflows: u64) -> u64 {
        self.of_subflows = of_subflows;
        if held.abs_diff(self.held) >= STEP {
            let before = std::mem::replace(&mut self.held, held);
            if held > before {
                self.add(held - before);
            } else {
                self.remove(before - held);
            }
        }
        self.room()
    }

    /// Bytes that the session held when it was last noted, with its reservations.
    pub(crate) fn held(&self) -> u64 {
        self.held + self.session.reserved.load(Ordering::Relaxed)
    }

    /// Waits until the lease and every reservation of the session are dropped.
    pub(crate) fn released(&self) -> impl Future<Output = ()> + use<> {
        let mut alive = self.session.alive.subscribe();
        async move { while alive.changed().await.is_ok() {} }
    }

    /// Memory beside that of the session's streams; `None` where there is none left.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<MemoryReservation> {
        if self.room().max(self.free(firm)) < bytes {
            return None;
        }
        let (ledger, account) = (self.ledger.clone(), self.account.clone());
        let session = self.session.clone();
        let lease = Self { ledger, account, session, held: bytes, of_subflows: 0 };
        lease.add(bytes);
        lease.session.reserved.fetch_add(bytes, Ordering::Relaxed);
        Some(MemoryReservation { lease: Some(lease) })
    }

    fn add(&self, bytes: u64) {
        let own = self.account.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let all = self.ledger.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if own > self.ledger.most_of_credential || all > self.ledger.most {
            self.ledger.over.notify_one();
        }
    }

    fn remove(&self, bytes: u64) {
        self.account.held.fetch_sub(bytes, Ordering::Relaxed);
        self.ledger.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn room(&self) -> u64 {
        let least = self.ledger.most_of_credential / LEAST_PART_OF_SESSION + self.of_subflows;
        let least = least.saturating_sub(self.held()).min(self.free(|limit| limit));
        self.free(soft).max(least)
    }

    /// What is free below this part of the limits.
    fn free(&self, part: impl Fn(u64) -> u64) -> u64 {
        let own = self.account.held.load(Ordering::Relaxed);
        let all = self.ledger.held.load(Ordering::Relaxed);
        let free_of_credential = part(self.ledger.most_of_credential).saturating_sub(own);
        let free = part(self.ledger.most).saturating_sub(all);
        free.max((self.ledger.most / LEAST_PART).saturating_sub(own)).min(free_of_credential)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.remove(self.held);
    }
}

/// Memory that a server's application counts for a session; it is free again when this is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    lease: Option<Lease>,
}

impl MemoryReservation {
    /// Of a session whose memory nobody counts.
    pub(crate) const fn uncounted() -> Self {
        Self { lease: None }
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            lease.session.reserved.fetch_sub(lease.held, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn credential(byte: u8) -> CredentialId {
        CredentialId([byte; 8])
    }

    #[test]
    fn sessions_of_a_credential_share_its_memory() {
        let ledger = Ledger::new(64 * MIB, 32 * MIB);
        let [mut one, mut two] = [(); 2].map(|()| ledger.lease(credential(1)).unwrap());
        let mut other = ledger.lease(credential(2)).unwrap();
        assert_eq!(one.note(10 * MIB, 0), 14 * MIB, "three quarters are for growing");
        assert_eq!(two.note(10 * MIB, 0), 4 * MIB);
        assert_eq!(other.note(0, 0), 24 * MIB);
        assert_eq!(one.note(20 * MIB, 0), 0);
        assert_eq!(other.note(MIB, 0), 17 * MIB, "what is left of the whole");
        let mut third = ledger.lease(credential(1)).unwrap();
        assert_eq!(third.note(0, 0), MIB / 2, "a session that holds little is not kept out");
        let connection = third.reserve(MIB / 4).unwrap();
        assert_eq!(third.note(MIB / 8, 0), MIB / 8);
        assert_eq!(one.note(22 * MIB, 0), 0);
        assert!(ledger.lease(credential(1)).is_none(), "nothing is left at all");
        drop((third, connection));
        assert_eq!(one.note(20 * MIB, 0), 0);
        assert_eq!(ledger.offender(), None);
        drop(two);
        assert_eq!(one.note(20 * MIB, 0), 4 * MIB, "a session that is over holds nothing");
    }

    #[test]
    fn subflows_leave_a_session_that_holds_little_its_least() {
        let ledger = Ledger::new(64 * MIB, 32 * MIB);
        let [mut large, mut small] = [(); 2].map(|()| ledger.lease(credential(1)).unwrap());
        large.note(29 * MIB, MIB);
        assert_eq!(small.note(MIB, MIB), MIB / 2, "two paths take more than a 64th of the limit");
        assert!(small.reserve(MIB / 4).is_some());
        assert_eq!(large.note(29 * MIB, MIB), 0);
    }

    #[test]
    fn the_largest_holder_is_the_offender() {
        let ledger = Ledger::new(64 * MIB, 32 * MIB);
        let mut leases = [1, 2, 3].map(|id| ledger.lease(credential(id)).unwrap());
        assert_eq!(leases[0].note(33 * MIB, 0), 0);
        let excess = Excess { credential: credential(1), held: 33 * MIB, limit: 32 * MIB };
        assert_eq!(ledger.offender(), Some(excess), "too much for one");
        leases[0].note(30 * MIB, 0);
        leases[1].note(32 * MIB, 0);
        assert_eq!(ledger.offender(), None);
        assert_eq!(leases[2].note(3 * MIB, 0), MIB, "some is left for who holds little");
        let excess = Excess { credential: credential(2), held: 65 * MIB, limit: 64 * MIB };
        assert_eq!(ledger.offender(), Some(excess), "too much for all");
    }

    #[test]
    fn reservations_count_until_they_are_dropped() {
        let ledger = Ledger::new(64 * MIB, 32 * MIB);
        let mut lease = ledger.lease(credential(1)).unwrap();
        let reserved = lease.reserve(20 * MIB).unwrap();
        assert_eq!(lease.note(0, 0), 4 * MIB);
        assert!(lease.reserve(8 * MIB).is_some(), "an eighth is for connections alone");
        assert!(lease.reserve(9 * MIB).is_none());
        assert_eq!(lease.held(), 20 * MIB);
        drop(reserved);
        assert_eq!(lease.held(), 0);
        assert_eq!(lease.note(0, 0), 24 * MIB);
        assert_eq!(ledger.held.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn memory_is_released_with_the_last_reservation() {
        let ledger = Ledger::new(64 * MIB, 32 * MIB);
        let lease = ledger.lease(credential(1)).unwrap();
        let reserved = lease.reserve(MIB).unwrap();
        let mut released = std::pin::pin!(lease.released());
        drop(lease);
        let at_once = tokio::time::timeout(std::time::Duration::ZERO, released.as_mut()).await;
        assert!(at_once.is_err(), "a reservation is left");
        drop(reserved);
        released.await;
    }
}
