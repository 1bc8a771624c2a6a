//! How many bytes a path may hold (F7).

use core::time::Duration;

use super::{RateEstimate, SubflowSample, ack_aggregation};
use crate::config::{CommitRule, Config};
use crate::units::bytes_in;

/// Bytes that a path may hold of which nothing is known, so that a slow start can start.
const INITIAL: u64 = 32 << 10;
/// Bytes that any path may hold: one frame under way, one behind it, one that is being acknowledged. More
/// would be a queue of its own on a narrow path, behind which copies and the front wait.
const FLOOR: u64 = 3 * MIN_FRAME;
/// Longest wait for acknowledgements that is not known for one (`hold`): a path that is held to less
/// than that would be starved by it, as radios gather acknowledgements for some milliseconds.
const LEAST_QUEUE: Duration = ack_aggregation::LEAST;
/// A queue of twice the smallest RTT is left up to this: over short RTTs others' queues are several of
/// them, and who leaves less would give way to whoever fills these.
const OTHERS_QUEUE: Duration = Duration::from_millis(40);
/// RTT beyond which bytes past the TCP window would only grow stale.
const LONG: Duration = Duration::from_millis(50);
/// Smallest frame payload, in bytes.
const MIN_FRAME: u64 = 4 << 10;
/// Frames leave together that take the link this long, and at most so many bytes: a frame of 64 KiB
/// ends in a short segment, which costs the kernel at either end as much as a long one.
const BATCH: Duration = Duration::from_micros(200);
const MAX_BATCH: u64 = 256 << 10;

/// The commit limit and the frame size that go with a path's state, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    /// Most bytes that the path may hold.
    pub(super) limit: u64,
    /// Payload of one frame: about `frame_time` worth.
    pub(super) frame: u64,
    /// Bytes that are given to the socket at once, if there are so many.
    pub(super) batch: u64,
}

impl Commit {
    /// The limits of a path before anything is known of it.
    pub(super) const fn initial() -> Self {
        Self { limit: INITIAL, frame: 16 << 10, batch: 0 }
    }

