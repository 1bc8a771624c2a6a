//! The congestion window of all paths over one bottleneck together: that of
//! one TCP.

use alloc::vec::Vec;
use core::time::Duration;

use fbdt_units::{Instant, PathId};

/// How a TCP's window grows and what a loss leaves of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// CUBIC, RFC 9438: the least of a share that its neighbours leave it.
    Cubic,
    /// AIMD, RFC 5681.
    Reno,
}

/// CUBIC's constant C, segments / s^3 (RFC 9438, section 5).
const C: f64 = 0.4;
/// What a loss leaves of the window: CUBIC's beta, and AIMD's.
const BETA: (f64, f64) = (0.7, 0.5);
/// A window that was not used for longer than this did not age meanwhile.
const LONGEST_STEP: Duration = Duration::from_millis(200);

/// One TCP's congestion window, in segments of `mss` bytes.
#[derive(Clone, Debug)]
pub(crate) struct SharedWindow {
    growth: Growth,
    mss: f64,
    segments: f64,
    /// CUBIC's W_max.
    maximum: f64,
    /// CUBIC's K, seconds.
    plateau: f64,
    /// Seconds of use since the last loss.
    age: f64,
    /// CUBIC's W_est: what AIMD with the same mean would have.
    friendly: f64,
    last: Instant,
    deaf_until: Instant,
}

impl SharedWindow {
    /// A window of `bytes` in congestion avoidance.
    pub(crate) fn new(now: Instant, growth: Growth, bytes: f64, mss: u32) -> Self {
        let mss = f64::from(mss.max(1));
        let segments = (bytes / mss).max(2.0);
        Self {
            growth,
            mss,
            segments,
            maximum: segments,
            plateau: 0.0,
            age: 0.0,
            friendly: segments,
            last: now,
            deaf_until: Instant::ZERO,
        }
    }

    /// Bytes that all paths together may hold.
    pub(crate) fn bytes(&self) -> f64 {
        self.segments * self.mss
    }

    /// `acked` bytes were acknowledged while the window was full.
    pub(crate) fn grow(&mut self, now: Instant, acked: u64, rtt: Duration) {
        let acked = acked as f64 / self.mss;
        self.age += now.saturating_since(self.last).min(LONGEST_STEP).as_secs_f64();
        self.last = now;
        match self.growth {
            Growth::Reno => self.segments += acked / self.segments,
            Growth::Cubic => self.grow_cubic(acked, rtt.as_secs_f64()),
        }
    }

    /// RFC 9438, sections 4.2 to 4.5, but for alpha, which stays below 1 as it does in the TCPs
    /// beside: Linux never raises it (4.3 does where `W_est` has reached the window before the loss).
    fn grow_cubic(&mut self, acked: f64, rtt: f64) {
        let alpha = 3.0 * (1.0 - BETA.0) / (1.0 + BETA.0);
        self.friendly += alpha * acked / self.segments;
        let curve = |t: f64| {
            let t = t - self.plateau;
            C * t * t * t + self.maximum
        };
        if curve(self.age) < self.friendly {
            self.segments = self.segments.max(self.friendly);
        } else {
            let target = curve(self.age + rtt).clamp(self.segments, 1.5 * self.segments);
            self.segments += (target - self.segments) * acked / self.segments;
        }
    }

    /// One of the paths lost something, at most `used` bytes being in use;
    /// what else is lost within an `rtt` is the same event.
    pub(crate) fn lose(&mut self, now: Instant, used: f64, rtt: Duration) {
        if now < self.deaf_until {
            return;
        }
        self.deaf_until = now + rtt;
        let before = (used / self.mss).clamp(2.0, self.segments.max(2.0));
        let beta = if self.growth == Growth::Cubic { BETA.0 } else { BETA.1 };
        // Fast convergence: who falls from less than last time makes room.
        self.maximum = if before < self.maximum { before * (1.0 + beta) / 2.0 } else { before };
        self.segments = (before * beta).max(2.0);
        self.friendly = self.segments;
        self.plateau = libm::cbrt((self.maximum - self.segments).max(0.0) / C);
        self.age = 0.0;
        self.last = now;
    }
}

/// Paths that are thought to share a bottleneck, and their window.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Two or more, in order.
    pub(crate) paths: Vec<PathId>,
    pub(crate) window: SharedWindow,
}

