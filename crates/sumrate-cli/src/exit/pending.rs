//! Datagrams of an association that wait until a name is looked up, bounded by bytes.

use std::collections::HashMap;

use crate::service::Destination;

/// Most bytes that may wait, with what follows for each name and each datagram.
const BYTES_MAX: usize = 128 << 10;
/// What a name that is looked up costs, in bytes.
const NAME_COST: usize = 2048;
/// What a datagram costs beside its bytes.
const DATAGRAM_COST: usize = 64;

/// Datagrams by destination.
#[derive(Debug, Default)]
pub(super) struct Pending {
    waiting: HashMap<Destination, Vec<Vec<u8>>>,
    bytes: usize,
}

impl Pending {
    /// Keeps a datagram; says whether there was room.
    pub(super) fn push(&mut self, destination: &Destination, data: &[u8]) -> bool {
        let known = self.waiting.contains_key(destination);
        let cost = DATAGRAM_COST + data.len() + if known { 0 } else { NAME_COST };
        if self.bytes + cost > BYTES_MAX {
            return false;
        }
        self.bytes += cost;
        self.waiting.entry(destination.clone()).or_default().push(data.to_vec());
        true
    }

    /// Whether nothing waited for the destination before the last one.
    pub(super) fn is_first(&self, destination: &Destination) -> bool {
        self.waiting.get(destination).is_some_and(|waiting| waiting.len() == 1)
    }

    /// What waited for the destination, in order.
    pub(super) fn take(&mut self, destination: &Destination) -> Vec<Vec<u8>> {
        let Some(taken) = self.waiting.remove(destination) else { return Vec::new() };
        let bytes: usize = taken.iter().map(|data| DATAGRAM_COST + data.len()).sum();
        self.bytes -= NAME_COST + bytes;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(host: &str) -> Destination {
        Destination { host: host.to_owned(), port: 7 }
    }

    #[test]
    fn a_burst_to_one_name_waits_whole_and_what_waits_is_bounded_by_bytes() {
        let mut pending = Pending::default();
        let kept = (0..1000).take_while(|n| pending.push(&to("a"), &[*n as u8; 1200])).count();
        assert!((64..=BYTES_MAX / 1200).contains(&kept), "{kept}");
        assert!(!pending.push(&to("b"), &[1]) && !pending.is_first(&to("b")));
        let taken = pending.take(&to("a"));
        assert_eq!(taken.len(), kept);
        assert!(taken.iter().enumerate().all(|(n, data)| data[0] == n as u8), "in order");
        assert_eq!((pending.bytes, pending.waiting.len()), (0, 0));
        assert!(pending.push(&to("b"), &[1]) && pending.is_first(&to("b")));
        assert!(pending.take(&to("c")).is_empty());
    }

    #[test]
    fn empty_datagrams_to_many_names_are_bounded_too() {
        let mut pending = Pending::default();
        let names = (0..).take_while(|n| pending.push(&to(&n.to_string()), b"")).count();
        assert!(names <= BYTES_MAX / NAME_COST);
    }
}
