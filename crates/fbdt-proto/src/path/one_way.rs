//! How long bytes take to the peer, compared between paths.
//!
//! A path may be late in one direction only, so half of an RTT says little.
//! The peer stamps each probe with its own clock: the stamp less the time of
//! sending is the one-way delay plus an unknown that all paths share, and that
//! drops out of every difference.

use core::time::Duration;

use fbdt_units::{Instant, nanos};

/// Span of one of the two buckets of the windowed minimum.
const BUCKET: Duration = Duration::from_secs(5);

/// Smallest difference of the two clocks at arrival and sending, lately; in
/// nanoseconds, with an offset that all paths of a session share.
#[derive(Clone, Debug, Default)]
pub(crate) struct OneWay {
    current: Option<i64>,
    previous: Option<i64>,
    since: Instant,
}

impl OneWay {
    /// A probe sent at `sent` reached the peer when its clock showed
    /// `received` nanoseconds.
    pub(crate) fn update(&mut self, now: Instant, sent: u64, received: u64) {
        let difference = received.wrapping_sub(sent).cast_signed();
        if now.saturating_since(self.since) >= BUCKET {
            self.previous = self.current.take();
            self.since = now;
        }
        self.current = Some(self.current.map_or(difference, |least| least.min(difference)));
    }

    /// The smallest difference, if any was measured.
    pub(crate) fn least(&self) -> Option<i64> {
        [self.current, self.previous].into_iter().flatten().min()
    }
}

/// Queue-free delay to the peer of each path (`None`: unknown), from the
/// differences and base RTTs. The path with the smallest difference is taken
/// to be symmetric.
pub(crate) fn forward_delay(least: i64, anchor: (i64, Duration), base_rtt: Duration) -> Duration {
    let (anchor_least, anchor_rtt) = anchor;
    let extra = least.saturating_sub(anchor_least);
    let delay = nanos(anchor_rtt / 2).saturating_add_signed(extra);
    Duration::from_nanos(delay).min(base_rtt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_late_in_one_direction_only_is_seen() {
        let ms = |n: u64| n * 1_000_000;
        let (mut fast, mut late) = (OneWay::default(), OneWay::default());
        // The peer's clock is 7 s behind; fast takes 1 ms, late 501 ms.
        let clock = |sent: u64, delay: u64| (sent + delay).wrapping_sub(ms(7000));
        for sent in [ms(10), ms(500)] {
            fast.update(Instant::from_nanos(sent), sent, clock(sent, ms(1)));
            late.update(Instant::from_nanos(sent), sent, clock(sent, ms(501)));
        }
        let anchor = (fast.least().unwrap(), Duration::from_millis(2));
        let late = forward_delay(late.least().unwrap(), anchor, Duration::from_millis(503));
        assert_eq!(late, Duration::from_millis(501));
    }

    #[test]
    fn an_old_minimum_is_forgotten() {
        let mut path = OneWay::default();
        for (second, delay) in [(1, 5), (7, 9), (13, 9)] {
            let sent = second * 1_000_000_000;
            path.update(Instant::from_nanos(sent), sent, sent + delay);
        }
        assert_eq!(path.least(), Some(9));
    }
}
