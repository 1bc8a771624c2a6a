//! Which message a path takes, and which path a message waits for.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::ops::Range;
use core::time::Duration;

use fbdt_units::{Class, Instant, Space, StreamId, time_for};
use fbdt_wire::{Frame, encode_message_header};

use super::account::Departure;
use super::offers::Offers;
use super::{Refusal, Transmission};
use crate::event::Event;
use crate::message::{Importance, MESSAGE_OVERHEAD};
use crate::path::{CopyReason, PathView, lead};
use crate::scale::{NOISE, TICK};
use crate::session::Session;
use crate::stats::WhyIdle;
use crate::stream::{First, Unit};

/// A stream whose first message may be sent, in the order of such streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MessageTurn {
    pub(super) class: Class,
    pub(super) importance: Reverse<Importance>,
    /// Bytes of messages that the stream has been served.
    pub(super) served: u64,
    pub(super) id: StreamId,
}

impl Session {
    /// Streams whose first message may go by the path, in order.
    pub(super) fn message_turns(&self, path: usize) -> BinaryHeap<Reverse<MessageTurn>> {
        let turns = self.talking.iter().filter_map(|id| self.message_turn(path, *id));
        turns.map(Reverse).collect()
    }

    /// Sends the first message of the stream whose turn it is; or the last one on a path that delivers
    /// later than another. A message that another path should have does not hold up those of other
    /// streams.
    pub(super) fn send_message_of(
        &mut self,
        tx: &mut Transmission<'_>,
        offers: &mut Offers,
        turn: MessageTurn,
    ) -> bool {
        let MessageTurn { class, id, .. } = turn;
        let known = offers.standing.filter(|(of, _)| *of == class);
        let standing = known.map_or_else(|| self.standing(tx, id), |(_, standing)| standing);
        offers.standing = Some((class, standing));
        if self.expire_messages_of(tx.now, id) {
            // The message behind it has its own turn.
            offers.messages.extend(self.message_turn(tx.path, id).map(Reverse));
            return false;
        }
        let channel = self.streams.get(&id).and_then(|stream| stream.messages.as_ref());
        let Some(out) = channel.map(|channel| &channel.out) else { return false };
        let Some(First { queued, expires, .. }) = out.first() else { return false };
        // The front is the soonest path's, whether it has room now or not; others take the back.
        let Standing { behind, lead, arrival } = standing;
        let last = behind.and_then(|_| out.last_may_go(arrival, lead));
        let too_old = expires.is_some_and(|at| at <= arrival);
        if last.is_none() && behind.is_some_and(|b| too_old || b.keeps(tx.now, queued)) {
            tx.message_refused = Some(Refusal::Other(WhyIdle::TooLate));
            return false;
        }
        if !self.may_carry(tx.path, id) {
            // Nor messages of any stream behind it.
            tx.message_refused = Some(Refusal::Share);
            offers.messages.clear();
            return false;
        }
        self.take_message(tx, turn, last)
    }

    /// Sends the stream's first message, or the last one of the importance `last`.
    fn take_message(
        &mut self,
        tx: &mut Transmission<'_>,
        MessageTurn { class, id, .. }: MessageTurn,
        last: Option<Importance>,
    ) -> bool {
        let Some(channel) = self.channel_mut(id) else { return false };
        let taken = match last {
            Some(importance) => channel.out.take_last(importance),
            None => channel.out.take(),
        };
        let Some(range) = taken else { return false };
        let served = channel.out.served - (range.end - range.start);
        let wakes = channel.out.wakes_writer();
        self.clock.serve(class, served);
        if wakes {
            self.events.push_back(Event::MessageWritable(id));
        }
        self.emit_message(tx, id, range, None);
        true
    }

    /// The turn of the stream's first message: by class, importance and what the stream was served.
    /// `None` if it has none, its receiver's limit does not let it go, or it is kept off the path.
    fn message_turn(&self, path: usize, id: StreamId) -> Option<MessageTurn> {
        let stream = self.streams.get(&id)?;
        let out = &stream.messages.as_ref()?.out;
        let First { importance, .. } = out.first()?;
        let goes = out.short_of().is_none() && !self.is_kept_off(path, id);
        goes.then_some(MessageTurn {
            class: stream.send.class,
            importance: Reverse(importance),
            served: out.served,
            id,
        })
    }

    /// Streams of the class whose messages wait.
    pub(in crate::session) fn speaking(&self, class: Class) -> u64 {
        self.talkers(class).filter(|(_, out)| out.backlog() > 0).count() as u64
    }

    /// How the path stands with the messages of the stream; the same for all streams of its class.
    pub(super) fn standing(&self, tx: &Transmission<'_>, id: StreamId) -> Standing {
        let (now, path) = (tx.now, tx.path);
        let seen = self.views_for(tx.views, id);
        let behind = lag(&seen, path).map(|(soonest, time)| Behind {
            time,
            matters: time > seen[soonest].arrival / 4 + TICK,
            expected: self.wait_for(now, &seen, soonest, id),
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
pub(super) struct Standing {
    /// How far it is behind the one that delivers first; `None` if it delivers as soon as any.
    pub(super) behind: Option<Behind>,
    /// Bytes that faster paths deliver first.
    lead: u64,
    /// When it delivers what it takes now.
    pub(super) arrival: Instant,
}

/// How much later a path delivers than the soonest one.
#[derive(Clone, Copy)]
pub(super) struct Behind {
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
        let early = waited < self.time.min(NOISE / 2);
        self.matters && (early || (waited < self.time && self.expected <= self.time))
    }
}

/// The path that delivers first, and how much later `path` does; `None` if it delivers as soon as any.
fn lag(views: &[PathView], path: usize) -> Option<(usize, Duration)> {
    let usable = views.iter().enumerate().filter(|(_, view)| view.usable);
    let (soonest, best) = usable.min_by_key(|(_, view)| view.arrival)?;
    let time = views[path].arrival.checked_sub(best.arrival).filter(|time| *time > TICK)?;
    Some((soonest, time))
}
