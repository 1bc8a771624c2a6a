//! What the user's wishes for paths keep a path from doing (F15).

use alloc::borrow::Cow;

use super::Session;
use crate::config::PathPolicy;
use crate::path::{Health, PathView};
use crate::stats::WhyIdle;
use crate::time::Instant;
use crate::units::{Class, PathId, StreamId};

impl Session {
    /// Has a path that the session knows be used as `policy` says. Both ends are told by the
    /// handshake, each decides for what it sends.
    pub fn set_policy(&mut self, now: Instant, path: PathId, policy: PathPolicy) {
        let Some(path) = self.paths.iter_mut().find(|p| p.id == path) else { return };
        if path.policy == policy {
            return;
        }
        path.set_policy(now, policy);
        self.news += 1;
        self.assign_standby();
    }

    /// Whether the user keeps the class of this stream, or of its messages, off the path. The
    /// session's own words go by all.
    pub(super) fn is_kept_off(&self, path: usize, space: StreamId) -> bool {
        let (never, id) = (self.paths[path].policy.never, space.stream());
        !never.is_empty()
            && id != StreamId::CONTROL
            && self.streams.get(&id).is_some_and(|stream| never.contains(stream.send.class))
    }

    /// The paths as a scheduler sees them for this stream: those that it is kept off are no use.
    pub(super) fn views_for<'a>(
        &self,
        views: &'a [PathView],
        space: StreamId,
    ) -> Cow<'a, [PathView]> {
        if !(0..views.len()).any(|path| self.is_kept_off(path, space)) {
            return Cow::Borrowed(views);
        }
        let seen = |(path, view): (usize, &PathView)| PathView {
            usable: view.usable && !self.is_kept_off(path, space),
            ..*view
        };
        Cow::Owned(views.iter().enumerate().map(seen).collect())
    }

    /// Whether new bytes of a stream may go by this path. Weights divide what can wait; calls and
    /// the session's own words go as they come.
    pub(super) fn may_carry(&self, path: usize, stream: StreamId) -> bool {
        let class = self.streams.get(&stream).map(|stream| stream.send.class);
        let urgent = stream == StreamId::CONTROL || class == Some(Class::Conversational);
        urgent || !self.has_its_share(path)
    }

    /// Whether a path has carried more than its share and waits for another that can take bytes.
    fn has_its_share(&self, path: usize) -> bool {
        let own = &self.paths[path];
        own.policy.weight.is_some()
            && self.rivals(path).any(|rival| {
                own.share.is_ahead_of(self.paths[rival].share) && self.takes_bytes(rival)
            })
    }

    /// The other paths that have a weight and are in use.
    fn rivals(&self, path: usize) -> impl Iterator<Item = usize> + '_ {
        let weighted = move |index: &usize| {
            let rival = &self.paths[*index];
            *index != path && rival.policy.weight.is_some() && rival.is_usable()
        };
        (0..self.paths.len()).filter(weighted)
    }

    /// Whether a path goes on taking bytes. One that the scheduler leaves out must not be waited
    /// for, or nobody would send.
    pub(super) fn takes_bytes(&self, path: usize) -> bool {
        let why = self.why_idle[path].now();
        matches!(why, WhyIdle::Sending | WhyIdle::CommitLimit | WhyIdle::RateCap)
    }

    /// A path was given `bytes` new ones.
    pub(super) fn count_share(&mut self, path: usize, bytes: u64) {
        let Some(weight) = self.paths[path].policy.weight else { return };
        let rivals: alloc::vec::Vec<_> =
            self.rivals(path).map(|rival| self.paths[rival].share).collect();
        self.paths[path].share.give(bytes, weight, rivals.into_iter());
        self.wake_shares(path);
    }

    /// What `path` did may let another go on that waits for its share.
    pub(super) fn wake_shares(&mut self, path: usize) {
        let waits = |index: usize| index != path && self.why_idle[index].now() == WhyIdle::Weight;
        let mut waiting = (0..self.paths.len()).filter(|index| waits(*index));
        if waiting.any(|index| !self.has_its_share(index)) {
            self.news += 1;
        }
    }

    /// Enters why a path sends nothing now.
    pub(super) fn enter(&mut self, now: Instant, path: usize, why: WhyIdle) {
        self.why_idle[path].enter(now, why);
    }

    /// When a path whose cap holds it back may send on, if there is anything to send.
    pub(super) fn cap_opens(&self) -> Option<Instant> {
        let capped = self.paths.iter().filter(|p| p.health == Health::Active && !p.standby);
        capped
            .filter_map(|p| p.opens_at())
            .filter(|at| !self.busy.is_empty() && *at > self.tick)
            .min()
    }
}
