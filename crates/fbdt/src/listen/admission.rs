//! How many strangers may knock at once.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Counts connections that are authenticating, in total and by source. When there are too many, the
/// source that has most gives way to others: a flood from some addresses keeps nobody else out.
pub(super) struct Admission {
    counts: Mutex<Counts>,
    most: usize,
    most_per_source: usize,
}

#[derive(Default)]
struct Counts {
    total: usize,
    /// Of each source its places, the oldest first.
    by_source: HashMap<IpAddr, VecDeque<Arc<Notify>>>,
}

impl Counts {
    fn of(&self, source: &IpAddr) -> usize {
        self.by_source.get(source).map_or(0, VecDeque::len)
    }

    /// Takes the oldest place of the source that has most, if it has more than `fair`.
    fn evict(&mut self, fair: usize) -> bool {
        let Some((&source, places)) =
            self.by_source.iter_mut().max_by_key(|(_, places)| places.len())
        else {
            return false;
        };
        if places.len() <= fair {
            return false;
        }
        if let Some(oldest) = places.pop_front() {
            oldest.notify_one();
            self.total -= 1;
        }
        if places.is_empty() {
            self.by_source.remove(&source);
        }
        true
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
        if here >= self.most_per_source {
            return None;
        }
        if counts.total >= self.most && !counts.evict(here + 1) {
            return None;
        }
        let evicted = Arc::new(Notify::new());
        counts.total += 1;
        counts.by_source.entry(source).or_default().push_back(evicted.clone());
        Some(Place { admission: self.clone(), source, evicted })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut guard = self.admission.lock();
        let counts = &mut *guard;
        let Some(places) = counts.by_source.get_mut(&self.source) else { return };
        // An evicted place is gone already.
        if let Some(index) = places.iter().position(|place| Arc::ptr_eq(place, &self.evicted)) {
            places.remove(index);
            counts.total -= 1;
        }
        if places.is_empty() {
            counts.by_source.remove(&self.source);
        }
    }
}

/// Whoever has one IPv6 address usually has its /64.
fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
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
}
