//! What each path may hold of a window that some paths could fill alone.
//!
//! Rule: F7.

use crate::path::PathView;
use crate::units::bytes_in;

/// Frames that a path may always hold: one under way, one behind it.
const LEAST_FRAMES: u64 = 2;

/// Of what is left beyond rate x RTT of all paths, the part that is for queues. The rest is for what
/// waits behind a loss: were all of it queued, paths would lose more, and one loss would stop them all.
const FOR_QUEUES: f64 = 0.5;

/// Bytes that `path` may hold of a window of `window` bytes: its rate x RTT,
/// and of half of what is left beyond that of all paths a queue as long, in time, as
/// every other path's.
///
/// Without bound while a rate is still being found out, and where the window
/// is too small for all paths anyway.
pub(super) fn share(paths: &[PathView], path: usize, window: u64, frame: u64) -> u64 {
    let usable = || paths.iter().filter(|p| p.usable);
    let product = |p: &PathView| bytes_in(p.rate, p.base_rtt);
    let all: u64 = usable().map(product).sum();
    let known = usable().all(|p| !p.ramping && p.rate > 0.0);
    match paths.get(path).filter(|_| known && all <= window) {
        Some(own) => {
            let rates: f64 = usable().map(|p| p.rate).sum();
            let queue = (window - all) as f64 * FOR_QUEUES * (own.rate / rates);
            (product(own) + queue as u64).max(LEAST_FRAMES * frame)
        }
        None => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::testing::view;
    use core::time::Duration;

    #[test]
    fn f7_queues_of_a_small_window_are_equally_long() {
        let mut late = view(1, 1e6, 0.0);
        late.base_rtt = Duration::from_millis(8);
        let paths = [view(0, 3e6, 0.0), late];
        // 20 kB are rate x RTT of both; of the 24 kB that are left 12 are for queues: 3 ms of each rate.
        assert_eq!(share(&paths, 0, 44_000, 1000), 12_000 + 9_000);
        assert_eq!(share(&paths, 1, 44_000, 1000), 8_000 + 3_000);
        assert_eq!(share(&paths, 1, 20_000, 5000), 10_000, "two frames in any case");
    }

    #[test]
    fn f7_a_window_that_is_too_small_for_all_is_not_shared_out() {
        let paths = [view(0, 3e6, 0.0), view(1, 1e6, 0.0)];
        assert_eq!(share(&paths, 0, 15_999, 1000), u64::MAX);
    }

    #[test]
    fn f7_nothing_is_shared_out_while_a_rate_is_being_found_out() {
        let mut new = view(1, 1e4, 0.0);
        new.ramping = true;
        assert_eq!(share(&[view(0, 3e6, 0.0), new], 0, 40_000, 1000), u64::MAX);
        new.usable = false;
        assert_eq!(share(&[view(0, 3e6, 0.0), new], 0, 40_000, 1000), 12_000 + 14_000);
    }
}
