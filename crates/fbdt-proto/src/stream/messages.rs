//! The sending half of a stream's messages.
//!
//! Rule: F16.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::ops::Range;

use bytes::Bytes;
use fbdt_units::{Instant, RangeSet};
use fbdt_wire::AckFrame;

use super::Wants;
use crate::error::SessionError;
use crate::message::{
    Delivery, FIRST_MESSAGE_WINDOW, Importance, MESSAGE_OVERHEAD, MOST_MESSAGE_WINDOW,
    MessageOptions,
};
use crate::ranges::{MAX_MESSAGE_RANGES, RANGE_OVERHEAD};
use crate::scale::{TICK, TURN};
use crate::stats::MessageStats;

/// The most that may.
pub(crate) const MOST_WAITING: u64 = 16 << 20;

/// A message that no path was given yet.
#[derive(Clone, Debug)]
struct Waiting {
    bytes: Bytes,
    delivery: Delivery,
    queued: Instant,
    expires: Option<Instant>,
}

/// A message that was sent and is not acknowledged.
#[derive(Clone, Debug)]
struct Sent {
    /// Offset behind it.
    end: u64,
    /// `None` once it was given up: what is sent in its place says so. It counts as dropped when that
    /// leaves: until then the peer may acknowledge it.
    bytes: Option<Bytes>,
    delivery: Delivery,
    expires: Option<Instant>,
    /// A second path carries it.
    copied: bool,
    /// A gap went out in its place.
    dropped: bool,
}

impl Sent {
    /// Whether a second path is to carry it whatever that costs, and does not yet.
    fn asks_copy(&self) -> bool {
        self.delivery == Delivery::Duplicated && !self.copied && self.bytes.is_some()
    }
}

/// The message that goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// How much it matters.
    pub importance: Importance,
    /// Since when it waits.
    pub queued: Instant,
    /// When it is worth nothing any more.
    pub expires: Option<Instant>,
}

/// What goes out for a range of the message space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A message, whole.
    Message(Bytes),
    /// Nothing will come there.
    Gap,
}

/// Messages going out on one stream.
///
/// Each takes a range of the stream's message space when it is first sent: its length and
/// [`MESSAGE_OVERHEAD`]. What expires before that costs the peer nothing.
#[derive(Debug, Default)]
pub(crate) struct SendMessages {
    /// By falling importance, each in the order in which they came.
    waiting: [VecDeque<Waiting>; 3],
    /// Bytes of each of the three.
    waiting_bytes: [u64; 3],
    /// Bytes that may wait.
    capacity: u64,
    sent: BTreeMap<u64, Sent>,
    /// Nothing that waits or was sent expires sooner.
    pub expiry: Option<Instant>,
    /// Sent on a subflow that is gone.
    lost: RangeSet,
    acked: RangeSet,
    cumulative: u64,
    next: u64,
    /// Offset up to which the peer takes messages.
    pub limit: u64,
    /// The peer, or this end, wants no more.
    pub over: bool,
    /// Somebody waits for room: the greatest importance for which.
    pub writer_blocked: Option<Importance>,
    /// Bytes given to paths, or what others had been given when this stream joined them (F12).
    pub served: u64,
    /// Messages on their way that are to be sent twice whatever that costs, and were not yet.
    asking: BTreeSet<u64>,
    /// It takes turns with the class's other streams (F12): its first message may go.
    pub in_turn: bool,
    /// How often the peer is asked for a larger window.
    pub wants: Wants,
    /// What became of them.
    pub counts: MessageStats,
}

/// By rank: what goes first.
const RANKED: [Importance; 3] = [Importance::High, Importance::Normal, Importance::Low];

const fn rank(importance: Importance) -> usize {
    Importance::High as usize - importance as usize
}

const fn cost(bytes: &Bytes) -> u64 {
    bytes.len() as u64 + MESSAGE_OVERHEAD
}

impl SendMessages {
    /// Nothing waits; the peer takes [`FIRST_MESSAGE_WINDOW`].
    pub(crate) fn new() -> Self {
        Self { limit: FIRST_MESSAGE_WINDOW, capacity: TURN, ..Self::default() }
    }

    /// Takes a message; `false` if too much waits already that matters as much or more.
    pub(crate) fn push(&mut self, now: Instant, bytes: Bytes, options: MessageOptions) -> bool {
        self.expire(now);
        let size = cost(&bytes);
        let MessageOptions { importance, delivery, lifetime } = options;
        let waiting = self.before(importance);
        if waiting > 0 && waiting + size > self.capacity {
            self.writer_blocked = self.writer_blocked.max(Some(importance));
            return false;
        }
        self.waiting_bytes[rank(importance)] += size;
        let expires = lifetime.map(|lifetime| now + lifetime);
        self.expiry = [self.expiry, expires].into_iter().flatten().min();
        self.waiting[rank(importance)].push_back(Waiting { bytes, delivery, queued: now, expires });
        self.rest();
        true
    }

