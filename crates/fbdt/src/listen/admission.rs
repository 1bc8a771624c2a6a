//! How many strangers may knock at once.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::source::source_of;

/// Handshakes of one source with wrong proofs that are taken at once, and how often one more is.
const WRONG_AT_ONCE: u32 = 256;
const WRONG_PAUSE: Duration = Duration::from_millis(50);
/// Sources whose wrong proofs are remembered at a time.
const WRONG_SOURCES: usize = 4096;

/// Counts connections that are authenticating, in total and by source. When there are too many, the
/// source that has most gives way to others: a flood from some addresses keeps nobody else out.
pub(super) struct Admission {
    counts: Mutex<Counts>,
    most: usize,
    most_per_source: usize,
}

/// One of a source's places.
struct Taken {
    /// How many were taken before, ever.
    number: u64,
    evicted: Arc<Notify>,
}

#[derive(Default)]
struct Counts {
    total: usize,
    /// Places that were taken, ever.
    taken: u64,
    /// Of each source its places, the oldest first.
    by_source: HashMap<IpAddr, VecDeque<Taken>>,
    /// Until when each source's wrong proofs are paid for.
    wrong: HashMap<IpAddr, Instant>,
}

impl Counts {
    fn of(&self, source: &IpAddr) -> usize {
        self.by_source.get(source).map_or(0, VecDeque::len)
    }

    /// Takes the oldest place of the source that has most, if it has more than `fair`. Of several
    /// that have most, the one whose place is the oldest gives way.
    fn evict(&mut self, fair: usize) -> bool {
        let rank = |(_, places): &(&IpAddr, &mut VecDeque<Taken>)| {
            (places.len(), Reverse(places.front().map(|place| place.number)))
        };
        let Some((&source, places)) = self.by_source.iter_mut().max_by_key(rank) else {
            return false;
        };
        if places.len() <= fair {
            return false;
        }
        if let Some(oldest) = places.pop_front() {
            oldest.evicted.notify_one();
            self.total -= 1;
        }
        if places.is_empty() {
            self.by_source.remove(&source);
        }
        true
    }

    /// Whether the source has brought too many wrong proofs of late.
    fn is_impostor(&self, source: &IpAddr) -> bool {
        let most = WRONG_PAUSE * WRONG_AT_ONCE;
        self.wrong.get(source).is_some_and(|paid| paid.duration_since(Instant::now()) >= most)
    }
}

/// A place among the authenticating connections; given back when dropped.
pub(super) struct Place {
    admission: Arc<Admission>,
    source: IpAddr,
    evicted: Arc<Notify>,
}

impl Place {
    /// Waits until the place was given to another source.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Admission {
    pub(super) fn new(most: usize, most_per_source: usize) -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), most, most_per_source })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from this address; `None` if there are too many.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let source = source_of(address);
        let mut counts = self.lock();
        let here = counts.of(&source);
        if here >= self.most_per_source || counts.is_impostor(&source) {
            return None;
        }
        // Who has nothing is let in even where everybody has one place: else as many sources as
        // there are places would keep everybody out.
        let fair = if here == 0 { 0 } else { here + 1 };
        if counts.total >= self.most && !counts.evict(fair) {
            return None;
        }
        let evicted = Arc::new(Notify::new());
        counts.total += 1;
        counts.taken += 1;
        let taken = Taken { number: counts.taken, evicted: evicted.clone() };
        counts.by_source.entry(source).or_default().push_back(taken);
        Some(Place { admission: self.clone(), source, evicted })
    }

    /// A connection from this address went through a whole handshake and proved nothing.
    pub(super) fn note_impostor(&self, address: IpAddr) {
        let (source, now) = (source_of(address), Instant::now());
        let mut counts = self.lock();
        if counts.wrong.len() >= WRONG_SOURCES {
            counts.wrong.retain(|_, paid| *paid > now);
        }
        if counts.wrong.len() < WRONG_SOURCES || counts.wrong.contains_key(&source) {
            let paid = counts.wrong.entry(source).or_insert(now);
            *paid = (*paid).max(now) + WRONG_PAUSE;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut guard = self.admission.lock();
        let counts = &mut *guard;
        let Some(places) = counts.by_source.get_mut(&self.source) else { return };
        // An evicted place is gone already.
        let own = |place: &Taken| Arc::ptr_eq(&place.evicted, &self.evicted);
        if let Some(index) = places.iter().position(own) {
            places.remove(index);
            counts.total -= 1;
        }
        if places.is_empty() {
            counts.by_source.remove(&self.source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_per_source_and_in_total_and_given_back() {
        let admission = Admission::new(3, 2);
        let enter = |text: &str| admission.enter(text.parse().unwrap());
        let first = enter("2001:db8::1").unwrap();
        let _second = enter("2001:db8::2").unwrap();
        assert!(enter("2001:db8::3").is_none(), "the third of one /64");
        let _third = enter("10.0.0.1").unwrap();
        drop(first);
        assert!(enter("10.0.0.2").is_some());
        assert_eq!(admission.lock().by_source.len(), 2);
        assert_eq!(admission.lock().total, 2);
    }

    #[tokio::test]
    async fn a_source_with_many_places_gives_way_to_one_with_few() {
        let admission = Admission::new(4, 4);
        let enter = |text: &str| admission.enter(text.parse().unwrap());
        let flood: Vec<Place> = (0..4).map(|_| enter("10.0.0.1").unwrap()).collect();
        assert!(enter("10.0.0.1").is_none(), "the flood drives out nobody, not even itself");
        let _honest = enter("10.0.0.2").unwrap();
        flood[0].evicted().await;
        let _second = enter("10.0.0.2").unwrap();
        flood[1].evicted().await;
        assert!(enter("10.0.0.2").is_none(), "both have their share");
        drop(flood);
        assert_eq!(admission.lock().total, 2);
        assert_eq!(admission.lock().by_source.len(), 1);
    }

    #[tokio::test]
    async fn many_sources_with_one_place_each_keep_nobody_out() {
        let admission = Admission::new(4, 4);
        let enter = |last: u8| admission.enter([10, 0, 0, last].into());
        let flood: Vec<Place> = (1..=4).map(|last| enter(last).unwrap()).collect();
        let honest = enter(99).unwrap();
        // The oldest has had most time.
        flood[0].evicted().await;
        assert!(enter(99).is_none(), "a second place is not worth somebody's only one");
        let _more: Vec<Place> = (5..=7).map(|last| enter(last).unwrap()).collect();
        flood[3].evicted().await;
        let evicted = tokio::time::timeout(Duration::ZERO, honest.evicted());
        assert!(evicted.await.is_err(), "the honest one is not the oldest yet");
        assert_eq!(admission.lock().total, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_of_many_wrong_proofs_has_to_wait_and_others_need_not() {
        let admission = Admission::new(4, 4);
        let (bad, good) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        for _ in 0..WRONG_AT_ONCE {
            assert!(admission.enter(bad).is_some());
            admission.note_impostor(bad);
        }
        assert!(admission.enter(bad).is_none());
        assert!(admission.enter(good).is_some());
        tokio::time::advance(WRONG_PAUSE).await;
        assert!(admission.enter(bad).is_some(), "one more");
        admission.note_impostor(bad);
        assert!(admission.enter(bad).is_none());
        tokio::time::advance(WRONG_PAUSE * WRONG_AT_ONCE).await;
        admission.note_impostor(good);
        assert!(admission.enter(bad).is_some());
    }
}
