//! How the congestion window of an emulated TCP grows.

use std::time::Duration;

use fbdt_proto::Instant;

/// Maximum segment size, in bytes.
pub(crate) const MSS: usize = 1448;

/// How a TCP's congestion window grows, and what a loss leaves of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TcpGrowth {
    /// 8 segments in an RTT, 0.7: fills any link soon.
    #[default]
    Brisk,
    /// A segment in an RTT, 0.5 (RFC 5681).
    Reno,
    /// RFC 9438, 0.7.
    Cubic,
    /// Linux's cubic, with its loss detection (RACK, tail loss probes), its timer, its estimates of
    /// the RTT, and bursts of a millisecond of the pacing rate.
    Linux,
    /// Linux's BBR, version 1, with that loss detection; always paced.
    Bbr,
}

impl TcpGrowth {
    /// Bytes that are put on the link together. All TCPs over one bottleneck
    /// must burst alike: what is dropped there is a burst.
    pub(crate) const fn burst(self) -> usize {
        match self {
            Self::Brisk => 8 * MSS,
            Self::Reno | Self::Cubic | Self::Linux | Self::Bbr => 3 * MSS,
        }
    }

    pub(crate) const fn kept(self) -> f64 {
        match self {
            Self::Reno => 0.5,
            Self::Brisk | Self::Cubic | Self::Linux | Self::Bbr => 0.7,
        }
    }
}

/// CUBIC's memory of the last loss; sizes in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cubic {
    maximum: f64,
    plateau: f64,
    epoch: Option<Instant>,
    friendly: f64,
}

impl Cubic {
    /// The window before a loss; `kept` of it is left.
    pub(crate) fn lose(&mut self, window: f64, kept: f64) {
        let converged = window * (1.0 + kept) / 2.0;
        self.maximum = if window < self.maximum { converged } else { window };
        self.plateau = ((self.maximum - window * kept).max(0.0) / 0.4).cbrt();
        self.friendly = window * kept;
        self.epoch = None;
    }

    /// The window after `acked` segments more.
    pub(crate) fn grow(&mut self, now: Instant, window: f64, acked: f64, rtt: Duration) -> f64 {
        let epoch = *self.epoch.get_or_insert(now);
        if self.maximum == 0.0 {
            (self.maximum, self.friendly) = (window, window);
        }
        let curve = |t: f64| 0.4 * (t - self.plateau).powi(3) + self.maximum;
        let age = now.saturating_since(epoch).as_secs_f64();
        // RFC 9438's alpha, which Linux leaves at this also where W_est has reached the old window.
        self.friendly += 0.529 * acked / window;
        if curve(age) < self.friendly {
            return window.max(self.friendly);
        }
        let target = curve(age + rtt.as_secs_f64()).clamp(window, 1.5 * window);
        window + (target - window) * acked / window
    }
}

/// Whether slow start has begun to fill the queue: the smallest RTT of a round is an eighth longer
/// than that of the path (HyStart, as Linux's cubic has it by delays). All growths have it here.
#[derive(Debug, Default)]
pub(crate) struct HyStart {
    since: Instant,
    least: Option<Duration>,
    samples: usize,
}

impl HyStart {
    /// So many samples came with an acknowledgement of what was sent then, of which the first took `rtt`.
    pub(crate) fn queue_began(
        &mut self,
        now: Instant,
        sent: Instant,
        samples: usize,
        rtt: Duration,
        base: Duration,
    ) -> bool {
        if sent >= self.since {
            *self = Self { since: now, ..Self::default() };
        }
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.samples += samples;
        let margin = (base / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        self.samples >= 8 && self.least.is_some_and(|least| least > base + margin)
    }
}
