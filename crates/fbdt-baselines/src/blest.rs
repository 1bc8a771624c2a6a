//! BLEST: a slow path gets nothing if the window would be full of its bytes
//! before the fast path could use it (Ferlin et al., IFIP Networking 2016;
//! arithmetic as in the public kernel).

use alloc::collections::BTreeMap;
use core::ops::Range;
use core::time::Duration;

use fbdt_proto::{
    Direction, Instant, Needs, PathId, PathView, PlacementRequest, Repeat, RepeatRequest, Scheduler,
};

use crate::blockers::{BLOCKERS, Blocked, Blockers, Unblocking, answer, fastest_and_slower};
use crate::min_rtt::{fastest, picked, room_before};

/// Lambda at the start and its range, in thousandths.
const LAMBDA: (u64, u64, u64) = (1200, 1000, 1300);
/// Raised by this after a picked path met a full window, else lowered.
const STEP: (u64, u64) = (40, 10);
/// Rounds of slow start that are looked ahead at most.
const SLOW_START_ROUNDS: u64 = 16;

/// As minRTT; but a slower path than the fastest gets bytes only if the send
/// window, less what that path holds, has room for all that the fastest can
/// send until they are acknowledged, times lambda.
#[derive(Debug)]
pub(crate) struct Blest {
    /// Smallest and largest smoothed RTT of each path.
    rtts: BTreeMap<PathId, (Duration, Duration)>,
    lambda: u64,
    updated: Instant,
    was_blocked: bool,
    blockers: Blockers,
}

impl Default for Blest {
    fn default() -> Self {
        Self {
            rtts: BTreeMap::new(),
            lambda: LAMBDA.0,
            updated: Instant::ZERO,
            was_blocked: false,
            blockers: Blockers::default(),
        }
    }
}

impl Scheduler for Blest {
    fn name(&self) -> &'static str {
        "blest"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        self.note_rtts(request.paths);
        let piece = request.beyond(room_before(request.paths, request.path))?;
        let fast = fastest(request.paths)?;
        if fast != request.path {
            let (own, fast) = (request.own()?, request.paths.get(fast)?);
            self.update_lambda(request.now, own);
            let window = request.limit.saturating_sub(request.acked);
            if self.should_wait(fast, own, window, piece.end - piece.start) {
                return None;
            }
        }
        Some(piece)
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::InOrder
    }

    fn path_failed(&mut self, path: PathId) {
        self.rtts.remove(&path);
    }

    fn needs(&self) -> Needs {
        BLOCKERS
    }

    fn repeat(&mut self, request: &RepeatRequest<'_>) -> Repeat {
        answer(request, |blocked| self.unblock(blocked))
    }
}

impl Blest {
    fn unblock(&mut self, blocked: &Blocked<'_>) -> Unblocking {
        if !picked(blocked.paths, blocked.path) || self.would_wait(blocked) {
            return Unblocking::default();
        }
        // Whether or not that leads to a copy.
        self.was_blocked = true;
        self.blockers.handle(blocked)
    }

    fn note_rtts(&mut self, paths: &[PathView]) {
        for path in paths.iter().filter(|p| p.usable) {
            let (low, high) = self.rtts.entry(path.id).or_insert((path.srtt, path.srtt));
            *low = (*low).min(path.srtt);
            *high = (*high).max(path.srtt);
        }
    }

    fn rtt_range(&self, path: &PathView) -> (Duration, Duration) {
        self.rtts.get(&path.id).copied().unwrap_or((path.srtt, path.srtt))
    }

    /// Whether `slow` is left waiting instead of being given `piece` bytes within the send window.
    fn should_wait(&self, fast: &PathView, slow: &PathView, window: u64, piece: u64) -> bool {
        let wanted = self.bytes_sent(fast, self.linger(slow));
        wanted > window.saturating_sub(slow.held + piece)
    }

