//! How many strangers may knock at once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts connections that are authenticating, in total and by source.
pub(super) struct Admission {
    counts: Mutex<Counts>,
    most: usize,
    most_per_source: usize,
}

#[derive(Default)]
struct Counts {
    total: usize,
    by_source: HashMap<IpAddr, usize>,
}

/// A place among the authenticating connections; given back when dropped.
pub(super) struct Place {
    admission: Arc<Admission>,
    source: IpAddr,
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
        let here = counts.by_source.get(&source).copied().unwrap_or(0);
        if counts.total >= self.most || here >= self.most_per_source {
            return None;
        }
        counts.total += 1;
        counts.by_source.insert(source, here + 1);
        Some(Place { admission: self.clone(), source })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.admission.lock();
        counts.total -= 1;
        match counts.by_source.get_mut(&self.source) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                counts.by_source.remove(&self.source);
            }
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
        assert!(enter("10.0.0.2").is_none(), "the fourth in total");
        drop(first);
        assert!(enter("10.0.0.2").is_some());
        assert_eq!(admission.lock().by_source.len(), 2);
    }
}