    /// F7: while the RTT shows no queue the TCP window alone limits, plus
    /// about `commit_slack` unsent, in slow start as much again as the window, on long paths a frame;
    /// else rate x (min RTT + a queue + slack + how long acknowledgements are held back, `hold`). The
    /// queue is as long as the gain makes it; twice the min RTT where that is less than what others' queues
    /// are; and at least as long as what `hold` does not count. Baselines know the first of these rules only.
    pub(super) fn of(
        config: &Config,
        rate: &RateEstimate,
        sample: &SubflowSample,
        hold: Duration,
    ) -> Self {
        let base = sample.base_rtt();
        let link = rate.link(base);
        let slack = config.commit_slack;
        let queued = base.mul_f64(config.commit_gain - 1.0);
        let queued = queued.max((base * 2).min(OTHERS_QUEUE)).max(LEAST_QUEUE);
        let by_rate = bytes_in(link, base + queued + slack + hold).max(FLOOR);
        let max_frame = u64::from(config.limits.max_frame);
        let frame = bytes_in(link, config.frame_time).clamp(MIN_FRAME, max_frame);
        let ahead = if base > LONG {
            // Of a small window no more than a quarter: with a whole frame beyond it, it would never be full.
            frame.min(sample.cwnd / 4)
        } else {
            bytes_in(link, slack).max(2 * MIN_FRAME)
        };
        // Slow start doubles the window in each RTT. It must find bytes then:
        // what follows in portions looks to TCP like a long train of
        // acknowledgements, which ends slow start (HyStart, RFC 9406).
        let ahead = if base <= LONG && sample.cwnd < sample.ssthresh {
            ahead.max(sample.cwnd)
        } else {
            ahead
        };
        let by_window = sample.cwnd + ahead;
        let queue =
            config.commit == CommitRule::Rate && sample.srtt >= (base + hold) * 3 / 2 + slack / 2;
        let limit = if queue { by_window.min(by_rate) } else { by_window };
        Self { limit, frame, batch: bytes_in(link, BATCH).min(MAX_BATCH) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    fn commit(rate: u64, srtt_ms: u64, base_ms: u64, cwnd: u64) -> Commit {
        let sample = SubflowSample {
            srtt: Duration::from_millis(srtt_ms),
            min_rtt: Duration::from_millis(base_ms),
            delivery_rate: rate,
            cwnd,
            ..SubflowSample::default()
        };
        let mut estimate = RateEstimate::default();
        estimate.update(Instant::ZERO, &sample, Duration::ZERO);
        Commit::of(&Config::default(), &estimate, &sample, Duration::ZERO)
    }

    #[test]
    fn f7_without_a_queue_the_window_limits_and_with_one_the_rate_does() {
        let rate = 100_000_000;
        let free = commit(rate, 4, 4, 10_000_000);
        assert_eq!(free.limit, 10_000_000 + 200_000);
        let queued = commit(rate, 20, 4, 10_000_000);
        assert_eq!(queued.limit, 1_600_000, "100 MB/s x (4 ms + 10 ms + 2 ms)");
        let middle = commit(rate, 50, 15, 10_000_000);
        assert_eq!(middle.limit, 4_700_000, "100 MB/s x (15 ms + 30 ms + 2 ms)");
        let long = commit(rate, 90, 40, 10_000_000);
        assert_eq!(long.limit, 8_200_000, "100 MB/s x (2 x 40 ms + 2 ms)");
        let small_window = commit(rate, 20, 4, 50_000);
        assert_eq!(small_window.limit, 250_000, "never beyond what TCP could send");
    }

    #[test]
    fn f7_a_narrow_path_holds_three_frames_at_least_and_no_queue_beyond_that() {
        // 5 Mbit/s and 4 ms: 10 000 bytes in 16 ms.
        assert_eq!(commit(625_000, 20, 4, 100_000).limit, 12 << 10);
        assert_eq!(Commit::initial().limit, 32 << 10, "nothing is known");
    }

    #[test]
    fn f7_frames_leave_together_only_where_one_is_gone_in_no_time() {
        let batch = |rate| commit(rate, 4, 4, 10_000_000).batch;
        assert_eq!(batch(225_000_000), 45_000, "less than a frame, at 1.8 Gbit/s");
        assert_eq!(batch(1_000_000_000), 200_000);
        assert_eq!(batch(5_000_000_000), MAX_BATCH);
        assert_eq!(Commit::initial().batch, 0);
    }

    #[test]
    fn f7_baselines_fill_the_window_whatever_the_queue() {
        let config = Config { commit: CommitRule::Window, ..Config::default() };
        let sample = SubflowSample {
            srtt: Duration::from_millis(20),
            min_rtt: Duration::from_millis(4),
            cwnd: 10_000_000,
            ..SubflowSample::default()
        };
        let limit = Commit::of(&config, &RateEstimate::default(), &sample, Duration::ZERO).limit;
        assert!(limit >= 10_000_000, "{limit}");
    }

    #[test]
    fn f7_slow_start_finds_as_much_again_as_the_window() {
        let sample = SubflowSample {
            srtt: Duration::from_millis(4),
            min_rtt: Duration::from_millis(4),
            delivery_rate: 10_000_000,
            cwnd: 100_000,
            ssthresh: u64::MAX,
            ..SubflowSample::default()
        };
        let limit = |sample: SubflowSample| {
            let mut rate = RateEstimate::default();
            rate.update(Instant::ZERO, &sample, Duration::ZERO);
            Commit::of(&Config::default(), &rate, &sample, Duration::ZERO).limit
        };
        assert_eq!(limit(sample), 200_000);
        assert_eq!(limit(SubflowSample { ssthresh: 100_000, ..sample }), 120_000, "it is over");
        let base = Duration::from_millis(60);
        let long = SubflowSample { srtt: base, min_rtt: base, ..sample };
        assert_eq!(limit(long), 110_000, "more would only grow stale");
    }

    #[test]
    fn f7_at_most_a_frame_beyond_the_window_on_long_paths() {
        assert_eq!(commit(10_000_000, 500, 500, 300_000).limit, 310_000);
        assert_eq!(commit(60_000, 152, 152, 10_000).limit, 12_500, "a quarter of a small one");
    }

    #[test]
    fn f7_frames_are_a_millisecond_long() {
        assert_eq!(commit(10_000_000, 4, 4, 1).frame, 10_000);
        assert_eq!(commit(1_000_000_000, 4, 4, 1).frame, 65_536);
        assert_eq!(commit(1000, 4, 4, 1).frame, 4096);
    }
}