/// Divides `total` among demands, evenly, but no more to each than it asks
/// for; what one leaves is the others'.
pub(crate) fn divide(total: f64, demands: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| demands[*a].total_cmp(&demands[*b]));
    let mut parts = alloc::vec![0.0; demands.len()];
    let (mut left, mut waiting) = (total.max(0.0), demands.len());
    for index in order {
        let even = left / waiting as f64;
        parts[index] = demands[index].min(even);
        left -= parts[index];
        waiting -= 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + ms * 1_000_000)
    }

    /// Acknowledges a whole window in each RTT.
    fn rounds(window: &mut SharedWindow, from_ms: u64, rounds: u64) -> u64 {
        for round in 1..=rounds {
            window.grow(at(from_ms + round * 50), window.bytes() as u64, RTT);
        }
        from_ms + rounds * 50
    }

    #[test]
    fn f17_aimd_gains_a_segment_in_an_rtt_and_halves() {
        let mut window = SharedWindow::new(at(0), Growth::Reno, 100_000.0, 1000);
        rounds(&mut window, 0, 10);
        assert!((window.bytes() - 110_000.0).abs() < 100.0, "{}", window.bytes());
        window.lose(at(500), 110_000.0, RTT);
        assert!((window.bytes() - 55_000.0).abs() < 100.0, "{}", window.bytes());
    }

    #[test]
    fn f17_cubic_returns_to_its_maximum_after_k_seconds() {
        let mut window = SharedWindow::new(at(0), Growth::Cubic, 1_000_000.0, 1000);
        window.lose(at(0), 1_000_000.0, RTT);
        assert!((window.bytes() - 700_000.0).abs() < 1.0);
        // K = cbrt(0.3 x 1000 / 0.4) = 9.09 s.
        let now = rounds(&mut window, 0, 180);
        assert!((window.bytes() - 1_000_000.0).abs() < 20_000.0, "{}", window.bytes());
        rounds(&mut window, now, 100);
        assert!(window.bytes() > 1_040_000.0, "and beyond: {}", window.bytes());
    }

    #[test]
    fn f17_a_small_window_grows_as_linux_grows_cubic_also_beyond_the_last_one() {
        let mut window = SharedWindow::new(at(0), Growth::Cubic, 20_000.0, 1000);
        window.lose(at(0), 20_000.0, RTT);
        // 3 x 0.3 / 1.7 segments a round trip, 15.9 in 30; a whole one from 20 segments on would make
        // 39 of it.
        rounds(&mut window, 0, 30);
        assert!((window.bytes() - 29_900.0).abs() < 300.0, "{}", window.bytes());
    }

    #[test]
    fn f17_losses_of_one_rtt_are_one_event_and_what_was_not_used_is_not_kept() {
        let mut window = SharedWindow::new(at(0), Growth::Cubic, 100_000.0, 1000);
        window.lose(at(0), 50_000.0, RTT);
        assert!((window.bytes() - 35_000.0).abs() < 1.0);
        window.lose(at(49), 50_000.0, RTT);
        assert!((window.bytes() - 35_000.0).abs() < 1.0);
        window.lose(at(50), 35_000.0, RTT);
        assert!((window.bytes() - 24_500.0).abs() < 1.0);
    }

    #[test]
    fn f17_a_pause_does_not_make_the_window_leap() {
        let mut window = SharedWindow::new(at(0), Growth::Cubic, 100_000.0, 1000);
        window.lose(at(0), 100_000.0, RTT);
        window.grow(at(60_000), 70_000, RTT);
        assert!(window.bytes() < 80_000.0, "{}", window.bytes());
    }

    #[test]
    fn f17_what_one_path_cannot_use_the_others_get() {
        assert_eq!(divide(90.0, &[100.0, 10.0, 100.0]), [40.0, 10.0, 40.0]);
        assert_eq!(divide(90.0, &[10.0, 20.0]), [10.0, 20.0]);
        assert!(divide(5.0, &[]).is_empty());
    }

    proptest! {
        #[test]
        fn f17_parts_add_up_and_exceed_no_demand(
            total in 0.0..1e9f64,
            demands in prop::collection::vec(0.0..1e9f64, 1..9),
        ) {
            let parts = divide(total, &demands);
            let sum: f64 = parts.iter().sum();
            prop_assert!(sum <= total * (1.0 + 1e-9));
            prop_assert!(parts.iter().zip(&demands).all(|(p, d)| p <= d));
            let wanted: f64 = demands.iter().sum();
            prop_assert!(sum >= total.min(wanted) * (1.0 - 1e-9));
        }

        #[test]
        fn f17_the_window_never_grows_faster_than_slow_start_and_never_vanishes(
            start in 1_000.0..1e7f64,
            steps in prop::collection::vec((0u64..500, 0u64..2_000_000, prop::bool::ANY), 1..60),
            reno in prop::bool::ANY,
        ) {
            let growth = if reno { Growth::Reno } else { Growth::Cubic };
            let mut window = SharedWindow::new(at(0), growth, start, 1448);
            let mut now = 0;
            for (step, acked, lost) in steps {
                now += step;
                let before = window.bytes();
                if lost {
                    window.lose(at(now), before, RTT);
                    prop_assert!(window.bytes() <= before);
                } else {
                    let acked = acked.min(before as u64);
                    window.grow(at(now), acked, RTT);
                    prop_assert!(window.bytes() <= before + acked as f64 + 1.0);
                }
                prop_assert!(window.bytes() >= 2.0 * 1448.0);
            }
        }
    }
}
