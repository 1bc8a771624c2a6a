//! MuSher: a fixed ratio of packets on two paths, searched by the rate that it
//! gives (Saha et al., MobiCom 2019; rules as in the authors' public module).

mod search;

use alloc::collections::BTreeMap;
use core::ops::Range;
use core::time::Duration;

use fbdt_proto::{
    Direction, Instant, Needs, PathId, PathView, PlacementRequest, Scheduler, rate_of,
};

use self::search::Search;

/// Segments of one burst.
const BURST: u64 = 100;
/// Time of one sample of the rate, and of one probe of a search.
const SAMPLE: Duration = Duration::from_millis(100);
const PROBE: Duration = Duration::from_millis(200);

/// Of each burst of 100 segments the first path sends `ratio`, then the second the
/// rest, of whichever streams; a new burst begins when both have. While the window of the path
/// whose turn it is is full, neither sends. A path that is suspect or gone
/// gets nothing and the other one everything. More than two paths it doesn't
/// know: the third and later ones idle.
#[derive(Debug, Default)]
pub(crate) struct MuSher {
    /// Bytes of the burst that each of the two paths has sent, of whichever stream.
    sent: [u64; 2],
    search: Search,
    mark: Option<Mark>,
}

/// A sample under way.
#[derive(Debug)]
struct Mark {
    since: Instant,
    /// What each path had acknowledged then.
    acknowledged: BTreeMap<PathId, u64>,
    /// What both together held, summed over the placements since, and how many these were.
    held: (u64, u64),
}

impl Scheduler for MuSher {
    fn name(&self) -> &'static str {
        "musher"
    }

    fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
        let own = request.own()?;
        let mut pair = request.paths.iter().filter(|p| p.usable).take(2);
        let (first, second) = (pair.next()?, pair.next());
        let Some(second) = second else {
            return request.front().filter(|_| first.id == own.id);
        };
        let side = usize::from(own.id == second.id);
        if side == 0 && own.id != first.id {
            return None;
        }
        let quota = self.quota(first.mss);
        let turn = self.turn(quota);
        let front = request.front().filter(|_| side == turn)?;
        let left = quota[side] - self.sent[side];
        let piece = front.start..front.end.min(front.start + left);
        self.sent[side] += piece.end - piece.start;
        self.observe(request.now, [first, second]);
        Some(piece)
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::InOrder
    }

    fn needs(&self) -> Needs {
        Needs { defers: true, looks_ahead: true, repeats: None }
    }

    fn path_failed(&mut self, _path: PathId) {
        self.sent = [0, 0];
        self.mark = None;
        self.search.restart();
    }
}

impl MuSher {
    /// Bytes of a burst for each path.
    const fn quota(&self, mss: u64) -> [u64; 2] {
        let first = self.search.ratio() as u64;
        [first * mss * BURST / 100, (100 - first) * mss * BURST / 100]
    }

    /// Who sends: the path that is amid its quota, else one that has not begun; when both are
    /// done a new burst begins.
    fn turn(&mut self, quota: [u64; 2]) -> usize {
        if (0..2).all(|side| self.sent[side] >= quota[side]) {
            self.sent = [0, 0];
        }
        let unfinished = |side: &usize| self.sent[*side] < quota[*side];
        let amid = |side: &usize| self.sent[*side] > 0 && unfinished(side);
        (0..2).find(amid).or_else(|| (0..2).find(unfinished)).unwrap_or(0)
    }

    /// Samples the rate at which both together deliver and what they hold, the mean over the
    /// placements: what was handed to a path and is not acknowledged is what the module finds in a
    /// subflow's send buffer.
    fn observe(&mut self, now: Instant, pair: [&PathView; 2]) {
        let span = if self.search.is_probing() { PROBE } else { SAMPLE };
        let mark = self.mark.get_or_insert_with(|| Mark::new(now, pair));
        mark.held.0 += pair.iter().map(|p| p.held).sum::<u64>();
        mark.held.1 += 1;
        let time = now.saturating_since(mark.since);
        if time < span {
            return;
        }
        let rate = rate_of(mark.delivered(pair), time);
        let held = mark.held.0 / mark.held.1;
        let slow_start = pair.iter().any(|p| p.window < p.ssthresh);
        self.search.sample(now, rate, held, slow_start);
        self.mark = Some(Mark::new(now, pair));
    }
}

impl Mark {
    fn new(now: Instant, pair: [&PathView; 2]) -> Self {
        let acknowledged = pair.iter().map(|p| (p.id, p.acknowledged)).collect();
        Self { since: now, acknowledged, held: (0, 0) }
    }

    /// Bytes that were acknowledged since.
    fn delivered(&self, pair: [&PathView; 2]) -> u64 {
        // A fresh connection counts from zero.
        let delivered = |p: &&PathView| {
            let earlier = self.acknowledged.get(&p.id).copied().unwrap_or(0);
            p.acknowledged.checked_sub(earlier).unwrap_or(p.acknowledged)
        };
        pair.iter().map(delivered).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, path};
    use alloc::vec;
    use alloc::vec::Vec;
    use fbdt_proto::{RangeSet, StreamId};

