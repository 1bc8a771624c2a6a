//! Which message a path takes, and which path a message waits for (F16).

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;
use core::time::Duration;

use super::Session;
use super::transmit::{Departure, Refusal, Transmission};
use crate::event::Event;
use crate::message::{Importance, MESSAGE_OVERHEAD};
use crate::path::{CopyReason, PathView, lead};
use crate::stats::WhyIdle;
use crate::stream::{First, Unit};
use crate::time::Instant;
use crate::units::{Class, Space, StreamId, time_for};
use crate::wire::{Frame, encode_message_header};

/// A message waits so long for the path that would deliver it first whatever keeps that one, and
/// longer where it is there sooner all the same; never longer than that path would be sooner.
const PATIENCE: Duration = Duration::from_millis(4);
/// A path that is so much later delivers as soon as the first one.
const EQUAL: Duration = Duration::from_millis(1);

/// A stream whose first message may be sent, in the order of such streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessageTurn {
    class: Class,
    importance: Reverse<Importance>,
    /// Bytes of messages that the stream has been served.
    served: u64,
    id: StreamId,
}

/// The last messages of the order that may be sent: all of better classes, and of this class those of
/// streams that were served no more than this.
#[derive(Clone, Copy, Debug)]
pub(super) struct Until {
    pub(super) class: Class,
    pub(super) served: u64,
}

impl Until {
    /// All messages of this class and of better ones.
    pub(super) const fn all_of(class: Class) -> Self {
        Self { class, served: u64::MAX }
    }
}

/// A stream with lost messages; by class first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LostMessages {
    pub(super) class: Class,
    pub(super) id: StreamId,
}

impl Session {
    /// A message of these streams of one class whose subflow is gone, or gaps in place of those given
    /// up: the first that no sooner path would deliver in time where this one would not.
    pub(super) fn transmit_lost_message(
        &mut self,
        tx: &mut Transmission<'_>,
        streams: &[LostMessages],
    ) -> bool {
        let Some(first) = streams.first() else { return false };
        let late = self.standing(tx, first.id);
        for &LostMessages { id, .. } in streams {
            self.expire_messages_of(tx.now, id);
            let stream = self.streams.get_mut(&id);
            let Some(channel) = stream.and_then(|stream| stream.messages.as_mut()) else {
                continue;
            };
            let in_time = |at: Instant| late.behind.is_none() || at > late.arrival;
            if let Some(range) = channel.out.take_lost(in_time) {
                self.emit_message(tx, id, range, Some(CopyReason::Lost));
                return true;
            }
        }
        false
    }

    /// Streams with lost messages that may go by the path, by class.
    pub(super) fn lost_messages(&self, path: usize) -> Vec<LostMessages> {
        let lost = |id: &StreamId| {
            let stream = self.streams.get(id)?;
            let lost = stream.messages.as_ref()?.out.has_lost() && !self.is_kept_off(path, *id);
            lost.then_some(LostMessages { class: stream.send.class, id: *id })
        };
        let mut found: Vec<_> = self.talking.iter().filter_map(lost).collect();
        found.sort_unstable();
        found
    }

    /// Sends the first message of the order before `until`; or the last message of its stream on a path
    /// that delivers later than another. A message that another path should have does not hold up those of other
    /// streams.
    pub(super) fn transmit_message(&mut self, tx: &mut Transmission<'_>, until: Until) -> bool {
        let waiting = self.talking.iter().filter_map(|id| self.turn_of(tx.path, until, *id));
        let mut turns: BinaryHeap<Reverse<MessageTurn>> = waiting.map(Reverse).collect();
        let mut known: Option<(Class, Standing)> = None;
        while let Some(Reverse(MessageTurn { class, id, .. })) = turns.pop() {
            let standing = match known {
                Some((of, standing)) if of == class => standing,
                _ => self.standing(tx, id),
            };
            known = Some((class, standing));
            if self.expire_messages_of(tx.now, id) {
                // What waits behind it has its own turn.
                turns.extend(self.turn_of(tx.path, until, id).map(Reverse));
                continue;
            }
            let Some(channel) = self.streams.get_mut(&id).and_then(|s| s.messages.as_mut()) else {
                return false;
            };
            let Some(First { queued, expires, .. }) = channel.out.first() else { continue };
            // The front is the soonest path's, whether it has room now or not; others take the back.
            let Standing { behind, lead, arrival } = standing;
            let last = behind.and_then(|_| channel.out.last_may_go(arrival, lead));
            let too_old = expires.is_some_and(|at| at <= arrival);
            if last.is_none() && behind.is_some_and(|b| too_old || b.keeps(tx.now, queued)) {
                tx.refusal = Refusal::Other(WhyIdle::TooLate);
                continue;
            }
            if !self.may_carry(tx.path, id) {
                tx.refusal = Refusal::Share;
                return false;
            }
            let Some(channel) = self.streams.get_mut(&id).and_then(|s| s.messages.as_mut()) else {
                return false;
            };
            let taken = match last {
                Some(importance) => channel.out.take_last(importance),
                None => channel.out.take(),
            };
            let Some(range) = taken else { return false };
            let served = channel.out.served - (range.end - range.start);
            self.clock.serve(class, served);
            if channel.out.wakes_writer() {
                self.events.push_back(Event::MessageWritable(id));
            }
            self.emit_message(tx, id, range, None);
            return true;
        }
        false
    }

