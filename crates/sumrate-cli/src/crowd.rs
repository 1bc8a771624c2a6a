//! Places for what is under way, shared fairly: nobody waits for one. When all are taken, whoever has
//! most gives up the one that has gone without use for longest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Most places at a time: of all, of one credential's sessions, and of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    all: usize,
    credential: usize,
    session: usize,
}

impl Bounds {
    /// One credential may have half of all places, and one session half of that.
    pub fn of(all: usize) -> Self {
        Self { all, credential: all.div_ceil(2), session: all.div_ceil(4) }
    }

    /// All places are for one session.
    pub fn of_one(all: usize) -> Self {
        Self { all, credential: all, session: all }
    }
}

/// Who has a place: a session of a credential, for something that it talks to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// [`number`] of the credential.
    pub credential: u64,
    /// [`number`] of the session.
    pub session: u64,
    /// Name or address that the place is for; one that takes many places gives up its own first.
    pub target: Arc<str>,
}

/// A number that nobody else in this process has.
pub fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Places of one kind.
#[derive(Debug)]
pub struct Crowd {
    bounds: Bounds,
    taken: Mutex<Taken>,
    gave_way: AtomicU64,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    credentials: HashMap<u64, usize>,
    sessions: HashMap<u64, Session>,
}

/// The places of one session.
#[derive(Debug, Default)]
struct Session {
    credential: u64,
    /// The one that was used longest ago comes first.
    places: BTreeMap<u64, (Arc<str>, Arc<Notify>)>,
    targets: HashMap<Arc<str>, usize>,
}

impl Session {
    /// The place of the target that has most, the least used.
    fn worst(&self) -> Option<u64> {
        let most = self.targets.values().max()?;
        let is_of_most = |target: &Arc<str>| self.targets.get(target) == Some(most);
        self.places.iter().find(|(_, (target, _))| is_of_most(target)).map(|(place, _)| *place)
    }

    fn oldest(&self) -> Option<u64> {
        self.places.keys().next().copied()
    }
}

impl Taken {
    fn insert(&mut self, place: u64, owner: &Owner, evicted: Arc<Notify>) {
        self.all += 1;
        *self.credentials.entry(owner.credential).or_default() += 1;
        let session = self.sessions.entry(owner.session).or_default();
        session.credential = owner.credential;
        *session.targets.entry(Arc::clone(&owner.target)).or_default() += 1;
        session.places.insert(place, (Arc::clone(&owner.target), evicted));
    }

    fn remove(&mut self, session: u64, place: u64) -> Option<Arc<Notify>> {
        let own = self.sessions.get_mut(&session)?;
        let (target, evicted) = own.places.remove(&place)?;
        let credential = own.credential;
        subtract(&mut own.targets, &target);
        if own.places.is_empty() {
            self.sessions.remove(&session);
        }
        subtract(&mut self.credentials, &credential);
        self.all -= 1;
        Some(evicted)
    }

    /// The session that gives one up: the one with most among those of the credential. Of several
    /// that have most, the one whose place was used longest ago.
    fn greediest(&self, credential: Option<u64>) -> Option<u64> {
        let of = credential.or_else(|| {
            let most = self.credentials.iter().max_by_key(|(_, count)| **count)?;
            // With one place each, no credential is greedier than others: the oldest place goes.
            (*most.1 > 1).then_some(*most.0)
        });
        let sessions = self.sessions.iter();
        let sessions = sessions.filter(|(_, own)| of.is_none_or(|of| own.credential == of));
        let rank = |own: &Session| (own.places.len(), Reverse(own.oldest()));
        sessions.max_by_key(|(_, own)| rank(own)).map(|(id, _)| *id)
    }

    fn of_session(&self, session: u64) -> usize {
        self.sessions.get(&session).map_or(0, |own| own.places.len())
    }
}

fn subtract<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Owner {
    /// The only session, for something that it talks to.
    pub fn only(target: impl Into<Arc<str>>) -> Self {
        Self { credential: 0, session: 0, target: target.into() }
    }
}