    fn fixture() -> Fixture<MuSher> {
        let paths = vec![path(0, 10, 1 << 30), path(1, 30, 1 << 30), path(2, 5, 1 << 30)];
        Fixture::new(MuSher::default(), paths, 1_000_000)
    }

    #[test]
    fn a_burst_of_100_segments_is_split_by_the_ratio() {
        let mut f = fixture();
        f.frame = 40_000;
        // Half of 100 segments of 1000 bytes each.
        assert_eq!(f.send(0), Some(0..40_000));
        assert_eq!(f.send(0), Some(40_000..50_000));
        assert_eq!(f.send(0), None, "its quota is full, whatever room it has");
        assert_eq!(f.send(2), None, "the third path");
        assert_eq!(f.send(1), Some(50_000..90_000));
        assert_eq!(f.send(0), None, "the second path is amid its quota");
        assert_eq!(f.send(1), Some(90_000..100_000));
        assert_eq!(f.send(1), None, "both are done: the next burst begins with the first path");
        assert_eq!(f.send(0), Some(100_000..140_000));
    }

    #[test]
    fn a_path_amid_its_quota_holds_the_other_one_up_while_its_window_is_full() {
        let mut f = fixture();
        f.paths[0].window = 20_000;
        f.paths[0].room = 20_000;
        assert_eq!(f.send(0), Some(0..10_000));
        assert_eq!(f.send(0), Some(10_000..20_000));
        // It has no room and doesn't ask; the other one has a gigabyte and its whole quota.
        assert_eq!(f.paths[0].room, 0);
        assert_eq!(f.send(1), None);
        f.paths[0].held = 0;
        assert_eq!(f.send(1), None);
        for _ in 0..3 {
            assert!(f.send(0).is_some());
        }
        assert_eq!(f.send(1), Some(50_000..60_000), "its quota is full");
    }

    #[test]
    fn the_segments_of_a_burst_are_counted_over_all_streams() {
        let mut f = fixture();
        let mut other = RangeSet::new();
        other.insert(0..1_000_000);
        // One stream after the other asks for a frame of 10 segments.
        let mut turn = |f: &mut Fixture<MuSher>, path| {
            core::mem::swap(&mut f.unsent, &mut other);
            f.stream = StreamId(3 - f.stream.0);
            f.send(path).map(|range| range.end - range.start)
        };
        let first: Vec<_> = (0..7).map(|_| turn(&mut f, 0)).collect();
        assert_eq!(first[..5], [Some(10_000); 5], "half of 100 segments");
        assert_eq!(first[5..], [None; 2], "whichever stream asks");
        let second: Vec<_> = (0..5).map(|_| turn(&mut f, 1)).collect();
        assert_eq!(second, [Some(10_000); 5]);
        assert_eq!(turn(&mut f, 0), Some(10_000), "both have sent theirs: the next burst");
    }

    #[test]
    fn a_blocked_path_gets_nothing_and_the_other_all() {
        let mut f = fixture();
        f.paths.truncate(2);
        f.frame = 40_000;
        for _ in 0..2 {
            f.send(0);
        }
        assert_eq!(f.send(0), None);
        f.paths[1].usable = false;
        f.scheduler.path_failed(PathId(1));
        assert_eq!(f.send(0), Some(50_000..90_000));
        assert_eq!(f.send(0), Some(90_000..130_000));
    }

    #[test]
    fn the_rate_of_both_together_is_sampled_every_100_ms() {
        let mut f = fixture();
        f.send(0);
        for (ms, expected) in [(99, 0), (100, 1), (150, 1), (200, 2)] {
            f.now = Instant::ZERO + Duration::from_millis(ms);
            f.paths[0].acknowledged = ms * 1000;
            f.paths[1].acknowledged = ms * 2000;
            assert!(f.send(0).is_some());
            assert_eq!(f.scheduler.search.samples(), expected, "{ms}");
        }
        assert!((f.scheduler.search.last() - 3e6).abs() < 1.0);
    }

    /// A sample at a steady rate, of two placements; `held` of both paths is their mean.
    fn sample(f: &mut Fixture<MuSher>, held: u64) {
        for held in [held - 50_000, held + 50_000] {
            f.now = f.now + Duration::from_millis(50);
            for path in 0..2 {
                f.paths[path].acknowledged += 1_000_000;
                f.paths[path].held = held / 2;
            }
            assert!(f.send(0).or_else(|| f.send(1)).is_some());
        }
    }

    #[test]
    fn sockets_that_drain_beside_a_steady_rate_begin_a_search() {
        let fallen = |fall: u64| {
            let mut f = Fixture::new(MuSher::default(), fixture().paths, 1 << 40);
            f.paths.truncate(2);
            (0..40).for_each(|_| sample(&mut f, 1_000_000));
            assert!(!f.scheduler.search.is_probing(), "the first search is over");
            // One sample may have a placement of before and one of these.
            (0..6).for_each(|_| sample(&mut f, 1_000_000 - fall));
            f.scheduler.search.is_probing()
        };
        assert!(!fallen(74_998));
        assert!(fallen(75_002));
    }
}