    /// Drops what is worth nothing any more; says whether anything was.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        if self.expiry.is_none_or(|at| at > now) {
            return false;
        }
        let before = self.counts.dropped;
        let over = |expires: Option<Instant>| expires.is_some_and(|at| at <= now);
        for (queue, bytes) in self.waiting.iter_mut().zip(&mut self.waiting_bytes) {
            queue.retain(|message| {
                let stays = !over(message.expires);
                if !stays {
                    *bytes -= cost(&message.bytes);
                    self.counts.dropped += 1;
                }
                stays
            });
        }
        // What is on its way may still arrive: it counts as dropped when a gap goes out for it.
        for (start, sent) in self.sent.iter_mut().filter(|(_, sent)| over(sent.expires)) {
            sent.bytes = None;
            sent.expires = None;
            self.asking.remove(start);
        }
        let waiting = self.waiting.iter().flatten().filter_map(|message| message.expires);
        let sent = self.sent.values().filter_map(|sent| sent.expires);
        self.expiry = waiting.chain(sent).min().map(|at| at.max(now + TICK));
        self.rest();
        self.counts.dropped > before
    }

    /// Whether a writer that was told to wait is to be told to try again: there is room, or nobody
    /// takes any more. It is told once.
    pub(crate) fn wakes_writer(&mut self) -> bool {
        let half = self.capacity / 2;
        let wakes = self.writer_blocked.is_some_and(|importance| self.before(importance) <= half);
        self.writer_blocked = self.writer_blocked.filter(|_| !wakes);
        wakes
    }

    /// `bytes` that wait keep all paths busy: a later one takes the last of them, as soon as those
    /// before it keep the faster ones busy for the difference (F3b).
    pub(crate) fn size(&mut self, bytes: u64) {
        self.capacity = bytes.clamp(TURN, MOST_WAITING);
    }

    /// The first message that waits.
    pub(crate) fn first(&self) -> Option<First> {
        RANKED.into_iter().zip(&self.waiting).find_map(|(importance, queue)| {
            let Waiting { queued, expires, .. } = *queue.front()?;
            Some(First { importance, queued, expires })
        })
    }

    /// The limit that the first message needs, if what may be sent does not reach so far.
    pub(crate) fn short_of(&self) -> Option<u64> {
        let first = self.waiting.iter().find_map(VecDeque::front)?;
        let end = self.next + cost(&first.bytes);
        (end > self.bound()).then_some(end)
    }

    /// Whether the first message may go, as far as the peer's limit goes.
    pub(crate) fn may_go(&self) -> bool {
        self.backlog() > 0 && self.short_of().is_none()
    }

    /// What cannot go has no turn until it joins again.
    fn rest(&mut self) {
        self.in_turn &= self.may_go();
    }

    /// Whether its first message may go now, after a time without one that could: true once.
    pub(crate) fn joins(&mut self) -> bool {
        let before = self.in_turn;
        self.in_turn = self.may_go();
        self.in_turn && !before
    }

    /// Offset up to which messages are sent: a peer that takes any number and acknowledges none is
    /// sent no more than this end keeps account of.
    fn bound(&self) -> u64 {
        self.limit.min(self.settled() + MOST_MESSAGE_WINDOW)
    }

    /// Bytes that wait, with their overhead.
    pub(crate) fn backlog(&self) -> u64 {
        self.waiting_bytes.iter().sum()
    }

    /// Memory that they take until the peer has them, with their overhead.
    pub(crate) fn memory(&self) -> u64 {
        let sent = self.next.saturating_sub(self.settled());
        let ranges = RANGE_OVERHEAD * self.acked.count() as u64;
        if self.over { ranges } else { self.backlog() + sent + ranges }
    }

    /// Of these, those that a message of that importance waits for: of the same and of greater.
    fn before(&self, importance: Importance) -> u64 {
        self.waiting_bytes[..=rank(importance)].iter().sum()
    }

    /// Gives the first message its place; its range, or `None` if none waits or fits.
    pub(crate) fn take(&mut self) -> Option<Range<u64>> {
        if self.short_of().is_some() {
            return None;
        }
        let rank = self.waiting.iter().position(|queue| !queue.is_empty())?;
        let message = self.waiting[rank].pop_front()?;
        Some(self.place(rank, message))
    }

    /// The importance of which the last message may go by a path whose bytes arrive at `arrival`, and
    /// `lead` bytes behind those of faster paths: these would have it there no sooner (F3b), its time
    /// is not over then, and the peer takes it. The greatest of which that is so, lest what matters
    /// less arrives in time on a late path and what matters more does not on the others.
    pub(crate) fn last_may_go(&self, arrival: Instant, lead: u64) -> Option<Importance> {
        let mut ahead = 0;
        for (rank, importance) in RANKED.into_iter().enumerate() {
            let before = ahead;
            ahead += self.waiting_bytes[rank];
            let Some(last) = self.waiting[rank].back() else { continue };
            let size = cost(&last.bytes);
            let first = before + self.waiting_bytes[rank] - size;
            if first > 0
                && first >= lead
                && last.expires.is_none_or(|at| at > arrival)
                && self.next + size <= self.bound()
            {
                return Some(importance);
            }
        }
        None
    }

    /// Gives the last message of that importance its place: the newest.
    pub(crate) fn take_last(&mut self, importance: Importance) -> Option<Range<u64>> {
        let rank = rank(importance);
        let message = self.waiting[rank].pop_back()?;
        Some(self.place(rank, message))
    }

    fn place(&mut self, rank: usize, message: Waiting) -> Range<u64> {
        let size = cost(&message.bytes);
        self.served += size;
        self.waiting_bytes[rank] -= size;
        let range = self.next..self.next + size;
        self.next = range.end;
        self.rest();
        self.counts.sent += 1;
        let Waiting { bytes, delivery, expires, .. } = message;
        let bytes = Some(bytes);
        let sent = Sent { end: range.end, bytes, delivery, expires, copied: false, dropped: false };
        if sent.asks_copy() {
            self.asking.insert(range.start);
        }
        self.sent.insert(range.start, sent);
        range
    }

    /// What goes out for `range`, which is a message's or lies in gaps: those in whose place a gap
    /// goes out are counted.
    pub(crate) fn unit(&mut self, range: &Range<u64>) -> Unit {
        if let Some(Sent { end, bytes: Some(bytes), .. }) = self.sent.get(&range.start)
            && *end == range.end
        {
            return Unit::Message(bytes.clone());
        }
        for (_, sent) in self.sent.range_mut(range.clone()) {
            if sent.bytes.is_none() && !core::mem::replace(&mut sent.dropped, true) {
                self.counts.dropped += 1;
            }
        }
        Unit::Gap
    }

    /// The part of `range` that the peer does not have, if there is any.
    pub(crate) fn unacknowledged(&self, range: Range<u64>) -> Option<Range<u64>> {
        if self.over {
            return None;
        }
        self.acked.first_gap(range.start.max(self.cumulative)..range.end)
    }

    /// Bytes that the peer has acknowledged, or needs no more.
    pub(crate) const fn settled(&self) -> u64 {
        self.cumulative + self.acked.total()
    }

    /// Whether a message on its way is to be sent twice whatever that costs, and was not yet.
    pub(crate) fn asks_copies(&self) -> bool {
        !self.asking.is_empty()
    }

    /// Whether a copy of the message at `start` may be sent on a second path at once: `None` if
    /// not, else whether it may whatever it costs.
    pub(crate) fn may_copy(&self, start: u64) -> Option<bool> {
        let sent = self.sent.get(&start).filter(|sent| !sent.copied && sent.bytes.is_some())?;
        match sent.delivery {
            Delivery::Reliable => Some(false),
            Delivery::Duplicated => Some(true),
            Delivery::BestEffort => None,
        }
    }

    /// Whether what is lost of it is worth a copy.
    pub(crate) fn is_repaired(&self, start: u64) -> bool {
        self.sent.get(&start).is_none_or(|sent| sent.delivery != Delivery::BestEffort)
    }

    /// A second path carries the message at `start`.
    pub(crate) fn copied(&mut self, start: u64) {
        if let Some(sent) = self.sent.get_mut(&start) {
            sent.copied = true;
            self.asking.remove(&start);
        }
    }

    /// The path that carried what lies in `range` too is gone.
    pub(crate) fn uncopied(&mut self, range: Range<u64>) {
        for (start, sent) in self.sent.range_mut(range) {
            sent.copied = false;
            if sent.asks_copy() {
                self.asking.insert(*start);
            }
        }
    }

    /// Nobody carries what lies in `range` any more.
    pub(crate) fn lose(&mut self, range: Range<u64>) {
        self.uncopied(range.clone());
        let mut at = range.start;
        while let Some(gap) = self.unacknowledged(at..range.end) {
            at = gap.end;
            for (_, sent) in self.sent.range_mut(gap.clone()) {
                if sent.delivery == Delivery::BestEffort {
                    sent.bytes = None;
                }
            }
            self.lost.insert(gap);
        }
    }

    /// The next range to be sent again: one message that is there `in_time`, by when it is worth
    /// nothing any more, or gaps that lie together.
    pub(crate) fn take_lost(&mut self, in_time: impl Fn(Instant) -> bool) -> Option<Range<u64>> {
        let mut at = 0;
        while let Some(piece) = self.lost.first_within(at..u64::MAX) {
            let Some(gap) = self.unacknowledged(piece.clone()) else {
                self.lost.remove(piece);
                continue;
            };
            let whole = self.sent.get(&gap.start).filter(|sent| sent.bytes.is_some());
            if let Some(Sent { end, expires: Some(expires), .. }) = whole
                && !in_time(*expires)
            {
                at = *end;
                continue;
            }
            let mut end = gap.start;
            for (start, sent) in self.sent.range(gap.start..gap.end) {
                if sent.bytes.is_some() {
                    end = if *start == gap.start { sent.end } else { *start };
                    break;
                }
                end = sent.end;
            }
            let end = if end == gap.start { gap.end } else { end.min(gap.end) };
            self.lost.remove(piece.start..end);
            return Some(gap.start..end);
        }
        None
    }

    /// Whether anything waits to be sent, for the first time or again.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.iter().any(|queue| !queue.is_empty()) || !self.lost.is_empty()
    }

    /// Whether a lost range waits.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Bytes of messages that wait or were not acknowledged.
    pub(crate) fn undelivered(&self) -> u64 {
        self.next.saturating_sub(self.cumulative) + self.waiting_bytes.iter().sum::<u64>()
    }

    /// Whether nothing waits and everything was acknowledged or given up.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.is_waiting() && self.cumulative >= self.next
    }

    /// The peer's acknowledgement; says whether anything new was in it.
    ///
    /// # Errors
    /// An acknowledgement of what was never sent.
    pub(crate) fn acknowledge(&mut self, ack: &AckFrame) -> Result<bool, SessionError> {
        if self.over {
            return Ok(false);
        }
        if ack.cumulative == u64::MAX {
            self.abandon();
            return Ok(true);
        }
        let highest = ack.ranges.last().map_or(0, |range| range.end).max(ack.cumulative);
        if highest > self.next {
            let (stream, sent) = (ack.stream, self.next);
            return Err(SessionError::Acknowledgement { stream, offset: highest, sent });
        }
        let before = (self.cumulative, self.acked.total(), self.limit);
        if ack.limit > self.limit {
            self.limit = ack.limit;
            self.wants.answer();
        }
        self.settle(self.cumulative..ack.cumulative);
        for range in &ack.ranges {
            // No honest receiver has more of them; it says them again, or passes them.
            if self.acked.count() >= MAX_MESSAGE_RANGES {
                break;
            }
            self.settle(range.start.max(self.cumulative)..range.end);
        }
        if let Some(first) = self.acked.first().filter(|first| first.start <= self.cumulative) {
            self.cumulative = self.cumulative.max(first.end);
        }
        self.cumulative = self.cumulative.max(ack.cumulative);
        self.acked.remove_below(self.cumulative);
        self.lost.remove_below(self.cumulative);
        // Messages that were acknowledged in parts, which no sane peer does.
        while let Some(first) = self.sent.first_entry()
            && first.get().end <= self.cumulative
        {
            self.asking.remove(first.key());
            self.counts.acknowledged += u64::from(!first.remove().dropped);
        }
        Ok(before != (self.cumulative, self.acked.total(), self.limit))
    }

    /// The peer has what lies in `range`.
    fn settle(&mut self, range: Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let mut at = range.start;
        // A peer may acknowledge a part of a message: `at` is then beyond the range's end.
        while at < range.end {
            let Some((&start, sent)) = self.sent.range(at..range.end).next() else { break };
            at = sent.end;
            if sent.end <= range.end {
                self.counts.acknowledged += u64::from(!sent.dropped);
                self.sent.remove(&start);
                self.asking.remove(&start);
            }
        }
        self.acked.insert(range.clone());
        self.lost.remove(range);
    }

    /// Nothing more is sent, and nothing waited for.
    pub(crate) fn abandon(&mut self) {
        let waiting: usize = self.waiting.iter().map(VecDeque::len).sum();
        let given_up = self.sent.values().filter(|sent| !sent.dropped).count();
        self.counts.dropped += (waiting + given_up) as u64;
        self.waiting = Default::default();
        self.waiting_bytes = [0; 3];
        self.sent.clear();
        self.asking.clear();
        self.lost = RangeSet::new();
        self.cumulative = self.next;
        self.over = true;
        self.in_turn = false;
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
#[path = "messages_tests.rs"]
mod tests;
