//! Paths for tests.

use core::time::Duration;

use fbdt_units::PathId;

use super::{PathView, Reliability};

/// A path of this rate that has failed so often: 4 ms, and a window of 100 kB.
#[must_use]
pub fn view(id: u8, rate: f64, failures: f64) -> PathView {
    PathView {
        id: PathId(id),
        usable: true,
        rate,
        delivered_rate: rate,
        arrival: Duration::from_millis(2),
        ramping: false,
        srtt: Duration::from_millis(4),
        rttvar: Duration::ZERO,
        base_rtt: Duration::from_millis(4),
        spread: Duration::ZERO,
        window: 100_000,
        ssthresh: 100_000,
        held: 0,
        room: 100_000,
        ready: true,
        frame: 10_000,
        mss: 1000,
        acknowledged: 0,
        reliability: Reliability::failing(failures),
        pinned: false,
    }
}
