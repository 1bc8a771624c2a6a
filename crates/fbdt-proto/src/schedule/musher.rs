//! MuSher: a fixed ratio of packets on two paths, searched by the rate that it
//! gives (Saha et al., MobiCom 2019; rules as in the authors' public module).

mod search;

use alloc::collections::BTreeMap;
use core::ops::Range;
use core::time::Duration;

use self::search::Search;
use super::{PlacementRequest, Scheduler};
use crate::path::PathView;
use crate::time::Instant;
use crate::units::{Direction, PathId, rate_of};

/// Segments of one burst.
const BURST: u64 = 100;
/// Time of one sample of the rate, and of one probe of a search.
const SAMPLE: Duration = Duration::from_millis(100);
const PROBE: Duration = Duration::from_millis(200);

/// Of each burst of 100 segments the first path sends `ratio`, the second the
/// rest, of whichever streams; a new burst begins when both have. A path that is suspect or gone
/// gets nothing and the other one everything. More than two paths it doesn't
/// know: the third and later ones idle.
#[derive(Debug, Default)]
pub struct MuSher {
    /// Bytes of the burst that each of the two paths has sent, of whichever stream.
    sent: [u64; 2],
    search: Search,
    /// Begin of the sample and what each path had acknowledged then.
    mark: Option<(Instant, BTreeMap<PathId, u64>)>,
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
        self.observe(request.now, [first, second], request.backlog);
        let quota = self.quota(first.mss);
        if self.sent[0] >= quota[0] && self.sent[1] >= quota[1] {
            self.sent = [0, 0];
        }
        let left = quota[side].saturating_sub(self.sent[side]);
        let front = request.front().filter(|_| left > 0)?;
        let piece = front.start..front.end.min(front.start + left);
        self.sent[side] += piece.end - piece.start;
        Some(piece)
    }

    fn direction(&self, _path: PathId) -> Direction {
        Direction::InOrder
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

    /// Samples the rate at which both together deliver.
    fn observe(&mut self, now: Instant, pair: [&PathView; 2], backlog: u64) {
        let span = if self.search.is_probing() { PROBE } else { SAMPLE };
        let read = || pair.iter().map(|p| (p.id, p.acknowledged)).collect();
        let Some((since, before)) = &self.mark else {
            self.mark = Some((now, read()));
            return;
        };
        let time = now.saturating_since(*since);
        if time < span {
            return;
        }
        // A fresh connection counts from zero.
        let delivered = |p: &&&PathView| {
            let earlier = before.get(&p.id).copied().unwrap_or(0);
            p.acknowledged.checked_sub(earlier).unwrap_or(p.acknowledged)
        };
        let bytes: u64 = pair.iter().map(|p| delivered(&p)).sum();
        let slow_start = pair.iter().any(|p| p.window < p.ssthresh);
        self.search.sample(now, rate_of(bytes, time), backlog, slow_start);
        self.mark = Some((now, read()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::tests::{Fixture, path};
    use crate::units::StreamId;
    use crate::window::Windows;
    use alloc::vec;
    use alloc::vec::Vec;

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
        assert_eq!(f.send(1), Some(90_000..100_000));
        assert_eq!(f.send(1), Some(100_000..140_000), "both are: the next burst");
        assert_eq!(f.send(0), Some(140_000..180_000));
    }

    #[test]
    fn the_segments_of_a_burst_are_counted_over_all_streams() {
        let mut f = fixture();
        let mut other = Windows::default();
        other.written(0..1_000_000);
        // One stream after the other asks for a frame of 10 segments.
        let mut turn = |f: &mut Fixture<MuSher>, path| {
            core::mem::swap(&mut f.windows, &mut other);
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
            f.send(0);
            f.send(1);
            assert_eq!(f.scheduler.search.samples(), expected, "{ms}");
        }
        assert!((f.scheduler.search.last() - 3e6).abs() < 1.0);
    }
}
