//! Which message a path takes, and which path a message waits for (F16).

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;
use core::time::Duration;

use super::Session;
use super::transmit::Departure;
use crate::event::Event;
use crate::message::{Importance, MESSAGE_OVERHEAD};
use crate::path::{CopyReason, PathView, lead};
use crate::stats::WhyIdle;
use crate::stream::{First, Unit};
use crate::time::Instant;
use crate::units::{Class, Space, StreamId, time_for};
use crate::wire::{Frame, Outgoing, encode_message_header};

/// A message waits so long for the path that would deliver it first whatever keeps that one, and
/// longer where it is there sooner all the same; never longer than that path would be sooner.
const PATIENCE: Duration = Duration::from_millis(4);
/// A path that is so much later delivers as soon as the first one.
const EQUAL: Duration = Duration::from_millis(1);

/// Whose message it is: class, importance, what its stream has been served, and the stream.
type Turn = (Class, Reverse<Importance>, u64, StreamId);

impl Session {
    /// A message of these streams of one class whose subflow is gone, or gaps in place of those given
    /// up: the first that no sooner path would deliver in time where this one would not.
    pub(super) fn transmit_lost_message(
        &mut self,
        now: Instant,
        path: usize,
        views: &[PathView],
        streams: &[(Class, StreamId)],
        out: &mut Outgoing,
    ) -> bool {
        let Some((_, first)) = streams.first() else { return false };
        let late = self.standing(now, path, views, *first);
        for &(_, id) in streams {
            self.expire_messages_of(now, id);
            let stream = self.streams.get_mut(&id);
            let Some(channel) = stream.and_then(|stream| stream.messages.as_mut()) else {
                continue;
            };
            let in_time = |at: Instant| late.behind.is_none() || at > late.arrival;
            if let Some(range) = channel.out.take_lost(in_time) {
                self.emit_message(now, path, &views[path], id, range, Some(CopyReason::Lost), out);
                return true;
            }
        }
        false
    }

    /// Streams with lost messages that may go by the path, by class.
    pub(super) fn lost_messages(&self, path: usize) -> Vec<(Class, StreamId)> {
        let lost = |id: &StreamId| {
            let stream = self.streams.get(id)?;
            let lost = stream.messages.as_ref()?.out.has_lost() && !self.is_kept_off(path, *id);
            lost.then_some((stream.send.class, *id))
        };
        let mut found: Vec<_> = self.talking.iter().filter_map(lost).collect();
        found.sort_unstable();
        found
    }

    /// Sends the first message of the classes up to `worst`, of that one itself only of streams that
    /// were not served more than `served`; or the last message of its stream on a path that delivers
    /// later than another. A message that another path should have does not hold up those of other
    /// streams.
    pub(super) fn transmit_message(
        &mut self,
        now: Instant,
        path: usize,
        views: &[PathView],
        until: (Class, u64),
        out: &mut Outgoing,
    ) -> bool {
        let waiting = self.talking.iter().filter_map(|id| self.turn_of(path, until, *id));
        let mut turns: BinaryHeap<Reverse<Turn>> = waiting.map(Reverse).collect();
        let mut known: Option<(Class, Standing)> = None;
        while let Some(Reverse((class, _, _, id))) = turns.pop() {
            let standing = match known {
                Some((of, standing)) if of == class => standing,
                _ => self.standing(now, path, views, id),
            };
            known = Some((class, standing));
            if self.expire_messages_of(now, id) {
                // What waits behind it has its own turn.
                turns.extend(self.turn_of(path, until, id).map(Reverse));
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
            if last.is_none() && behind.is_some_and(|b| too_old || b.keeps(now, queued)) {
                self.enter(now, path, WhyIdle::TooLate);
                continue;
            }
            if !self.may_carry(path, id) {
                self.enter(now, path, WhyIdle::Weight);
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
            self.enter(now, path, WhyIdle::Sending);
            self.emit_message(now, path, &views[path], id, range, None, out);
            return true;
        }
        false
    }

    /// The turn of the stream's first message: by class, importance and what the stream was served.
    /// `None` if none waits, its receiver's limit does not let it go, it is kept off the path, or it is
    /// of a class behind the last one, or of that one and its stream was served more.
    fn turn_of(&self, path: usize, (worst, served): (Class, u64), id: StreamId) -> Option<Turn> {
        let stream = self.streams.get(&id)?;
        let out = &stream.messages.as_ref()?.out;
        let First { importance, .. } = out.first()?;
        let class = stream.send.class;
        let turn = class < worst || (class == worst && out.served <= served);
        let goes = turn && out.short_of().is_none() && !self.is_kept_off(path, id);
        goes.then_some((class, Reverse(importance), out.served, id))
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
    fn standing(&self, now: Instant, path: usize, views: &[PathView], id: StreamId) -> Standing {
        let seen = self.views_for(views, id);
        let behind = lag(&seen, path).map(|(soonest, time, matters)| {
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
    #[allow(clippy::too_many_arguments)]
    pub(super) fn emit_message(
        &mut self,
        now: Instant,
        path: usize,
        view: &PathView,
        id: StreamId,
        range: Range<u64>,
        copy: Option<CopyReason>,
        out: &mut Outgoing,
    ) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(channel) = &mut stream.messages else { return };
        let size = match channel.out.unit(&range) {
            Unit::Message(bytes) => {
                let size = range.end - range.start - MESSAGE_OVERHEAD;
                let length = u32::try_from(size).unwrap_or(0);
                encode_message_header(out.encoder(), id, range.start, length);
                out.put(bytes);
                size
            }
            Unit::Gap => {
                let (start, end) = (range.start, range.end);
                Frame::Gap { stream: id, start, end }.encode(out.encoder());
                0
            }
        };
        if copy.is_some_and(|reason| reason != CopyReason::Lost) {
            channel.out.copied(range.start);
        }
        // Another path may carry a copy at once.
        self.news += 1;
        let space = Space::Messages(id);
        self.account(now, path, view, Departure { space, range, data: size, copy });
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

/// The soonest path, by how much `path` delivers later, and whether the former is worth waiting for;
/// `None` for a path that delivers as soon as any.
fn lag(views: &[PathView], path: usize) -> Option<(usize, Duration, bool)> {
    let own = views[path].arrival;
    let usable = views.iter().enumerate().filter(|(_, view)| view.usable);
    let (soonest, best) =
        usable.map(|(index, view)| (index, view.arrival)).min_by_key(|(_, arrival)| *arrival)?;
    let time = own.checked_sub(best).filter(|time| *time > EQUAL)?;
    Some((soonest, time, time > best / 4 + EQUAL))
}
