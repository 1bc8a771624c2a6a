//! Second copies of what other paths owe (F6, F9, F10).

use crate::wire::Outgoing;
use core::ops::Range;
use core::time::Duration;

use super::Session;
use crate::config::Redundancy;
use crate::path::{Chunk, CopyReason, Health, PathView};
use crate::schedule::redundancy::{copy_wins, is_overdue, waited_an_rtt};
use crate::stream::SendState;
use crate::time::Instant;
use crate::units::{Class, StreamId, bytes_in};

/// A short flow: at most this much is on its way and all of it was sent.
pub(super) const SHORT_FLOW: u64 = 64 << 10;
/// After none were found, overdue bytes are looked for again this much later.
const OVERDUE_PAUSE: Duration = Duration::from_micros(500);
/// Overdue bytes this far above the hole are copied with it.
const OVERDUE_BATCH: Duration = Duration::from_millis(100);
/// A second radio that is this much later does not help a short flow.
const CROSSING_SLACK: Duration = Duration::from_millis(10);

/// A chunk that may be copied: whose, which, and its first open part.
struct Candidate {
    owner: usize,
    chunk: usize,
    stream: StreamId,
    gap: Range<u64>,
    /// The most urgent is the least: class, then distance from delivery.
    urgency: (bool, Class, u64),
}

impl Session {
    /// Sends a copy on `path` for this reason, if there is one to send.
    pub(super) fn transmit_copy(
        &mut self,
        now: Instant,
        path: usize,
        views: &[PathView],
        reason: CopyReason,
        out: &mut Outgoing,
    ) -> bool {
        if !self.may_copy(now, reason) {
            return false;
        }
        let Some(found) = self.find_copy(now, path, views, reason) else {
            if reason == CopyReason::Overdue {
                self.last_overdue_check = now;
            }
            return false;
        };
        let frame = self.paths[path].frame();
        let range = found.gap.start..found.gap.end.min(found.gap.start + frame);
        if let Some(chunk) = self.paths[found.owner].in_flight.iter_mut().nth(found.chunk) {
            chunk.copied = range.end;
        }
        self.emit(now, path, &views[path], found.stream, range, Some(reason), out);
        true
    }

    fn may_copy(&self, now: Instant, reason: CopyReason) -> bool {
        if self.paths.len() < 2 {
            return false;
        }
        match reason {
            CopyReason::Lost | CopyReason::Scheduled => false,
            CopyReason::Suspect => {
                self.paths.iter().any(|p| p.health == Health::Suspect && !p.in_flight.is_empty())
            }
            CopyReason::Overdue => {
                let pause = now.saturating_since(self.last_overdue_check) < OVERDUE_PAUSE;
                self.config.redundancy == Redundancy::ExpectedArrival
                    && !pause
                    && self.in_budget(self.totals.copied[CopyReason::Overdue as usize])
            }
            CopyReason::Idle => !self.busy.is_empty(),
        }
    }

    /// Whether `spent` bytes of copies leave room for more (F6).
    #[allow(clippy::cast_precision_loss)]
    fn in_budget(&self, spent: u64) -> bool {
        let budget = self.config.overdue_budget * self.totals.new_bytes as f64
            + self.config.overdue_allowance as f64;
        (spent as f64) < budget
    }

    /// The most urgent chunk of another path that `path` should copy.
    fn find_copy(
        &self,
        now: Instant,
        path: usize,
        views: &[PathView],
        reason: CopyReason,
    ) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        for (owner, state) in self.paths.iter().enumerate() {
            let suspect = state.health == Health::Suspect;
            let off = self.config.redundancy == Redundancy::Off;
            if owner == path || (reason == CopyReason::Suspect) != suspect {
                continue;
            }
            for (index, chunk) in state.in_flight.iter().enumerate() {
                // The sessions' own words must get through in every mode: a
                // redial that waits behind what it should replace helps nobody.
                if off && chunk.stream != StreamId::CONTROL {
                    continue;
                }
                if reason == CopyReason::Overdue && !is_overdue(now, chunk, &views[owner]) {
                    break;
                }
                let Some(candidate) = self.candidate(owner, index, chunk) else {
                    continue;
                };
                if best.as_ref().is_some_and(|b| b.urgency <= candidate.urgency)
                    || !self.should_copy(now, path, views, reason, chunk, &candidate)
                {
                    continue;
                }
                best = Some(candidate);
            }
        }
        best
    }

    fn candidate(&self, owner: usize, index: usize, chunk: &Chunk) -> Option<Candidate> {
        if chunk.copied >= chunk.range.end {
            return None;
        }
        let send = &self.streams.get(&chunk.stream)?.send;
        let gap = send.unacknowledged(chunk.copied.max(chunk.range.start)..chunk.range.end)?;
        let control = chunk.stream == StreamId::CONTROL;
        let urgency = (!control, send.class, gap.start - send.cumulative());
        Some(Candidate { owner, chunk: index, stream: chunk.stream, gap, urgency })
    }

    fn should_copy(
        &self,
        now: Instant,
        path: usize,
        views: &[PathView],
        reason: CopyReason,
        chunk: &Chunk,
        candidate: &Candidate,
    ) -> bool {
        let (owner, helper) = (&views[candidate.owner], &views[path]);
        let wanted = match reason {
            CopyReason::Lost | CopyReason::Scheduled => false,
            CopyReason::Suspect => true,
            CopyReason::Overdue => {
                candidate.urgency.2 <= bytes_in(helper.rate, OVERDUE_BATCH)
                    && copy_wins(&self.config, now, chunk, owner, helper)
            }
            CopyReason::Idle => self.idle_copy(now, path, chunk, owner, helper),
        };
        wanted && !self.carries(path, candidate.stream, candidate.gap.start)
    }

    /// A path without new bytes copies what its copy would win, all of a
    /// short flow (F10), or as the paper says (R10).
    fn idle_copy(
        &self,
        now: Instant,
        path: usize,
        chunk: &Chunk,
        owner: &PathView,
        helper: &PathView,
    ) -> bool {
        let state = &self.paths[path];
        match self.config.redundancy {
            Redundancy::Suspect | Redundancy::Off => false,
            Redundancy::RttWait => {
                let idle = state.idle_since.unwrap_or(now);
                state.in_flight.is_empty() && waited_an_rtt(now, idle, owner)
            }
            Redundancy::ExpectedArrival => {
                let Some(stream) = self.streams.get(&chunk.stream) else { return false };
                let crossing = stream.send.is_short_tail(SHORT_FLOW)
                    && state.outstanding() <= SHORT_FLOW
                    && helper.arrival <= owner.arrival * 2 + CROSSING_SLACK;
                // A writer that only pauses is no reason to send all twice, and
                // neither is an end while other streams have bytes to send.
                let tail = stream.send.state() == SendState::Finished && !self.busy.any_unsent();
                let last = tail || self.in_budget(self.totals.copied[CopyReason::Idle as usize]);
                crossing || (last && copy_wins(&self.config, now, chunk, owner, helper))
            }
        }
    }

    /// Whether `path` has this byte on its own way already.
    pub(super) fn carries(&self, path: usize, id: StreamId, byte: u64) -> bool {
        self.paths[path].in_flight.iter().any(|own| own.stream == id && own.range.contains(&byte))
    }
}