    /// The module asks its own rule before it looks at the full window: a slow path that is left
    /// waiting meets none.
    fn would_wait(&mut self, blocked: &Blocked<'_>) -> bool {
        self.note_rtts(blocked.paths);
        let Some((fast, own)) = fastest_and_slower(blocked) else { return false };
        self.update_lambda(blocked.now, own);
        self.should_wait(fast, own, blocked.window, own.mss)
    }

    /// At most once per smallest RTT of the slow path.
    fn update_lambda(&mut self, now: Instant, slow: &PathView) {
        if now.saturating_since(self.updated) < self.rtt_range(slow).0 {
            return;
        }
        let next = if self.was_blocked {
            self.lambda + STEP.0
        } else {
            self.lambda.saturating_sub(STEP.1)
        };
        self.lambda = next.clamp(LAMBDA.1, LAMBDA.2);
        self.was_blocked = false;
        self.updated = now;
    }

    /// How long a segment given to `slow` now keeps its place in the window:
    /// between its smallest and largest RTT by how full its own window is.
    fn linger(&self, slow: &PathView) -> Duration {
        let (low, high) = self.rtt_range(slow);
        let window = (slow.window / slow.mss).max(1);
        let held = slow.held / slow.mss + 1;
        let estimate = if held >= window {
            high
        } else {
            #[allow(clippy::cast_precision_loss)]
            let share = held as f64 / window as f64;
            low + (high - low).mul_f64(share)
        };
        estimate.max(slow.srtt)
    }

    /// Bytes that `fast` sends in `time`, times lambda: the window doubles
    /// each round in the first slow start, else grows by a segment.
    fn bytes_sent(&self, fast: &PathView, time: Duration) -> u64 {
        let (low, high) = self.rtt_range(fast);
        let round = ((low + high) / 2).max(Duration::from_micros(1));
        let rounds = u64::try_from(time.as_micros() / round.as_micros()).unwrap_or(u64::MAX - 1);
        let rounds = (rounds + 1).min(1 << 20);
        let window = fast.window / fast.mss;
        let segments = if fast.ssthresh == u64::MAX {
            window * ((1 << rounds.min(SLOW_START_ROUNDS)) - 1)
        } else {
            let window = window.max(fast.ssthresh / fast.mss + 1);
            (window + (rounds - 1) / 2) * rounds
        };
        segments.saturating_mul(fast.mss).saturating_mul(self.lambda) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, path};
    use alloc::vec;

    /// 10 ms with 20 segments, full; 40 ms with 50.
    fn fixture() -> Fixture<Blest> {
        let mut fast = path(0, 10, 20_000);
        (fast.held, fast.room, fast.ssthresh) = (20_000, 0, 10_000);
        let mut f = Fixture::new(Blest::default(), vec![fast, path(1, 40, 50_000)], 1_000_000);
        f.frame = 1000;
        f
    }

    #[test]
    fn the_slow_path_waits_where_it_would_block_the_fast_one() {
        // In 40 ms the fast path makes 5 rounds of 20 + (5 - 1)/2 segments:
        // 110 000 bytes, times 1.2 is 132 000; 1000 go to the slow path.
        let mut f = fixture();
        f.limit = 132_999;
        assert_eq!(f.ask(1), None);
        f.limit = 133_000;
        assert_eq!(f.ask(1), Some(0..1000));
        f.paths[1].held = 1000;
        assert_eq!(f.ask(1), None, "what it holds keeps its place");
        f.paths[0].room = 1000;
        f.limit = 1000;
        assert_eq!(f.ask(0), None, "nothing within the limit");
        f.limit = 2000;
        assert_eq!(f.ask(0), Some(1000..2000), "the fastest never waits");
    }

    #[test]
    fn in_slow_start_the_fast_path_doubles() {
        let mut f = fixture();
        f.paths[0].ssthresh = u64::MAX;
        // 20 x (2^5 - 1) = 620 segments, times 1.2 is 744 000.
        f.limit = 744_999;
        assert_eq!(f.ask(1), None);
        f.limit = 745_000;
        assert_eq!(f.ask(1), Some(0..1000));
    }

