//! Whose turn it is: streams with bytes to send, in order (F12).
//!
//! The order of those with bytes is kept up to date stream by stream, so that a frame of bytes costs
//! the same with one stream and with thousands. For messages all that talk are looked at.

use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::{Bound, RangeInclusive};

use fbdt_units::{Class, Classes, StreamId};

use crate::stream::SendStream;

/// A stream's place: the control stream first, then by class, then whoever
/// was served least, then the lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    ordinary: bool,
    /// Its traffic class.
    pub(super) class: Class,
    /// Bytes that it has been served.
    pub(super) served: u64,
    /// The stream.
    pub(super) id: StreamId,
}

impl Turn {
    pub(super) fn of(id: StreamId, send: &SendStream) -> Self {
        Self { ordinary: id != StreamId::CONTROL, class: send.class, served: send.served, id }
    }

    /// The first place that a stream of the class can have, and the last.
    const fn places(ordinary: bool, class: Class) -> RangeInclusive<Self> {
        let first = Self { ordinary, class, served: 0, id: StreamId::CONTROL };
        let last = Self { served: u64::MAX, id: StreamId(u32::MAX), ..first };
        RangeInclusive::new(first, last)
    }

    /// The place behind all streams of its class.
    pub(super) const fn end_of_class(self) -> Self {
        *Self::places(self.ordinary, self.class).end()
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
        let front = send.unsent.first().map(|range| range.start);
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

/// How far each class is: what the stream that was served last had been served before. It stays when
/// no stream of the class waits, so that whoever comes next has neither less nor more than those
/// that come back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock([u64; Class::ALL.len()]);

impl Clock {
    /// A stream of the class that had been served so much is served.
    pub(super) fn serve(&mut self, class: Class, served: u64) {
        let clock = &mut self.0[class as usize];
        *clock = served.max(*clock);
    }

    /// What a stream has been served that joins the class while no other waits.
    pub(super) const fn of(&self, class: Class) -> u64 {
        self.0[class as usize]
    }
}

/// Streams with bytes that are unsent, lost or unacknowledged.
#[derive(Debug, Default)]
pub(super) struct Turns {
    entries: BTreeMap<StreamId, Entry>,
    all: BTreeSet<Turn>,
    lost: BTreeSet<Turn>,
    ready: BTreeSet<Turn>,
    /// Streams with unsent bytes.
    unsent: Count,
    /// Of those, streams that may not send them.
    blocked: Count,
}

/// How many streams of each class something is true of.
#[derive(Debug, Default)]
struct Count {
    control: bool,
    classes: [usize; Class::ALL.len()],
}

impl Count {
    const fn change(&mut self, turn: Turn, more: bool) {
        let class = &mut self.classes[turn.class as usize];
        match (turn.ordinary, more) {
            (false, more) => self.control = more,
            (true, true) => *class += 1,
            (true, false) => *class -= 1,
        }
    }

    fn any(&self, classes: Classes) -> bool {
        classes.iter().any(|class| self.classes[class as usize] > 0)
    }

    fn any_beside(&self, classes: Classes) -> bool {
        self.control
            || Class::ALL
                .iter()
                .any(|class| !classes.contains(*class) && self.classes[*class as usize] > 0)
    }
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

    /// All of them, in turn.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.all.iter().map(|turn| turn.id)
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
    }

    const fn count(&mut self, entry: &Entry, more: bool) {
        if entry.unsent {
            self.unsent.change(entry.turn, more);
        }
        if entry.blocked() {
            self.blocked.change(entry.turn, more);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The best class of the streams, but for this session's own.
    pub(super) fn best_class(&self) -> Option<Class> {
        let first = *Turn::places(true, Class::ALL[0]).start();
        self.all.range(first..).next().map(|turn| turn.class)
    }

    /// Whether the stream may send new bytes now and could not when it was last put here.
    pub(super) fn joins(&self, id: StreamId, send: &SendStream) -> bool {
        let ready = self.entries.get(&id).is_some_and(|entry| entry.ready);
        !ready && Entry::of(id, send).ready
    }

    /// What the least served stream like this one that may send new bytes has been served.
    pub(super) fn least_served(&self, id: StreamId, class: Class) -> Option<u64> {
        let places = Turn::places(id != StreamId::CONTROL, class);
        self.ready.range(places).find(|turn| turn.id != id).map(|turn| turn.served)
    }

    /// The first stream of the class that has lost bytes; or this session's own, if it has.
    pub(super) fn first_lost(&self, class: Option<Class>) -> Option<StreamId> {
        let places = Turn::places(class.is_some(), class.unwrap_or(Class::ALL[0]));
        self.lost.range(places).next().map(|turn| turn.id)
    }

    /// The first stream that may send new bytes, or the first behind `turn`.
    pub(super) fn next_ready(&self, behind: Option<Turn>) -> Option<Turn> {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        self.ready.range((from, Bound::Unbounded)).next().copied()
    }

    /// Whether a stream of a better class than `class` waits for acknowledgements or for more.
    pub(super) fn any_better(&self, class: Class) -> bool {
        let ordinary = self.all.iter().find(|turn| turn.ordinary);
        ordinary.is_some_and(|turn| turn.class < class)
    }

    /// Whether a stream has bytes that no path was given; of no class of `beside`.
    pub(super) fn any_unsent(&self, beside: Classes) -> bool {
        self.unsent.any_beside(beside)
    }

    /// Streams of a class that take turns with new bytes.
    pub(super) const fn sharing(&self, class: Class) -> u64 {
        self.unsent.classes[class as usize] as u64
    }

    /// Whether a stream has such bytes and may not send them; of no class of `beside`.
    pub(super) fn any_blocked(&self, beside: Classes) -> bool {
        self.blocked.any_beside(beside)
    }

    /// Whether a stream of the class may send new bytes.
    pub(super) fn is_ready(&self, class: Class) -> bool {
        self.ready.range(Turn::places(true, class)).next().is_some()
    }

    /// Whether anything of these classes waits to be sent, for the first time or again.
    pub(super) fn any_waiting(&self, classes: Classes) -> bool {
        let lost = |class| self.lost.range(Turn::places(true, class)).next().is_some();
        self.unsent.any(classes) || classes.iter().any(lost)
    }
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
        send.unsent.remove(0..100);
        assert!(turns.put(id, &send), "50 bytes above the limit");
        assert!(!turns.put(id, &send), "no news");
        assert!(turns.any_blocked(Classes::NONE) && turns.any_unsent(Classes::NONE));
        assert_eq!(turns.sharing(Class::Interactive), 1);
        assert_eq!(order(&turns), []);
        send.lost.insert(0..10);
        turns.put(id, &send);
        assert_eq!(turns.first_lost(Some(Class::Interactive)), Some(id));
        assert_eq!(turns.first_lost(Some(Class::Streaming)).or(turns.first_lost(None)), None);
        turns.remove(id);
        assert!(
            turns.is_empty()
                && !turns.any_blocked(Classes::NONE)
                && !turns.any_unsent(Classes::NONE)
        );
        assert_eq!(turns.first_lost(Some(Class::Interactive)), None);
    }
}
