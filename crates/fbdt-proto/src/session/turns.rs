//! Whose turn it is: streams with bytes to send, in order (F12).
//!
//! The order is kept up to date stream by stream, so that a frame costs the
//! same with one stream and with thousands.

use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Bound;

use crate::stream::SendStream;
use crate::units::{Class, StreamId};

/// A stream's place: the control stream first, then by class, then whoever
/// was served least, then the lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    ordinary: bool,
    /// Its traffic class.
    pub(super) class: Class,
    served: u64,
    /// The stream.
    pub(super) id: StreamId,
}

impl Turn {
    fn of(id: StreamId, send: &SendStream) -> Self {
        Self { ordinary: id != StreamId::CONTROL, class: send.class, served: send.served, id }
    }
}

/// One busy stream as it was when it last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    turn: Turn,
    /// It has lost bytes.
    lost: bool,
    /// It has bytes that no path was given.
    unsent: bool,
    /// It may send some of those as far as its own limit goes.
    ready: bool,
}

impl Entry {
    fn of(id: StreamId, send: &SendStream) -> Self {
        let front = send.windows.unsent().first().map(|range| range.start);
        Self {
            turn: Turn::of(id, send),
            lost: !send.lost.is_empty(),
            unsent: front.is_some(),
            ready: front.is_some_and(|front| front < send.bound(u64::MAX)),
        }
    }

    const fn blocked(&self) -> bool {
        self.unsent && !self.ready
    }
}

/// Streams with bytes that are unsent, lost or unacknowledged.
#[derive(Debug, Default)]
pub(super) struct Turns {
    entries: BTreeMap<StreamId, Entry>,
    all: BTreeSet<Turn>,
    lost: BTreeSet<Turn>,
    ready: BTreeSet<Turn>,
    /// Ordinary streams with unsent bytes, by class.
    unsent: [usize; Class::ALL.len()],
    unsent_control: bool,
    blocked: usize,
}

impl Turns {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn contains(&self, id: StreamId) -> bool {
        self.entries.contains_key(&id)
    }

    /// All of them, by number.
    pub(super) fn ids(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.entries.keys().copied()
    }

    /// Adds the stream, or takes in what has changed about it. Says whether
    /// its own limit keeps it from sending now and did not before.
    pub(super) fn put(&mut self, id: StreamId, send: &SendStream) -> bool {
        let new = Entry::of(id, send);
        let old = self.entries.insert(id, new);
        if old == Some(new) {
            return false;
        }
        if let Some(old) = old {
            self.unlist(&old);
        }
        self.all.insert(new.turn);
        if new.lost {
            self.lost.insert(new.turn);
        }
        if new.ready {
            self.ready.insert(new.turn);
        }
        self.count(&new, true);
        self.blocked += usize::from(new.blocked());
        new.blocked() && !old.is_some_and(|old| old.blocked())
    }

    pub(super) fn remove(&mut self, id: StreamId) {
        if let Some(old) = self.entries.remove(&id) {
            self.unlist(&old);
        }
    }

    fn unlist(&mut self, old: &Entry) {
        self.all.remove(&old.turn);
        self.lost.remove(&old.turn);
        self.ready.remove(&old.turn);
        self.count(old, false);
        self.blocked -= usize::from(old.blocked());
    }

