//! How many strangers may knock at once. Whoever is new is let in, and an older connection that has not
//! authenticated itself gives way: many clients may share a source, and none of them is known yet.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::{Mutex as Turn, Notify, OwnedMutexGuard};
use tokio::time::Instant;

use crate::source::source_of;

/// Handshakes of one source with wrong proofs that cost it nothing, and how often one more does not.
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
    /// Whose turn it is among sources of many wrong proofs.
    turn: Arc<Turn<()>>,
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
        let rank = |(_, places): &(&IpAddr, &VecDeque<Taken>)| {
            (places.len(), Reverse(places.front().map(|place| place.number)))
        };
        let Some((&source, places)) = self.by_source.iter().max_by_key(rank) else {
            return false;
        };
        if places.len() <= fair {
            return false;
        }
        self.evict_of(source);
        true
    }

    /// Takes the oldest place of a source.
    fn evict_of(&mut self, source: IpAddr) {
        let Some(places) = self.by_source.get_mut(&source) else { return };
        if let Some(oldest) = places.pop_front() {
            oldest.evicted.notify_one();
            self.total -= 1;
        }
        if places.is_empty() {
            self.by_source.remove(&source);
        }
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
    /// Waits until the place was given to another connection.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// The handshake of this connection. Those of sources that have brought many wrong proofs take
    /// turns: all together they use one processor at a time.
    pub(super) fn paced<F: Future>(&self, handshake: F) -> Paced<F> {
        let turn = self.admission.lock().is_impostor(&self.source);
        let turn = turn.then(|| Arc::clone(&self.admission.turn));
        Paced { handshake: Box::pin(handshake), turn, waiting: None }
    }
}

type Waiting = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>;

/// A handshake, each step of which may have to wait for its turn.
pub(super) struct Paced<F> {
    handshake: Pin<Box<F>>,
    turn: Option<Arc<Turn<()>>>,
    waiting: Option<Waiting>,
}

impl<F: Future> Future for Paced<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(turn) = &self.turn else { return self.handshake.as_mut().poll(context) };
        let turn = Arc::clone(turn);
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(turn.lock_owned()));
        let _turn = ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        self.handshake.as_mut().poll(context)
    }
}

impl Admission {
    pub(super) fn new(most: usize, most_per_source: usize) -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), most, most_per_source, turn: Arc::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from this address. Where there is none, an older one gives way.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Place {
        let source = source_of(address);
        let mut counts = self.lock();
        let here = counts.of(&source);
        // Who has nothing is let in even where everybody has one place: else as many sources as
        // there are places would keep everybody out.
        let fair = if here == 0 { 0 } else { here + 1 };
        if here >= self.most_per_source || (counts.total >= self.most && !counts.evict(fair)) {
            counts.evict_of(source);
        }
        let evicted = Arc::new(Notify::new());
        counts.total += 1;
        counts.taken += 1;
        let taken = Taken { number: counts.taken, evicted: evicted.clone() };
        counts.by_source.entry(source).or_default().push_back(taken);
        Place { admission: self.clone(), source, evicted }
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

    async fn is_evicted(place: &Place) -> bool {
        tokio::time::timeout(Duration::ZERO, place.evicted()).await.is_ok()
    }

    #[tokio::test]
    async fn places_are_limited_per_source_and_in_total_and_given_back() {
        let admission = Admission::new(3, 2);
        let enter = |text: &str| admission.enter(text.parse().unwrap());
        let (first, second) = (enter("2001:db8::1"), enter("2001:db8::2"));
        let third = enter("2001:db8::3");
        assert!(is_evicted(&first).await, "the third of one /64 takes the oldest place");
        let _other = enter("10.0.0.1");
        drop(second);
        drop(first);
        assert_eq!(admission.lock().total, 2);
        let _another = enter("10.0.0.2");
        assert!(!is_evicted(&third).await);
        assert_eq!(admission.lock().by_source.len(), 3);
        assert_eq!(admission.lock().total, 3);
    }

    #[tokio::test]
    async fn a_source_with_many_places_gives_way_to_one_with_few() {
        let admission = Admission::new(4, 4);
        let enter = |text: &str| admission.enter(text.parse().unwrap());
        let flood: Vec<Place> = (0..4).map(|_| enter("10.0.0.1")).collect();
        let honest = enter("10.0.0.2");
        assert!(is_evicted(&flood[0]).await);
        let _second = enter("10.0.0.2");
        assert!(is_evicted(&flood[1]).await);
        let _third = enter("10.0.0.2");
        assert!(is_evicted(&honest).await && !is_evicted(&flood[2]).await, "both have their share");
        drop((flood, honest));
        assert_eq!(admission.lock().total, 2);
        assert_eq!(admission.lock().by_source.len(), 1);
    }

    /// A client behind the same router as a flood.
    #[tokio::test]
    async fn a_flood_keeps_nobody_of_its_own_source_out() {
        let admission = Admission::new(8, 4);
        let neighbour = || admission.enter([10, 0, 0, 1].into());
        let flood: Vec<Place> = (0..4).map(|_| neighbour()).collect();
        let honest = neighbour();
        let _more: Vec<Place> = (0..3).map(|_| neighbour()).collect();
        for place in &flood {
            assert!(is_evicted(place).await, "older ones give way");
        }
        assert!(!is_evicted(&honest).await);
    }

    #[tokio::test]
    async fn many_sources_with_one_place_each_keep_nobody_out() {
        let admission = Admission::new(4, 4);
        let enter = |last: u8| admission.enter([10, 0, 0, last].into());
        let flood: Vec<Place> = (1..=4).map(enter).collect();
        let honest = enter(99);
        // The oldest has had most time.
        assert!(is_evicted(&flood[0]).await);
        let _more: Vec<Place> = (5..=7).map(enter).collect();
        assert!(is_evicted(&flood[3]).await);
        assert!(!is_evicted(&honest).await, "the honest one is not the oldest yet");
        let _second = enter(99);
        assert!(is_evicted(&honest).await, "a second place is not worth somebody's only one");
        assert_eq!(admission.lock().total, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn sources_of_many_wrong_proofs_take_turns_and_others_need_not() {
        let admission = Admission::new(4, 4);
        let (bad, good) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let is_paced = |address| admission.enter(address).paced(async {}).turn.is_some();
        for _ in 0..WRONG_AT_ONCE {
            assert!(!is_paced(bad));
            admission.note_impostor(bad);
        }
        assert!(is_paced(bad) && !is_paced(good));
        let held = admission.turn.clone().lock_owned().await;
        let place = admission.enter(bad);
        let waiting = tokio::spawn(place.paced(async { 7 }));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        admission.enter(good).paced(async {}).await;
        drop(held);
        assert_eq!(waiting.await.unwrap(), 7, "it is not refused: a neighbour may be right");
        tokio::time::advance(WRONG_PAUSE).await;
        assert!(!is_paced(bad), "one more");
        admission.note_impostor(bad);
        assert!(is_paced(bad));
        tokio::time::advance(WRONG_PAUSE * WRONG_AT_ONCE).await;
        assert!(!is_paced(bad));
    }
}
