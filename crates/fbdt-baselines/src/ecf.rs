//! ECF: a slow path gets nothing if waiting for the fast one is done earlier
//! (Lim et al., CoNEXT 2017; inequalities as in the public kernel).

use core::ops::Range;

use fbdt_proto::{
    Direction, Needs, PathId, PathView, PlacementRequest, Repeat, RepeatRequest, Scheduler,
};

use crate::blockers::{BLOCKERS, Blocked, Blockers, Unblocking, answer, fastest_and_slower};
use crate::min_rtt::{fastest, picked, room_before};

/// Beta: a path that waits goes on waiting a quarter longer.
const HYSTERESIS: f64 = 0.25;

/// As minRTT; but a slower path than the fastest waits where that one sends
/// what is left, and one window more, before a segment of the slow path
/// could be acknowledged, unless the slow path would be done within two of
/// the fast path's RTTs.
#[derive(Debug, Default)]
pub(crate) struct Ecf {
    waiting: bool,
    blockers: Blockers,
}

impl Scheduler for Ecf {
    fn name(&self) -> &'static str {
        "ecf"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        let spared = room_before(request.paths, request.path);
        let piece = request.beyond(spared)?;
        let fast = fastest(request.paths)?;
        if fast != request.path {
            let left = request.unsent.total().saturating_sub(spared);
            if self.should_wait(request.paths.get(fast)?, request.own()?, left) {
                return None;
            }
        }
        Some(piece)
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::InOrder
    }

    fn needs(&self) -> Needs {
        BLOCKERS
    }

    fn repeat(&mut self, request: &RepeatRequest<'_>) -> Repeat {
        answer(request, |blocked| self.unblock(blocked))
    }
}

impl Ecf {
    fn unblock(&mut self, blocked: &Blocked<'_>) -> Unblocking {
        if !picked(blocked.paths, blocked.path) || self.would_wait(blocked) {
            return Unblocking::default();
        }
        self.blockers.handle(blocked)
    }

    /// The module asks its own rule before it looks at the full window: a slow path that is left
    /// waiting sends nothing again.
    fn would_wait(&mut self, blocked: &Blocked<'_>) -> bool {
        fastest_and_slower(blocked)
            .is_some_and(|(fast, slow)| self.should_wait(fast, slow, blocked.unsent))
    }

    #[allow(clippy::cast_precision_loss)]
    fn should_wait(&mut self, fast: &PathView, slow: &PathView, left: u64) -> bool {
        let seconds = |time: core::time::Duration| time.as_secs_f64();
        let margin = seconds(fast.rttvar.max(slow.rttvar));
        let (rtt_f, rtt_s) = (seconds(fast.srtt), seconds(slow.srtt));
        let (window_f, window_s) = (fast.window.max(1) as f64, slow.window.max(1) as f64);
        let left = left as f64;
        let by_fast = rtt_f * (left.max(window_f) + window_f);
        let patience = 1.0 + HYSTERESIS * f64::from(u8::from(self.waiting));
        if by_fast >= window_f * (rtt_s + margin) * patience {
            self.waiting = false;
            return false;
        }
        if rtt_s * left.max(window_s) >= window_s * (2.0 * rtt_f + margin) {
            self.waiting = true;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, path};
    use alloc::vec;
    use core::time::Duration;

    /// 10 ms with 20 kB, full; 100 ms with 50 kB.
    fn fixture(left: u64) -> Fixture<Ecf> {
        let mut fast = path(0, 10, 20_000);
        (fast.held, fast.room) = (20_000, 0);
        let mut f = Fixture::new(Ecf::default(), vec![fast, path(1, 100, 50_000)], left);
        f.frame = 1000;
        f
    }

    #[test]
    fn the_slow_path_waits_where_the_fast_one_is_done_earlier() {
        // (k + 20 kB) / 20 kB x 10 ms < 100 ms up to k = 180 kB.
        assert_eq!(fixture(179_999).ask(1), None);
        assert_eq!(fixture(180_000).ask(1), Some(0..1000));
        assert_eq!(fixture(1000).ask(1), None, "less than a window counts as one");
        let mut f = fixture(1000);
        f.paths[0].room = 1000;
        assert_eq!(f.ask(0), Some(0..1000), "the fastest never waits");
    }

    #[test]
    fn who_waits_goes_on_waiting_a_quarter_longer() {
        let mut f = fixture(100_000);
        assert_eq!(f.ask(1), None);
        // Now up to 125 ms: k = 230 kB.
        f.unsent.insert(100_000..229_999);
        assert_eq!(f.ask(1), None);
        f.unsent.insert(229_999..230_000);
        assert_eq!(f.ask(1), Some(0..1000));
        f.unsent.remove(1000..1001);
        f.unsent.remove(200_000..230_000);
        assert_eq!(f.ask(1), Some(1001..2001), "waiting is over: 199 kB is above 180 kB");
    }

    #[test]
    fn a_slow_path_done_within_two_fast_rtts_is_used() {
        let mut f = fixture(10_000);
        f.paths[1].srtt = Duration::from_millis(21);
        // Fast: 2 x 10 ms < 21 ms. Slow: 21 ms >= 2 x 10 ms: wait.
        assert_eq!(f.ask(1), None);
        // With a margin of 2 ms: 20 < 23, but 21 < 22: use it.
        f.paths[0].rttvar = Duration::from_millis(2);
        assert_eq!(f.ask(1), Some(0..1000));
    }

    #[test]
    fn a_slow_path_that_is_left_waiting_sends_nothing_again() {
        let resends = |unsent| {
            let mut f = fixture(0);
            // Four segments: what the fast path holds may be stuck.
            f.paths[0].window = 4000;
            let (now, paths) = (f.now, &f.paths);
            let (path, owner, carried, window) = (1, 0, false, 0);
            let blocked = Blocked { now, paths, path, owner, carried, window, unsent };
            f.scheduler.unblock(&blocked).resend
        };
        // (k + 4 kB) / 4 kB x 10 ms < 100 ms up to k = 36 kB.
        assert!(!resends(35_999));
        assert!(resends(36_000));
    }
}