    fn count(&mut self, entry: &Entry, more: bool) {
        let Turn { ordinary, class, .. } = entry.turn;
        match (entry.unsent, ordinary, more) {
            (false, ..) => {}
            (true, false, more) => self.unsent_control = more,
            (true, true, true) => self.unsent[class as usize] += 1,
            (true, true, false) => self.unsent[class as usize] -= 1,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// What the least served stream like this one has been served.
    pub(super) fn least_served(&self, id: StreamId, class: Class) -> Option<u64> {
        let ordinary = id != StreamId::CONTROL;
        let from = Turn { ordinary, class, served: 0, id: StreamId::CONTROL };
        let to = Turn { served: u64::MAX, id: StreamId(u32::MAX), ..from };
        self.all.range(from..=to).find(|turn| turn.id != id).map(|turn| turn.served)
    }

    /// The first stream with lost bytes, or the first behind `turn`.
    pub(super) fn next_lost(&self, behind: Option<Turn>) -> Option<Turn> {
        next(&self.lost, behind)
    }

    /// The first stream that may send new bytes, or the first behind `turn`.
    pub(super) fn next_ready(&self, behind: Option<Turn>) -> Option<Turn> {
        next(&self.ready, behind)
    }

    /// Whether a stream of a better class than `class` waits for acknowledgements or for more.
    pub(super) fn any_better(&self, class: Class) -> bool {
        let ordinary = self.all.iter().find(|turn| turn.ordinary);
        ordinary.is_some_and(|turn| turn.class < class)
    }

    /// Whether any stream has bytes that no path was given.
    pub(super) fn any_unsent(&self) -> bool {
        self.unsent_control || self.unsent.iter().any(|count| *count > 0)
    }

    /// Streams of a class that take turns with new bytes.
    pub(super) const fn sharing(&self, class: Class) -> u64 {
        self.unsent[class as usize] as u64
    }

    /// Whether any stream has such bytes and may not send them.
    pub(super) const fn any_blocked(&self) -> bool {
        self.blocked > 0
    }
}

fn next(turns: &BTreeSet<Turn>, behind: Option<Turn>) -> Option<Turn> {
    let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
    turns.range((from, Bound::Unbounded)).next().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn stream(id: u32, class: Class, served: u64) -> (StreamId, SendStream) {
        let mut send = SendStream::new(StreamId(id), class, 100, 500);
        send.served = served;
        send.write(&[1; 50]).unwrap();
        (StreamId(id), send)
    }

    fn order(turns: &Turns) -> Vec<u32> {
        let mut order = Vec::new();
        let mut at = None;
        while let Some(turn) = turns.next_ready(at) {
            order.push(turn.id.0);
            at = Some(turn);
        }
        order
    }

    #[test]
    fn f12_control_then_class_then_least_served() {
        let mut turns = Turns::default();
        for (id, class, served) in [
            (4, Class::Background, 0),
            (2, Class::Interactive, 9),
            (6, Class::Interactive, 5),
            (0, Class::Conversational, 999),
        ] {
            let (id, send) = stream(id, class, served);
            turns.put(id, &send);
        }
        assert_eq!(order(&turns), [0, 6, 2, 4]);
        assert_eq!(turns.least_served(StreamId(6), Class::Interactive), Some(9));
        assert_eq!(turns.least_served(StreamId(8), Class::Interactive), Some(5));
        assert_eq!(turns.least_served(StreamId(8), Class::Streaming), None);
        let (id, served) = stream(6, Class::Interactive, 10);
        turns.put(id, &served);
        assert_eq!(order(&turns), [0, 2, 6, 4]);
        turns.remove(StreamId(0));
        assert_eq!(order(&turns), [2, 6, 4]);
    }

    #[test]
    fn a_stream_waits_elsewhere_while_its_limit_is_reached() {
        let mut turns = Turns::default();
        let (id, mut send) = stream(2, Class::Interactive, 0);
        assert!(!turns.put(id, &send));
        send.write(&[1; 100]).unwrap();
        send.windows.take(0..100);
        assert!(turns.put(id, &send), "50 bytes above the limit");
        assert!(!turns.put(id, &send), "no news");
        assert!(turns.any_blocked() && turns.any_unsent());
        assert_eq!(turns.sharing(Class::Interactive), 1);
        assert_eq!(order(&turns), []);
        send.lost.insert(0..10);
        turns.put(id, &send);
        let lost = turns.next_lost(None);
        assert_eq!((lost.map(|turn| turn.id), turns.next_lost(lost)), (Some(id), None));
        turns.remove(id);
        assert!(turns.is_empty() && !turns.any_blocked() && !turns.any_unsent());
        assert_eq!(turns.next_lost(None), None);
    }
}
