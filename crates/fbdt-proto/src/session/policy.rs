//! What the user's wishes for paths keep a path from doing (F15).

use alloc::borrow::Cow;

use fbdt_units::{Class, Instant, PathId, StreamId};
use fbdt_wire::PathPolicy;

use super::Session;
use crate::path::{Health, PathView};

/// What came of a path's last opportunity to send: rivals with a weight wait for a path that takes
/// bytes (F15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appetite {
    /// It takes bytes, now or when it has room.
    Takes,
    /// It has carried its share and leaves bytes to rivals.
    Leaves,
    /// It takes none.
    Declines,
}

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
    pub(super) fn is_kept_off(&self, path: usize, id: StreamId) -> bool {
        let never = self.paths[path].policy.never;
        !never.is_empty()
            && id != StreamId::CONTROL
            && self.streams.get(&id).is_some_and(|stream| never.contains(stream.send.class))
    }

    /// The paths as a scheduler sees them for this stream: those that it is kept off are no use.
    pub(super) fn views_for<'a>(&self, views: &'a [PathView], id: StreamId) -> Cow<'a, [PathView]> {
        let ordinary = Some(id).filter(|id| *id != StreamId::CONTROL);
        match ordinary.and_then(|id| self.streams.get(&id)) {
            Some(stream) => self.views_of(views, stream.send.class),
            None => Cow::Borrowed(views),
        }
    }

    /// The same for streams of a class.
    pub(super) fn views_of<'a>(&self, views: &'a [PathView], class: Class) -> Cow<'a, [PathView]> {
        let off = |path: usize| self.paths[path].policy.never.contains(class);
        if !(0..views.len()).any(off) {
            return Cow::Borrowed(views);
        }
        let seen = |(path, view): (usize, &PathView)| PathView {
            usable: view.usable && !off(path),
            ..*view
        };
        Cow::Owned(views.iter().enumerate().map(seen).collect())
    }

    /// Whether something waits that is kept off the path.
    pub(super) fn keeps_waiting(&self, path: usize) -> bool {
        let never = self.paths[path].policy.never;
        let speaks = |class| self.talkers(class).any(|(_, out)| out.is_waiting());
        self.busy.any_waiting(never) || never.iter().any(speaks)
    }

    /// Whether what is new of a stream, and its new messages, may go by this path. Weights divide
    /// what can wait; calls and the session's own words go as they come.
    pub(super) fn may_carry(&self, path: usize, stream: StreamId) -> bool {
        let class = self.streams.get(&stream).map_or_else(Class::default, |s| s.send.class);
        let urgent = stream == StreamId::CONTROL || class == Class::Conversational;
        urgent || !self.has_its_share(path, class)
    }

    /// Whether a path has carried more than its share and waits for another that can take bytes,
    /// those of this class too.
    fn has_its_share(&self, path: usize, class: Class) -> bool {
        let own = &self.paths[path];
        let waits_for = |rival: usize| {
            let other = &self.paths[rival];
            own.share.is_ahead_of(other.share)
                && !other.policy.never.contains(class)
                && self.takes_bytes(rival)
        };
        own.policy.weight.is_some() && self.rivals(path).any(waits_for)
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
        self.appetites[path] == Appetite::Takes
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
        let waits = |index: usize| index != path && self.appetites[index] == Appetite::Leaves;
        let goes_on = |index: usize| {
            let kept_off = self.paths[index].policy.never;
            Class::ALL.into_iter().any(|class| {
                !kept_off.contains(class)
                    && self.has_new(class)
                    && !self.has_its_share(index, class)
            })
        };
        if (0..self.paths.len()).any(|index| waits(index) && goes_on(index)) {
            self.news += 1;
        }
    }

    /// Whether new bytes of this class, or a message, can be sent.
    fn has_new(&self, class: Class) -> bool {
        self.busy.is_ready(class) || self.talkers(class).any(|(_, out)| out.may_go())
    }

    /// When a path whose cap holds it back may send on, if there is anything to send.
    pub(super) fn cap_opens(&self) -> Option<Instant> {
        let capped = self.paths.iter().filter(|p| p.health == Health::Active && !p.standby);
        capped
            .filter_map(|p| p.opens_at())
            .filter(|at| *at > self.tick && !(self.busy.is_empty() && self.talking.is_empty()))
            .min()
    }
}
