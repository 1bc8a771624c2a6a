//! Bytes that a scheduler repeats by its own rules.

use alloc::vec::Vec;
use core::ops::Range;

use fbdt_units::{RangeSet, StreamId};

use super::Transmission;
use super::offers::{Again, Kind, Level, Rank, What};
use crate::path::PathState;
use crate::schedule::{OpenWindows, Repeat, RepeatRequest, Repeats, UnderWay};
use crate::session::Session;
use crate::stream::{SendState, SendStream};

impl Session {
    /// Bytes that the scheduler wants repeated on the path, if it repeats bytes at this level.
    pub(super) fn repeated(
        &mut self,
        tx: &Transmission<'_>,
        when: Repeats,
        level: Level,
    ) -> Option<Again> {
        if self.needs.repeats != Some(when) {
            return None;
        }
        let ordinary = |id: &StreamId| *id != StreamId::CONTROL && !self.is_kept_off(tx.path, *id);
        let streams: Vec<StreamId> = self.busy.in_turn().filter(ordinary).collect();
        for id in streams {
            let Some(Repeat { range, punish }) = self.repeat(tx, id) else {
                continue;
            };
            if let Some(owner) = punish.and_then(|owner| self.paths.get_mut(owner)) {
                owner.punish();
            }
            let Some(Range { start, end }) = range else { continue };
            let range = start..end.min(start + self.paths[tx.path].frame());
            let class = self.streams.get(&id).map(|stream| stream.send.class).unwrap_or_default();
            let rank = Rank::again(level, Some(class), Kind::Repeated);
            return Some(Again { rank, what: What::Repeated { id, range } });
        }
        None
    }

    /// Asks the scheduler whether `path` should send bytes of the stream again.
    fn repeat(&mut self, tx: &Transmission<'_>, id: StreamId) -> Option<Repeat> {
        let (now, path) = (tx.now, tx.path);
        let subflow = self.paths[path].subflow.as_ref()?.id;
        let blocked = self.is_blocked(id);
        let views = &*self.views_for(tx.views, id);
        let credit = self.credit.send_limit.saturating_sub(self.credit.sent);
        let send = &self.streams.get(&id)?.send;
        Some(self.scheduler.repeat(&RepeatRequest {
            now,
            paths: views,
            path,
            subflow,
            stream: id,
            under_way: &Sent { id, send, paths: &self.paths },
            acked: send.cumulative,
            window: send.allowance(credit).saturating_sub(send.cumulative),
            unsent: send.unsent.total(),
            blocked,
        }))
    }

    /// The windows of a stream that the scheduler has open, for people.
    pub(in crate::session) fn open_windows(&self, id: StreamId, send: &SendStream) -> OpenWindows {
        if send.is_given_up() {
            return OpenWindows::default();
        }
        self.scheduler.open_windows(id, &Sent { id, send, paths: &self.paths })
    }

    /// Whether the stream has come to the receiver's limit, or to what the
    /// sender may hold.
    pub(super) fn is_blocked(&self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get(&id) else { return false };
        let credit = self.credit.send_limit.saturating_sub(self.credit.sent);
        let send = &stream.send;
        match send.unsent.first() {
            Some(first) => first.start >= send.bound(credit),
            None => send.writer_blocked && send.state == SendState::Open,
        }
    }
}

/// A stream's bytes that were sent, and the paths that owe them.
pub(super) struct Sent<'a> {
    pub(super) id: StreamId,
    pub(super) send: &'a SendStream,
    pub(super) paths: &'a [PathState],
}

impl UnderWay for Sent<'_> {
    fn written(&self) -> u64 {
        self.send.written()
    }

    fn sent_end(&self) -> u64 {
        self.send.sent_end
    }

    fn unacknowledged(&self, range: Range<u64>) -> Option<Range<u64>> {
        self.send.unacknowledged(range)
    }

    fn sent_by(&self, path: usize, byte: u64) -> Option<Range<u64>> {
        let mut owed = self.paths.get(path)?.in_flight.iter();
        owed.find(|chunk| chunk.stream == self.id && chunk.range.contains(&byte))
            .map(|chunk| chunk.range.clone())
    }

    fn copied(&self) -> RangeSet {
        let mut copied = RangeSet::new();
        for chunk in self.paths.iter().flat_map(|path| path.in_flight.iter()) {
            if chunk.stream == self.id {
                copied.insert(chunk.range.start..chunk.copied);
            }
        }
        copied
    }
}
