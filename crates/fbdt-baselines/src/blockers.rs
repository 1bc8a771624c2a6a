//! Opportunistic retransmission and penalisation, as minRTT, BLEST and ECF do it.

use alloc::collections::BTreeMap;

use fbdt_proto::{Instant, Needs, PathId, PathView, Repeat, RepeatRequest, Repeats};

use crate::min_rtt::{fastest, picked};

/// A missing byte is sent again if its owner's RTT is more than this many
/// times that of the path which waits ...
const RESEND_RATIO: u32 = 4;
/// ... or its owner's congestion window is down to this many segments.
const SMALL_WINDOW: u64 = 4;

/// Needs of minRTT, BLEST and ECF, which resend blocking bytes.
pub(super) const BLOCKERS: Needs =
    Needs { defers: true, looks_ahead: true, repeats: Some(Repeats::AfterNew) };

/// Nothing new of a stream may be sent because a byte is missing that another path holds up (MPTCP:
/// the receive or send buffer is full).
#[derive(Debug)]
pub(super) struct Blocked<'a> {
    /// Now.
    pub(super) now: Instant,
    /// All paths.
    pub(super) paths: &'a [PathView],
    /// The asking path: it has room, and the scheduler placed no new bytes on it.
    pub(super) path: usize,
    /// The path that holds the missing byte.
    pub(super) owner: usize,
    /// Whether the asking path has sent the missing byte too and has no acknowledgement of it.
    pub(super) carried: bool,
    /// Bytes from the first that is not acknowledged to the peer's limits.
    pub(super) window: u64,
    /// Bytes that are written and unsent.
    pub(super) unsent: u64,
}

/// A scheduler's reaction to blocking bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unblocking {
    /// The asking path sends the missing bytes too.
    pub(super) resend: bool,
    /// The owner's window is halved.
    pub(super) punish: bool,
}

/// Has `unblock` decide about the stream's lowest missing bytes, if they block it. Their owner is
/// another path than the asking one if one has sent them: a copy of its own does not tell who blocks.
pub(super) fn answer(
    request: &RepeatRequest<'_>,
    unblock: impl FnOnce(&Blocked<'_>) -> Unblocking,
) -> Repeat {
    if !request.blocked {
        return Repeat::default();
    }
    let RepeatRequest { now, paths, path, under_way, window, unsent, .. } = *request;
    let Some(missing) = under_way.unacknowledged(request.acked..under_way.sent_end()) else {
        return Repeat::default();
    };
    let holds = |owner: usize| Some((owner, under_way.sent_by(owner, missing.start)?));
    let mut others = (0..paths.len()).filter(|owner| *owner != path);
    let Some((owner, sent)) = others.find_map(holds).or_else(|| holds(path)) else {
        return Repeat::default();
    };
    let carried = under_way.sent_by(path, missing.start).is_some();
    let answer = unblock(&Blocked { now, paths, path, owner, carried, window, unsent });
    Repeat {
        range: answer.resend.then(|| missing.start..missing.end.min(sent.end)),
        punish: answer.punish.then_some(owner),
    }
}

/// The fastest path and the one that meets a full window, if that is another: who may leave it
/// waiting asks that first.
#[must_use]
pub(super) fn fastest_and_slower<'a>(
    blocked: &Blocked<'a>,
) -> Option<(&'a PathView, &'a PathView)> {
    let fast = fastest(blocked.paths).filter(|fast| *fast != blocked.path)?;
    Some((blocked.paths.get(fast)?, blocked.paths.get(blocked.path)?))
}

/// Decides whom to punish, and what to send again.
#[derive(Debug, Default)]
pub(super) struct Blockers {
    /// When each path last had another one punished.
    punished: BTreeMap<PathId, Instant>,
}

impl Blockers {
    pub(super) fn handle(&mut self, blocked: &Blocked<'_>) -> Unblocking {
        let paths = blocked.paths;
        let (Some(own), Some(owner)) = (paths.get(blocked.path), paths.get(blocked.owner)) else {
            return Unblocking::default();
        };
        if blocked.path == blocked.owner || !picked(paths, blocked.path) {
            return Unblocking::default();
        }
        let last = self.punished.get(&own.id);
        let lately = last.is_some_and(|at| blocked.now.saturating_since(*at) < own.srtt);
        let punish = !lately && own.srtt < owner.srtt;
        if punish {
            self.punished.insert(own.id, blocked.now);
        }
        let slow = owner.window <= SMALL_WINDOW * owner.mss
            || own.srtt * RESEND_RATIO < owner.srtt
            || !owner.usable;
        let resend = slow && !blocked.carried;
        Unblocking { resend, punish }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;
    use alloc::vec;
    use core::time::Duration;

    #[test]
    fn a_blocking_byte_is_sent_again_and_its_owner_punished_once_per_rtt() {
        let paths = vec![path(0, 41, 50_000), path(1, 10, 20_000)];
        let mut blockers = Blockers::default();
        let mut unblock = |ms: u64, path, owner| {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let (paths, carried, window, unsent) = (&paths, false, 0, 0);
            blockers.handle(&Blocked { now, paths, path, owner, carried, window, unsent })
        };
        let both = Unblocking { resend: true, punish: true };
        assert_eq!(unblock(0, 1, 0), both);
        assert_eq!(unblock(9, 1, 0), Unblocking { resend: true, punish: false });
        assert_eq!(unblock(10, 1, 0), both, "an RTT of the fast path later");
        assert_eq!(unblock(99, 0, 1), Unblocking::default(), "not from fast to slow");
    }

    #[test]
    fn a_blocker_less_than_four_times_slower_is_only_punished() {
        let mut paths = vec![path(0, 40, 50_000), path(1, 10, 20_000)];
        let ask = |paths: &[PathView], carried| {
            let (now, path, owner, window, unsent) = (Instant::ZERO, 1, 0, 0, 0);
            let blocked = Blocked { now, paths, path, owner, carried, window, unsent };
            Blockers::default().handle(&blocked)
        };
        let unblock = |paths: &[PathView]| ask(paths, false);
        assert_eq!(unblock(&paths), Unblocking { resend: false, punish: true });
        paths[0].window = 4000;
        assert!(unblock(&paths).resend, "four segments: it may be stuck");
        assert!(!ask(&paths, true).resend, "it was sent again already");
        paths[1].room = 0;
        assert!(unblock(&paths).resend, "who asks has room");
        paths[0].srtt = paths[1].srtt;
        assert!(!unblock(&paths).punish, "not slower");
    }
}
