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
    begun: Instant,
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
    places: BTreeMap<u64, Used>,
    targets: HashMap<Arc<str>, Target>,
}

/// One place.
#[derive(Debug)]
struct Used {
    target: Arc<str>,
    /// When it was taken, or used last, since the crowd's begin.
    at: Duration,
    evicted: Arc<Notify>,
}

/// The places of a session for one target.
#[derive(Debug, Default)]
struct Target {
    count: u32,
    /// Sum of the times of their last use.
    at: Duration,
}

impl Target {
    /// For how long all of them together have gone without use.
    fn idle(&self, now: Duration) -> Duration {
        (now * self.count).saturating_sub(self.at)
    }
}

impl Session {
    /// The least used place of the target whose places have gone without use for longest, all together:
    /// many connections to one that answers are worth more than one to another that does not.
    fn worst(&self, now: Duration) -> Option<u64> {
        let (target, _) = self.targets.iter().max_by_key(|(_, target)| target.idle(now))?;
        self.places.iter().find(|(_, used)| used.target == *target).map(|(place, _)| *place)
    }

    fn oldest(&self) -> Option<u64> {
        self.places.keys().next().copied()
    }
}

impl Taken {
    fn insert(&mut self, place: u64, owner: &Owner, at: Duration, evicted: Arc<Notify>) {
        self.all += 1;
        *self.credentials.entry(owner.credential).or_default() += 1;
        let session = self.sessions.entry(owner.session).or_default();
        session.credential = owner.credential;
        let target = session.targets.entry(Arc::clone(&owner.target)).or_default();
        target.count += 1;
        target.at += at;
        session.places.insert(place, Used { target: Arc::clone(&owner.target), at, evicted });
    }

    fn remove(&mut self, session: u64, place: u64) -> Option<Arc<Notify>> {
        let own = self.sessions.get_mut(&session)?;
        let Used { target, at, evicted } = own.places.remove(&place)?;
        let credential = own.credential;
        if let Some(left) = own.targets.get_mut(&target) {
            left.count -= 1;
            left.at = left.at.saturating_sub(at);
            if left.count == 0 {
                own.targets.remove(&target);
            }
        }
        if own.places.is_empty() {
            self.sessions.remove(&session);
        }
        if let Some(count) = self.credentials.get_mut(&credential) {
            *count -= 1;
            if *count == 0 {
                self.credentials.remove(&credential);
            }
        }
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

impl Owner {
    /// The only session, for something that it talks to.
    pub fn only(target: impl Into<Arc<str>>) -> Self {
        Self { credential: 0, session: 0, target: target.into() }
    }
}

impl Crowd {
    /// So many places.
    pub fn new(bounds: Bounds) -> Arc<Self> {
        let (begun, gave_way) = (Instant::now(), AtomicU64::new(0));
        Arc::new(Self { bounds, begun, taken: Mutex::default(), gave_way })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, at once: another one gives way where there is none.
    pub fn enter(self: &Arc<Self>, owner: Owner) -> Place {
        self.enter_at(owner, self.begun.elapsed())
    }

    fn enter_at(self: &Arc<Self>, owner: Owner, now: Duration) -> Place {
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
            let worst = taken.sessions.get(&session).and_then(|own| own.worst(now));
            if let Some(evicted) = worst.and_then(|worst| taken.remove(session, worst)) {
                evicted.notify_one();
                self.gave_way.fetch_add(1, Ordering::Relaxed);
            }
        }
        taken.insert(number, &owner, now, Arc::clone(&evicted));
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
        self.used_at(self.crowd.begun.elapsed());
    }

    fn used_at(&self, at: Duration) {
        let mut taken = self.crowd.lock();
        let before = self.number.load(Ordering::Relaxed);
        if let Some(evicted) = taken.remove(self.owner.session, before) {
            let later = number();
            self.number.store(later, Ordering::Relaxed);
            taken.insert(later, &self.owner, at, evicted);
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

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_target_that_was_waited_for_longest_gives_way() {
        let crowd = Crowd::new(Bounds::of(16));
        let mut places = Vec::new();
        for (target, second) in [("slow", 0), ("dead", 1), ("dead", 2), ("dead", 3)] {
            places.push(crowd.enter_at(owner(1, 1, target), at(second)));
        }
        assert_eq!((gone(&places), crowd.taken(), crowd.gave_way()), (vec![], 4, 0));
        places.push(crowd.enter_at(owner(1, 1, "good"), at(10)));
        assert_eq!(gone(&places), [1], "three, for 24 s together, are worse than one for 10 s");
        places.push(crowd.enter_at(owner(1, 1, "good"), at(10)));
        assert_eq!(gone(&places), [2], "two for 15 s");
        places.push(crowd.enter_at(owner(1, 1, "good"), at(10)));
        assert_eq!(gone(&places), [0]);
        places.push(crowd.enter_at(owner(1, 1, "good"), at(10)));
        assert_eq!(gone(&places), [3], "many that are new are better than one that is old");
        assert_eq!((crowd.taken(), crowd.gave_way()), (4, 4), "a session has a quarter of all");
        drop(places);
        assert_eq!(crowd.taken(), 0);
        let taken = crowd.lock();
        assert!(taken.credentials.is_empty() && taken.sessions.is_empty());
    }

    #[test]
    fn a_place_in_use_stays_before_those_that_are_not() {
        let crowd = Crowd::new(Bounds::of(8));
        let enter = |target, second| crowd.enter_at(owner(1, 1, target), at(second));
        let places = vec![enter("", 0), enter("", 1)];
        places[0].used_at(at(2));
        let _third = enter("", 3);
        assert_eq!(gone(&places), [1]);
        // Use after the place was given up does not take it again.
        places[1].used_at(at(4));
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
