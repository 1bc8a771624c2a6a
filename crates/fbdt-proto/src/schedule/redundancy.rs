//! Whether a path sends a copy of what another one owes (F6).
//!
//! See also F10.

use core::time::Duration;

use fbdt_units::Instant;

use crate::config::{Config, Redundancy};
use crate::path::{Chunk, PathView};
use crate::scale::{NOISE, TICK};

/// An overdue byte is copied after this many RTTs of its path ...
const LATE_RTTS: u32 = 3;

/// When the owner's chunk will arrive, as seen now: as expected; if it is
/// overdue, when TCP's repair of a loss is there, an RTT later than expected;
/// and if it is later than that, as long again.
fn remaining(now: Instant, chunk: &Chunk, owner: &PathView) -> Duration {
    let repaired = chunk.expected + owner.srtt;
    if now < chunk.expected {
        chunk.expected.saturating_since(now)
    } else if now < repaired {
        repaired.saturating_since(now)
    } else {
        now.saturating_since(chunk.expected)
    }
}

/// Whether a copy sent by `helper` now is expected to arrive before the
/// owner's by the margin (F6).
pub(crate) fn copy_wins(
    config: &Config,
    now: Instant,
    chunk: &Chunk,
    owner: &PathView,
    helper: &PathView,
) -> bool {
    if config.redundancy != Redundancy::ExpectedArrival {
        return false;
    }
    let size = chunk.range.end.saturating_sub(chunk.copied.max(chunk.range.start));
    let mine = helper.arrival + fbdt_units::time_for(size.min(64 << 10), helper.rate);
    remaining(now, chunk, owner) > mine.mul_f64(config.copy_margin) + TICK
}

/// Whether the chunk is overdue long enough to be copied while its owner is
/// not suspect yet (F6).
pub(crate) fn is_overdue(now: Instant, chunk: &Chunk, owner: &PathView) -> bool {
    let patience = (owner.srtt * LATE_RTTS).min(NOISE * 2);
    now >= chunk.expected + patience
}

/// The paper's rule (R10): a path that has had nothing to do and owes
/// nothing for one RTT of the other side copies what that side owes.
pub(crate) fn waited_an_rtt(now: Instant, idle_since: Instant, owner: &PathView) -> bool {
    now >= idle_since + owner.srtt + owner.rttvar * 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::testing::view;
    use fbdt_units::StreamId;

    fn chunk(expected_ms: u64) -> Chunk {
        Chunk {
            stream: StreamId(1),
            range: 0..1000,
            sent: Instant::ZERO,
            expected: Instant::from_nanos(expected_ms * 1_000_000),
            copied: 0,
            cold: false,
        }
    }

    #[test]
    fn f6_a_copy_is_sent_only_if_it_wins_by_a_margin() {
        let config = Config::default();
        let (owner, helper) = (view(0, 1e8, 0.0), view(1, 1e8, 0.0));
        let now = Instant::ZERO;
        // The helper arrives in 2 ms; 1.5 x that plus noise is 4 ms.
        assert!(!copy_wins(&config, now, &chunk(4), &owner, &helper));
        assert!(copy_wins(&config, now, &chunk(5), &owner, &helper));
        let off = Config { redundancy: Redundancy::Off, ..config };
        assert!(!copy_wins(&off, now, &chunk(500), &owner, &helper));
    }

    #[test]
    fn f6_what_is_overdue_is_expected_when_tcp_has_repaired_it() {
        let owner = PathView { srtt: Duration::from_millis(100), ..view(0, 1e8, 0.0) };
        let remaining = |ms: u64| {
            remaining(Instant::from_nanos(ms * 1_000_000), &chunk(50), &owner).as_millis()
        };
        assert_eq!(remaining(20), 30, "it is not overdue");
        assert_eq!(remaining(70), 80, "the repair is there at 150");
        assert_eq!(remaining(140), 10);
        assert_eq!(remaining(160), 110, "nor did the repair arrive: as long again");
        // Shortly before the repair a copy that takes as long is none.
        let helper = PathView { arrival: Duration::from_millis(15), ..view(1, 1e8, 0.0) };
        let config = Config::default();
        let wins = |ms: u64| {
            copy_wins(&config, Instant::from_nanos(ms * 1_000_000), &chunk(50), &owner, &helper)
        };
        assert!(wins(70) && !wins(140) && wins(160));
    }

    #[test]
    fn f6_overdue_after_three_srtt() {
        let owner = view(0, 1e8, 0.0);
        let chunk = chunk(10);
        assert!(!is_overdue(Instant::from_nanos(21_999_999), &chunk, &owner));
        assert!(is_overdue(Instant::from_nanos(22_000_000), &chunk, &owner));
    }

    #[test]
    fn f6_a_link_is_drained_when_the_path_holds_what_is_under_way() {
        // 100 MB/s and 4 ms: 400 kB.
        let path = |held| PathView { held, ..view(0, 1e8, 0.0) };
        assert!(path(400_000).is_drained());
        assert!(!path(400_001).is_drained());
        assert!(PathView { ramping: true, ..path(400_001) }.is_drained(), "the rate is a guess");
        let spread = Duration::from_millis(16);
        assert!(PathView { spread, ..path(2_000_000) }.is_drained(), "its answers are held back");
        assert!(!PathView { spread, ..path(2_000_001) }.is_drained());
    }

    #[test]
    fn r10_the_papers_rule_waits_one_rtt_of_the_other_side() {
        let owner = view(0, 1e8, 0.0);
        let idle = Instant::from_nanos(1_000_000);
        assert!(!waited_an_rtt(Instant::from_nanos(4_999_999), idle, &owner));
        assert!(waited_an_rtt(Instant::from_nanos(5_000_000), idle, &owner));
    }
}
