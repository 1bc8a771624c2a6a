//! What schedulers send a second time by their own rules: all bytes
//! (redundant), or those that block a stream (minRTT, BLEST, ECF).

use crate::wire::Outgoing;
use alloc::vec::Vec;
use core::ops::Range;

use super::Session;
use crate::path::{CopyReason, PathView};
use crate::schedule::BlockedRequest;
use crate::stream::SendState;
use crate::time::Instant;
use crate::units::StreamId;

impl Session {
    /// A redundant scheduler's path goes on where it is in each stream: what
    /// others sent and nobody acknowledged yet comes before new bytes.
    pub(super) fn transmit_repeated(
        &mut self,
        now: Instant,
        path: usize,
        views: &[PathView],
        out: &mut Outgoing,
    ) -> bool {
        let Some(subflow) = self.paths[path].subflow.as_ref().map(|s| s.id) else {
            return false;
        };
        if !self.scheduler.is_redundant() {
            return false;
        }
        let frame = self.paths[path].frame();
        let ordinary = |id: &StreamId| *id != StreamId::CONTROL && !self.is_kept_off(path, *id);
        let next = self.busy.in_turn().filter(ordinary).find_map(|id| {
            let send = &self.streams.get(&id)?.send;
            let at = send.carried.get(&subflow).copied().unwrap_or(0);
            let gap = send.unacknowledged(at..send.sent_end())?;
            Some((id, send.class, gap.start..gap.end.min(gap.start + frame)))
        });
        let Some((id, class, range)) = next else { return false };
        // A path that is behind with a large transfer is free for a call all the same (F11).
        if self.transmit_better(now, path, views, class, out) {
            return true;
        }
        self.emit(now, path, &views[path], id, range, Some(CopyReason::Scheduled), out);
        true
    }

    /// Streams that may not send on because a byte is missing: the scheduler
    /// may have it sent again here, and its owner punished.
    pub(super) fn transmit_blocking(
        &mut self,
        now: Instant,
        path: usize,
        views: &[PathView],
        out: &mut Outgoing,
    ) -> bool {
        if !self.scheduler.unblocks() {
            return false;
        }
        let blocked = |id: &StreamId| {
            *id != StreamId::CONTROL && self.is_blocked(*id) && !self.is_kept_off(path, *id)
        };
        let blocked: Vec<StreamId> = self.busy.in_turn().filter(blocked).collect();
        for id in blocked {
            let Some((owner, range)) = self.missing(id, path) else { continue };
            let views = &*self.views_for(views, id);
            let carried = self.carries(path, id, range.start);
            let (window, unsent) = self.what_blocks(id);
            let request =
                BlockedRequest { now, paths: views, path, owner, carried, window, unsent };
            let answer = self.scheduler.unblock(&request);
            if answer.punish {
                self.paths[owner].punish();
            }
            if !answer.resend {
                continue;
            }
            let range = range.start..range.end.min(range.start + self.paths[path].frame());
            self.emit(now, path, &views[path], id, range, Some(CopyReason::Scheduled), out);
            return true;
        }
        false
    }

    /// Whether the stream has come to the receiver's limit, or to what the
    /// sender may hold.
    pub(super) fn is_blocked(&self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get(&id) else { return false };
        let credit = self.credit.send_limit.saturating_sub(self.credit.sent);
        let send = &stream.send;
        match send.windows.unsent().first() {
            Some(first) => first.start >= send.bound(credit),
            None => send.writer_blocked && send.state() == SendState::Open,
        }
    }

    /// Bytes from a stream's first that is not acknowledged to the peer's limits, and bytes that are
    /// written and unsent.
    fn what_blocks(&self, id: StreamId) -> (u64, u64) {
        let credit = self.credit.send_limit.saturating_sub(self.credit.sent);
        self.streams.get(&id).map_or((0, 0), |stream| {
            let send = &stream.send;
            let window = send.allowance(credit).saturating_sub(send.cumulative());
            (window, send.windows.unsent().total())
        })
    }

    /// The lowest bytes of the stream that are missing, and who has them: another path than `asking` if
    /// one does, for a copy of its own says nothing of who blocks.
    fn missing(&self, id: StreamId, asking: usize) -> Option<(usize, Range<u64>)> {
        let send = &self.streams.get(&id)?.send;
        let gap = send.unacknowledged(send.cumulative()..send.sent_end())?;
        let held_by = |owner: usize| {
            let holds = |range: &Range<u64>| range.contains(&gap.start);
            let in_flight = &self.paths.get(owner)?.in_flight;
            let chunk = in_flight.iter().find(|c| c.stream == id && holds(&c.range))?;
            Some((owner, gap.start..gap.end.min(chunk.range.end)))
        };
        let others = (0..self.paths.len()).filter(|owner| *owner != asking);
        others.chain([asking]).find_map(held_by)
    }
}