    #[test]
    fn a_segment_lingers_longer_in_a_full_window() {
        let mut f = fixture();
        f.scheduler.rtts.insert(PathId(1), (Duration::from_millis(40), Duration::from_millis(90)));
        let linger = |f: &Fixture<Blest>| f.scheduler.linger(&f.paths[1]).as_millis();
        assert_eq!(linger(&f), 41, "1 of 50 segments");
        f.paths[1].held = 24_000;
        assert_eq!(linger(&f), 65, "half");
        f.paths[1].held = 49_000;
        assert_eq!(linger(&f), 90);
    }

    /// Lambda after the slow path asked at this time.
    fn lambda_at(f: &mut Fixture<Blest>, ms: u64) -> u64 {
        f.now = Instant::ZERO + Duration::from_millis(ms);
        f.ask(1);
        f.scheduler.lambda
    }

    /// The fast path meets a window that a byte of the slow one keeps full.
    fn blocked(f: &mut Fixture<Blest>, carried: bool) -> Unblocking {
        meets_full_window(f, 0, carried)
    }

    /// A path meets a window that a byte of the other one keeps full.
    fn meets_full_window(f: &mut Fixture<Blest>, path: usize, carried: bool) -> Unblocking {
        let (now, paths, window) = (f.now, &f.paths, f.limit);
        let owner = 1 - path;
        let blocked = Blocked { now, paths, path, owner, carried, window, unsent: 0 };
        f.scheduler.unblock(&blocked)
    }

    #[test]
    fn lambda_rises_after_a_full_window_was_met_and_falls_without_once_per_rtt() {
        let mut f = fixture();
        f.paths[1].srtt = Duration::from_millis(41);
        assert_eq!([40, 41, 81, 82].map(|ms| lambda_at(&mut f, ms)), [1200, 1190, 1190, 1180]);
        assert_eq!(
            blocked(&mut f, false),
            Unblocking { resend: true, punish: true },
            "4 x 10 < 41"
        );
        assert_eq!([123, 164].map(|ms| lambda_at(&mut f, ms)), [1220, 1210]);
        for round in 5..100 {
            lambda_at(&mut f, round * 41);
        }
        assert_eq!(lambda_at(&mut f, 4100), 1000);
    }

    #[test]
    fn a_full_window_raises_lambda_even_if_it_makes_no_copy() {
        let mut f = fixture();
        assert_eq!(lambda_at(&mut f, 40), 1190);
        assert_eq!(
            blocked(&mut f, false),
            Unblocking { resend: false, punish: true },
            "4 x 10 = 40"
        );
        assert_eq!(lambda_at(&mut f, 80), 1230);
        f.paths[1].srtt = Duration::from_millis(50);
        assert!(!blocked(&mut f, true).resend, "the fast path sent it before");
        assert_eq!(lambda_at(&mut f, 120), 1270);
        f.paths[0].room = 20_000;
        meets_full_window(&mut f, 1, false);
        assert_eq!(lambda_at(&mut f, 170), 1260, "the slow path was not the pick");
    }

    #[test]
    fn lambda_is_at_most_1_3() {
        let mut f = fixture();
        let risen = [40, 80, 120, 160].map(|ms| {
            blocked(&mut f, false);
            lambda_at(&mut f, ms)
        });
        assert_eq!(risen, [1240, 1280, 1300, 1300]);
    }

    #[test]
    fn a_slow_path_that_is_left_waiting_meets_no_full_window() {
        let meets = |limit| {
            let mut f = fixture();
            // Four segments: what the fast path holds may be stuck, and would be sent again.
            f.paths[0].window = 4000;
            f.limit = limit;
            let answer = meets_full_window(&mut f, 1, false);
            (answer.resend, f.scheduler.was_blocked)
        };
        // From a threshold of ten on: 5 rounds of 11 + (5 - 1)/2 segments, times 1.2 are 78 000.
        assert_eq!(meets(78_999), (false, false));
        assert_eq!(meets(79_000), (true, true));
    }
}
