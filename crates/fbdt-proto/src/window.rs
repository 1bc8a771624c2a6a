//! How large windows and buffers are.
//!
//! Rule: F2.

use core::time::Duration;

use fbdt_units::bytes_in;

use crate::config::{Config, WindowMode};
use crate::path::{PathView, lead};
use crate::scale::{NOISE, TURN};

/// Room beyond what differing arrival delays need.
const SPARE: f64 = 1.25;
/// RTTs that a loss takes on one path while the others go on: to be seen, and to be repaired.
const REPAIRS: u32 = 2;
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
    /// W = clamp(k x sum of `rate_i` x `rtt_i`, `W_min`, `W_max`), with W_min
    /// at least (1 + ceil(max rate ratio)) frames; the thesis's fixed window,
    /// one at a time, in that mode.
    #[must_use]
    pub fn of(config: &Config, paths: &[PathView], frame: u64) -> Self {
        if config.window_mode == WindowMode::Thesis {
            return Self { bytes: config.thesis_window, depth: 1 };
        }
        let (low, high) = config.window;
        let usable = || paths.iter().filter(|p| p.usable);
        let bdp: u64 = usable().map(|p| bytes_in(p.rate, p.srtt)).sum();
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
pub(crate) fn wanted_buffer(paths: &[PathView], size: WindowSize) -> u64 {
    let usable = || paths.iter().filter(|p| p.usable);
    let slowest = usable().map(|p| p.arrival + p.srtt * REPAIRS).max().unwrap_or(Duration::ZERO);
    let soon = |p: &PathView| if p.ramping { RAMP * p.rate } else { p.delivered_rate };
    let rates: f64 = usable().map(soon).sum();
    bytes_in(rates * SPARE, slowest) + size.bytes * size.depth as u64
}

/// Bytes of one stream that a writer may leave unsent where no windows are laid out: those that a
/// late path leaves to the others, and what leaves before the writer comes to write more. What else is
/// written only waits, and whatever is written next waits behind it. A path whose bytes are there more
/// than `most` behind those of others gets none that wait: no writer leaves so many.
pub(crate) fn unsent_ahead(paths: &[PathView], most: u64) -> u64 {
    let usable = || paths.iter().filter(|p| p.usable);
    let leads = (0..paths.len()).filter(|&path| paths[path].usable).map(|path| lead(paths, path));
    let longest = leads.filter(|&lead| lead <= most).max().unwrap_or(0);
    let soon = |p: &PathView| p.rate.max(p.delivered_rate) * if p.ramping { RAMP } else { 1.0 };
    let rates: f64 = usable().map(soon).sum();
    (longest as f64 * SPARE) as u64 + bytes_in(rates, NOISE / 2).max(TURN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::testing::view;

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
    fn f2_a_writer_is_a_turn_ahead_and_what_a_late_path_leaves_to_the_others() {
        let (near, mut far) = (view(0, 1e8, 0.0), view(1, 1e8, 0.0));
        assert_eq!(unsent_ahead(&[near, far], 1 << 30), 1_000_000, "200 MB/s x 5 ms");
        far.arrival = near.arrival + Duration::from_millis(80);
        assert_eq!(unsent_ahead(&[near, far], 1 << 30), 11_000_000, "and 1.25 x 100 MB/s x 80 ms");
        assert_eq!(unsent_ahead(&[near, far], 7_999_999), 1_000_000, "out of reach");
        let silent = PathView { usable: false, ..far };
        assert_eq!(unsent_ahead(&[near, silent], 1 << 30), 500_000);
        let slow = PathView { rate: 1e6, delivered_rate: 1e6, ..near };
        assert_eq!(unsent_ahead(&[slow], 1 << 30), TURN);
    }

    #[test]
    fn f2_the_buffer_is_there_when_slow_start_has_doubled_twice() {
        let size = WindowSize { bytes: 0, depth: 4 };
        let steady = view(0, 1e7, 0.0);
        let ramping = PathView { ramping: true, ..steady };
        assert_eq!(wanted_buffer(&[ramping], size), 4 * wanted_buffer(&[steady], size));
    }
}
