//! How many bytes a path may hold (F7).

use core::time::Duration;

use fbdt_units::{SubflowSample, bytes_in};

use super::model::PathModel;
use crate::config::{CommitRule, Config};
use crate::scale::{LEAST_FRAME, TURN};

/// Bytes that any path may hold: one frame under way, one behind it, one that is being acknowledged. More
/// would be a queue of its own on a narrow path, behind which copies and the front wait.
const FLOOR: u64 = 3 * LEAST_FRAME;
/// Frames leave together that take the link this long, and at most so many bytes: a frame of 64 KiB
/// ends in a short segment, which costs the kernel at either end as much as a long one.
const BATCH: Duration = Duration::from_micros(200);

/// The commit limit and the frame size that go with a path's state, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Most bytes that the path may hold.
    pub(super) limit: u64,
    /// Payload of one frame: about `frame_time` worth.
    pub(super) frame: u64,
    /// Bytes that are given to the socket at once, if there are so many.
    pub(super) batch: u64,
}

impl Room {
    /// The limits of a path before anything is known of it.
    pub(super) const fn initial() -> Self {
        Self { limit: 8 * LEAST_FRAME, frame: 4 * LEAST_FRAME, batch: 0 }
    }

    /// TCP's window and as much as leaves next; where there is a queue, at most what fills the link
    /// and the allowed queue. Baselines know the first of these rules only.
    pub(super) fn of(config: &Config, model: &PathModel, sample: &SubflowSample) -> Self {
        let rate = model.rate();
        let max_frame = u64::from(config.limits.max_frame);
        let frame = bytes_in(rate, config.frame_time).clamp(LEAST_FRAME, max_frame);
        let by_window = sample.cwnd + ahead(config, rate, sample);
        let queue = config.commit == CommitRule::Rate && model.has_queue();
        let limit = if queue { by_window.min(model.full().max(FLOOR)) } else { by_window };
        // A fresh subflow of a fast link may hold less than a frame of the link's rate.
        let frame = frame.min((limit / 2).max(LEAST_FRAME));
        Self { limit, frame, batch: bytes_in(rate, BATCH).min(TURN) }
    }
}

/// Bytes beyond TCP's window: what the socket sends until it is asked again; in slow start as much as the
/// window, which has doubled an RTT from now. What follows in portions then looks to TCP like a long
/// train of acknowledgements, which ends slow start (HyStart, RFC 9406).
fn ahead(config: &Config, rate: f64, sample: &SubflowSample) -> u64 {
    let slack = bytes_in(rate, config.commit_slack).max(2 * LEAST_FRAME);
    if sample.cwnd < sample.ssthresh { slack.max(sample.cwnd) } else { slack.min(sample.cwnd / 4) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fbdt_units::Instant;

    fn of(config: &Config, sample: &SubflowSample) -> Room {
        let mut model = PathModel::queued();
        let sample = model.update(Instant::ZERO, sample);
        Room::of(config, &model, &sample)
    }

    fn room(rate: u64, srtt_ms: u64, base_ms: u64, cwnd: u64) -> Room {
        let sample = SubflowSample {
            srtt: Duration::from_millis(srtt_ms),
            min_rtt: Duration::from_millis(base_ms),
            delivery_rate: rate,
            cwnd,
            ..SubflowSample::default()
        };
        of(&Config::default(), &sample)
    }

    #[test]
    fn f7_without_a_queue_the_window_limits_and_with_one_the_rate_does() {
        let rate = 100_000_000;
        let free = room(rate, 4, 4, 10_000_000);
        assert_eq!(free.limit, 10_000_000 + 200_000);
        let half = room(rate, 9, 4, 10_000_000);
        assert_eq!(half.limit, free.limit, "half the allowed queue is none");
        let queued = room(rate, 20, 4, 10_000_000);
        assert_eq!(queued.limit, 1_400_000, "100 MB/s x (4 ms + 10 ms)");
        let long = room(rate, 90, 40, 10_000_000);
        assert_eq!(long.limit, 10_000_000, "100 MB/s x (40 ms + 40 ms + 20 ms)");
        let small_window = room(rate, 20, 4, 50_000);
        assert_eq!(small_window.limit, 62_500, "never beyond what TCP could send");
    }

    #[test]
    fn f7_a_narrow_path_holds_three_frames_at_least_and_no_queue_beyond_that() {
        // 5 Mbit/s and 4 ms: 8750 bytes in 14 ms.
        assert_eq!(room(625_000, 20, 4, 100_000).limit, 12 << 10);
        assert_eq!(Room::initial().limit, 32 << 10, "nothing is known");
    }

    #[test]
    fn f7_frames_leave_together_only_where_one_is_gone_in_no_time() {
        let batch = |rate| room(rate, 4, 4, 10_000_000).batch;
        assert_eq!(batch(225_000_000), 45_000, "less than a frame, at 1.8 Gbit/s");
        assert_eq!(batch(1_000_000_000), 200_000);
        assert_eq!(batch(5_000_000_000), TURN);
        assert_eq!(Room::initial().batch, 0);
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
        let limit = of(&config, &sample).limit;
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
        let limit = |sample: SubflowSample| of(&Config::default(), &sample).limit;
        assert_eq!(limit(sample), 200_000);
        assert_eq!(limit(SubflowSample { ssthresh: 100_000, ..sample }), 120_000, "it is over");
    }

    #[test]
    fn f7_at_most_a_quarter_of_the_window_beyond_it() {
        assert_eq!(room(10_000_000, 500, 500, 300_000).limit, 320_000, "2 ms at 10 MB/s");
        assert_eq!(room(60_000, 152, 152, 10_000).limit, 12_500, "a quarter of a small one");
    }

    #[test]
    fn f7_frames_are_a_millisecond_long() {
        assert_eq!(room(10_000_000, 4, 4, 40_000).frame, 10_000);
        assert_eq!(room(1_000_000_000, 4, 4, 4_000_000).frame, 65_536);
        assert_eq!(room(1000, 4, 4, 40_000).frame, 4096);
        assert_eq!(room(100_000_000, 4, 4, 14_480).frame, 9050, "two fit into what it may hold");
    }
}