    /// The turn of the stream's first message: by class, importance and what the stream was served.
    /// `None` if none waits, its receiver's limit does not let it go, it is kept off the path, or it is
    /// of a class behind the last one, or of that one and its stream was served more.
    fn turn_of(&self, path: usize, until: Until, id: StreamId) -> Option<MessageTurn> {
        let stream = self.streams.get(&id)?;
        let out = &stream.messages.as_ref()?.out;
        let First { importance, .. } = out.first()?;
        let class = stream.send.class;
        let turn = class < until.class || (class == until.class && out.served <= until.served);
        let goes = turn && out.short_of().is_none() && !self.is_kept_off(path, id);
        let importance = Reverse(importance);
        goes.then_some(MessageTurn { class, importance, served: out.served, id })
    }

    /// Streams of the class whose messages wait.
    pub(super) fn speaking(&self, class: Class) -> u64 {
        let speaks = |id: &&StreamId| {
            let stream = self.streams.get(*id).filter(|stream| stream.send.class == class);
            stream.and_then(|s| s.messages.as_ref()).is_some_and(|c| c.out.backlog() > 0)
        };
        self.talking.iter().filter(speaks).count() as u64
    }

    /// How the path stands with the messages of the stream; the same for all streams of its class.
    fn standing(&self, tx: &Transmission<'_>, id: StreamId) -> Standing {
        let (now, path) = (tx.now, tx.path);
        let seen = self.views_for(tx.views, id);
        let behind = lag(&seen, path).map(|Lag { soonest, time, matters }| {
            let expected = self.wait_for(now, &seen, soonest, id);
            Behind { time, matters, expected }
        });
        // Streams that take turns share what faster paths deliver meanwhile.
        let class = self.streams.get(&id).map_or(Class::default(), |stream| stream.send.class);
        let lead = lead(&seen, path) / self.speaking(class).max(1);
        Standing { behind, lead, arrival: now + seen[path].arrival }
    }

    /// How long a message of the stream waits until path `soonest` takes it: as long as what the
    /// path holds takes at the link's rate if that fills it (what it delivered lately says little where
    /// messages come in bursts), until its cap lets it go on, and as long again
    /// as nothing has been acknowledged where that is longer than usual.
    fn wait_for(&self, now: Instant, views: &[PathView], soonest: usize, id: StreamId) -> Duration {
        let (view, state) = (&views[soonest], &self.paths[soonest]);
        let Some(subflow) = state.subflow.as_ref().filter(|_| self.may_carry(soonest, id)) else {
            return Duration::MAX;
        };
        let full = if state.has_room() { Duration::ZERO } else { time_for(view.held, view.rate) };
        let silence = subflow.progress.silence(now);
        let stalled = if silence > view.srtt { silence } else { Duration::ZERO };
        let capped = state.opens_at().map_or(Duration::ZERO, |at| at.saturating_since(now));
        full.max(stalled).max(capped)
    }

    /// Makes the frame of a message or of a gap and enters it on the path's account.
    pub(super) fn emit_message(
        &mut self,
        tx: &mut Transmission<'_>,
        id: StreamId,
        range: Range<u64>,
        copy: Option<CopyReason>,
    ) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(channel) = &mut stream.messages else { return };
        let size = match channel.out.unit(&range) {
            Unit::Message(bytes) => {
                let size = range.end - range.start - MESSAGE_OVERHEAD;
                let length = u32::try_from(size).unwrap_or(0);
                encode_message_header(tx.out.encoder(), id, range.start, length);
                tx.out.put(bytes);
                size
            }
            Unit::Gap => {
                let (start, end) = (range.start, range.end);
                Frame::Gap { stream: id, start, end }.encode(tx.out.encoder());
                0
            }
        };
        if copy.is_some_and(|reason| reason != CopyReason::Lost) {
            channel.out.copied(range.start);
        }
        // Another path may carry a copy at once.
        self.news += 1;
        let space = Space::Messages(id);
        self.account(tx, Departure { space, range, data: size, copy });
    }
}

/// How a path stands with the messages of a class.
#[derive(Clone, Copy)]
struct Standing {
    /// `None` if it delivers as soon as any.
    behind: Option<Behind>,
    /// Bytes that faster paths deliver first.
    lead: u64,
    /// When it delivers what it takes now.
    arrival: Instant,
}

/// How much later a path delivers than the soonest one.
#[derive(Clone, Copy)]
struct Behind {
    time: Duration,
    /// Whether the soonest one is worth waiting for.
    matters: bool,
    /// How long the soonest one lets a message wait.
    expected: Duration,
}

impl Behind {
    /// Whether a message that waits since `queued` goes on waiting for the soonest path.
    fn keeps(&self, now: Instant, queued: Instant) -> bool {
        let waited = now.saturating_since(queued);
        let early = waited < self.time.min(PATIENCE);
        self.matters && (early || (waited < self.time && self.expected <= self.time))
    }
}

/// How much later a path delivers than another one.
struct Lag {
    /// The path that delivers first.
    soonest: usize,
    /// By how much.
    time: Duration,
    /// Whether that path is worth waiting for.
    matters: bool,
}

/// How much later `path` delivers than the soonest path; `None` if it delivers as soon as any.
fn lag(views: &[PathView], path: usize) -> Option<Lag> {
    let own = views[path].arrival;
    let usable = views.iter().enumerate().filter(|(_, view)| view.usable);
    let (soonest, best) =
        usable.map(|(index, view)| (index, view.arrival)).min_by_key(|(_, arrival)| *arrival)?;
    let time = own.checked_sub(best).filter(|time| *time > EQUAL)?;
    Some(Lag { soonest, time, matters: time > best / 4 + EQUAL })
}