impl Crowd {
    /// So many places.
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, taken: Mutex::default(), gave_way: AtomicU64::new(0) })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, at once: another one gives way where there is none.
    pub fn enter(self: &Arc<Self>, owner: Owner) -> Place {
        let (number, evicted) = (number(), Arc::new(Notify::new()));
        let mut taken = self.lock();
        let of_credential = taken.credentials.get(&owner.credential).copied().unwrap_or(0);
        let greediest = if taken.of_session(owner.session) >= self.bounds.session {
            Some(owner.session)
        } else if of_credential >= self.bounds.credential {
            taken.greediest(Some(owner.credential))
        } else if taken.all >= self.bounds.all {
            taken.greediest(None)
        } else {
            None
        };
        if let Some(session) = greediest {
            let worst = taken.sessions.get(&session).and_then(Session::worst);
            if let Some(evicted) = worst.and_then(|worst| taken.remove(session, worst)) {
                evicted.notify_one();
                self.gave_way.fetch_add(1, Ordering::Relaxed);
            }
        }
        taken.insert(number, &owner, Arc::clone(&evicted));
        drop(taken);
        let (crowd, number) = (Arc::clone(self), AtomicU64::new(number));
        Place { crowd, owner, number, evicted, since: Instant::now() }
    }

    /// Places that are taken now.
    pub fn taken(&self) -> usize {
        self.lock().all
    }

    /// How many gave way so far.
    pub fn gave_way(&self) -> u64 {
        self.gave_way.load(Ordering::Relaxed)
    }
}

/// A place that is taken until it is dropped.
#[derive(Debug)]
pub struct Place {
    crowd: Arc<Crowd>,
    owner: Owner,
    number: AtomicU64,
    evicted: Arc<Notify>,
    since: Instant,
}

impl Place {
    /// Waits until the place has to be given up: whoever has it ends what it is for.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// It is in use: others that are not give way before it.
    pub fn used(&self) {
        let mut taken = self.crowd.lock();
        let before = self.number.load(Ordering::Relaxed);
        if let Some(evicted) = taken.remove(self.owner.session, before) {
            let now = number();
            self.number.store(now, Ordering::Relaxed);
            taken.insert(now, &self.owner, evicted);
        }
    }

    /// For how long it has been taken.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let number = self.number.load(Ordering::Relaxed);
        self.crowd.lock().remove(self.owner.session, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn owner(credential: u64, session: u64, target: &str) -> Owner {
        Owner { credential, session, target: target.into() }
    }

    fn gone(places: &[Place]) -> Vec<usize> {
        let mut context = Context::from_waker(Waker::noop());
        let mut is_gone = |place: &Place| pin!(place.evicted()).poll(&mut context).is_ready();
        (0..places.len()).filter(|index| is_gone(&places[*index])).collect()
    }

    #[test]
    fn the_target_with_most_places_gives_way_first_and_then_the_oldest() {
        let crowd = Crowd::new(Bounds::of(16));
        let mut places = Vec::new();
        for target in ["slow", "dead", "dead", "other"] {
            places.push(crowd.enter(owner(1, 1, target)));
        }
        assert_eq!((gone(&places), crowd.taken(), crowd.gave_way()), (vec![], 4, 0));
        places.push(crowd.enter(owner(1, 1, "good")));
        assert_eq!(gone(&places), [1], "the older one of the target that has two");
        places.push(crowd.enter(owner(1, 1, "better")));
        assert_eq!(gone(&places), [0], "of several with one place each the oldest");
        assert_eq!((crowd.taken(), crowd.gave_way()), (4, 2), "a session has a quarter of all");
        drop(places);
        assert_eq!(crowd.taken(), 0);
        let taken = crowd.lock();
        assert!(taken.credentials.is_empty() && taken.sessions.is_empty());
    }

    #[test]
    fn a_place_in_use_stays_before_those_that_are_not() {
        let crowd = Crowd::new(Bounds::of(8));
        let places = vec![crowd.enter(owner(1, 1, "a")), crowd.enter(owner(1, 1, "b"))];
        places[0].used();
        let _third = crowd.enter(owner(1, 1, "c"));
        assert_eq!(gone(&places), [1]);
        // Use after the place was given up does not take it again.
        places[1].used();
        assert_eq!(crowd.taken(), 2);
    }

    #[test]
    fn whoever_has_most_gives_way_to_others() {
        let crowd = Crowd::new(Bounds::of(8));
        // One credential's sessions have half of all together, and its greediest gives way.
        let mut places: Vec<Place> =
            (0..3).map(|n| crowd.enter(owner(1, 1 + n / 2, "a"))).collect();
        places.push(crowd.enter(owner(1, 3, "a")));
        places.push(crowd.enter(owner(1, 4, "a")));
        assert_eq!(gone(&places), [0], "a session with one place keeps it");
        // Four others with one place each take the other half; the next one is the first one's loss.
        let _others: Vec<Place> = (5..9).map(|n| crowd.enter(owner(n, n, "a"))).collect();
        assert_eq!((gone(&places), crowd.taken()), (vec![], 8));
        let _last = crowd.enter(owner(9, 9, "a"));
        assert_eq!((gone(&places), crowd.taken()), (vec![1], 8));
    }
}
