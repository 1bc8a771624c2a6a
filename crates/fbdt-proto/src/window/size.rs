//! How large windows and buffers are (F2).

use core::time::Duration;

use crate::config::{Config, WindowMode};
use crate::path::PathView;
use crate::units::bytes_in;

/// Multiple of sum of rate x RTT in one window.
const WINDOW_GAIN: f64 = 1.0;
/// Room beyond what differing arrival delays need.
const BUFFER_GAIN: f64 = 1.3;
/// Multiple of what is on the way that writers may leave.
const HELD_GAIN: f64 = 2.0;
/// Bytes that leave while a writer wakes.
const TURN: u64 = 256 << 10;
/// What slow start makes of a rate in two RTTs.
const RAMP: f64 = 4.0;

/// Size of the next window and how many may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    /// Bytes.
    pub bytes: u64,
    /// Open windows.
    pub depth: usize,
}

impl WindowSize {
    /// No windows.
    pub const NONE: Self = Self { bytes: 0, depth: 0 };

    /// W = clamp(k x sum of `rate_i` x `rtt_i`, `W_min`, `W_max`), with W_min
    /// at least (1 + ceil(max rate ratio)) frames; the thesis's fixed window,
    /// one at a time, in that mode.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn of(config: &Config, paths: &[PathView], frame: u64) -> Self {
        if config.window_mode == WindowMode::Thesis {
            return Self { bytes: config.thesis_window, depth: 1 };
        }
        let (low, high) = config.window;
        let usable = || paths.iter().filter(|p| p.usable);
        let bdp: u64 = usable().map(|p| bytes_in(p.rate, p.srtt.mul_f64(WINDOW_GAIN))).sum();
        let fastest = usable().map(|p| p.rate).fold(0.0, f64::max);
        let slowest = usable().map(|p| p.rate).fold(f64::MAX, f64::min);
        let ratio = (fastest / slowest.max(1.0)).min(1e4);
        let low = low.max(frame * (2 + ratio as u64)).min(high);
        Self { bytes: bdp.clamp(low, high), depth: config.window_depth }
    }
}

/// Bytes of one stream that must be on their way at once so that no path
/// idles: 1.3 x sum of rates x largest difference of arrival delays, and the
/// open windows. A path whose rate is still being found out will have doubled
/// it twice when a larger window is there.
#[must_use]
pub fn wanted_buffer(paths: &[PathView], size: WindowSize) -> u64 {
    let (rates, slowest) = on_the_way(paths);
    bytes_in(rates * BUFFER_GAIN, slowest) + size.bytes * size.depth as u64
}

/// Rate of all paths, as it will soon be, and how long until the latest of them has an answer.
fn on_the_way(paths: &[PathView]) -> (f64, Duration) {
    let usable = || paths.iter().filter(|p| p.usable);
    let slowest = usable().map(|p| p.arrival + p.base_rtt / 2).max().unwrap_or(Duration::ZERO);
    let soon = |p: &PathView| if p.ramping { RAMP * p.rate } else { p.delivered_rate };
    (usable().map(soon).sum(), slowest)
}

/// Bytes of one stream that a writer may leave here where no windows are laid out: twice what is on
/// its way, because congestion windows double (as kernels size their send buffers), and what leaves
/// while the writer wakes. More would only wait, and whatever is written next behind it.
#[must_use]
pub fn held_buffer(paths: &[PathView]) -> u64 {
    let (rates, slowest) = on_the_way(paths);
    bytes_in(rates * HELD_GAIN, slowest) + TURN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::tests::view;

    #[test]
    fn f2_the_window_follows_rate_times_rtt_within_bounds() {
        let config = Config::default();
        let fast = WindowSize::of(&config, &[view(0, 2e8, 0.0), view(1, 7e7, 0.0)], 65536);
        assert_eq!(fast, WindowSize { bytes: 1_080_000, depth: 4 }, "270 MB/s x 4 ms");
        let slow = WindowSize::of(&config, &[view(0, 1e3, 0.0)], 4096);
        assert_eq!(slow.bytes, 256 << 10);
        let uneven = WindowSize::of(&config, &[view(0, 1e3, 0.0), view(1, 1e5, 0.0)], 4096);
        assert_eq!(uneven.bytes, 4096 * 102, "the slow side gets a frame too");
        let thesis = Config { window_mode: WindowMode::Thesis, ..config };
        assert_eq!(
            WindowSize::of(&thesis, &[view(0, 2e8, 0.0)], 65536),
            WindowSize { bytes: 65536, depth: 1 }
        );
    }

    #[test]
    fn f2_the_buffer_covers_the_latest_path() {
        let mut late = view(1, 1e6, 0.0);
        late.arrival = Duration::from_millis(500);
        let size = WindowSize { bytes: 1 << 20, depth: 4 };
        let wanted = wanted_buffer(&[view(0, 8e7, 0.0), late], size);
        assert!(wanted > 50_000_000, "{wanted}");
    }

    #[test]
    fn f2_a_writer_leaves_twice_what_is_on_the_way() {
        let (near, mut far) = (view(0, 1e7, 0.0), view(1, 1e7, 0.0));
        far.arrival = Duration::from_millis(80);
        far.base_rtt = Duration::from_millis(40);
        assert_eq!(held_buffer(&[near, far]), 2 * 2_000_000 + TURN, "20 MB/s x (80 + 20) ms");
        let silent = PathView { usable: false, ..far };
        assert!(held_buffer(&[near, silent]) < 500_000);
    }

    #[test]
    fn f2_the_buffer_is_there_when_slow_start_has_doubled_twice() {
        let size = WindowSize { bytes: 0, depth: 4 };
        let steady = view(0, 1e7, 0.0);
        let ramping = PathView { ramping: true, ..steady };
        assert_eq!(wanted_buffer(&[ramping], size), 4 * wanted_buffer(&[steady], size));
    }
}
