//! What a cell is run under.

use std::time::Duration;

use fbdt_sim::{LinkChange, LinkParameters, TcpGrowth};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Which of the two paths something applies to. Path 0 has the higher rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Neither.
    None,
    /// The path with the higher rate.
    Fast,
    /// The path with the lower rate.
    Slow,
    /// Both.
    Both,
}

impl Side {
    /// Whether it includes path `index`.
    #[must_use]
    pub const fn includes(self, index: usize) -> bool {
        match self {
            Self::None => false,
            Self::Fast => index == 0,
            Self::Slow => index == 1,
            Self::Both => true,
        }
    }
}

/// The parameters of a condition as they stand in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameters {
    /// Part of the matrix.
    pub group: &'static str,
    /// Rate of the fast path over that of the slow one.
    pub rate_ratio: f64,
    /// RTT of the later path over that of the earlier one.
    pub rtt_ratio: f64,
    /// Which path is the later one.
    pub late: Side,
    /// Loss probability of a segment.
    pub loss: f64,
    /// Where it applies.
    pub lossy: Side,
    /// Receive and send buffer of the stream in bytes; 0: grows as it likes.
    pub buffer_bytes: u64,
    /// That buffer over sum of rates x largest RTT.
    pub buffer_factor: f64,
    /// Length of an outage in seconds; it repeats in flapping.
    pub outage_s: f64,
    /// Where it applies.
    pub dark: Side,
    /// Whether outages repeat every 2 s.
    pub flapping: bool,
    /// Size of each of the transfers that are made one after the other; 0: one that does not end.
    pub transfer_bytes: u64,
    /// Name of the traces, if any.
    pub trace: String,
}

impl Parameters {
    /// Two equal paths without trouble.
    #[must_use]
    pub const fn plain(group: &'static str) -> Self {
        Self {
            group,
            rate_ratio: 1.0,
            rtt_ratio: 1.0,
            late: Side::None,
            loss: 0.0,
            lossy: Side::None,
            buffer_bytes: 0,
            buffer_factor: 0.0,
            outage_s: 0.0,
            dark: Side::None,
            flapping: false,
            transfer_bytes: 0,
            trace: String::new(),
        }
    }
}

/// One condition, ready to be run.
#[derive(Clone, Debug)]
pub struct Condition {
    /// What it stands for.
    pub parameters: Parameters,
    /// The paths.
    pub links: Vec<LinkParameters>,
    /// What changes: when, which path, how.
    pub changes: Vec<(Duration, usize, LinkChange)>,
    /// Time before counting starts.
    pub warmup: Duration,
    /// Time that counts.
    pub time: Duration,
    /// How every path's TCP grows.
    pub tcp: TcpGrowth,
    /// How often it is run, each time with another seed: losses and [`Self::drawn`] differ.
    pub seeds: u64,
}

/// Delays of a draw differ from the condition's by up to this share.
const DRAWN_DELAY: f64 = 0.01;

/// Sum of both rates in Mbit/s.
pub const SUM_MBPS: f64 = 60.0;

impl Condition {
    /// Two paths that share [`SUM_MBPS`] by the rate ratio, the earlier one
    /// with an RTT of `rtt_ms`; loss as the parameters say.
    #[must_use]
    pub fn new(parameters: Parameters, rtt_ms: f64) -> Self {
        let fast = SUM_MBPS * parameters.rate_ratio / (1.0 + parameters.rate_ratio);
        let links: Vec<LinkParameters> = [fast, SUM_MBPS - fast]
            .into_iter()
            .enumerate()
            .map(|(index, mbps)| {
                let late = parameters.late.includes(index);
                let rtt = if late { rtt_ms * parameters.rtt_ratio } else { rtt_ms };
                let mut link = LinkParameters::new(mbps, rtt);
                // A queue that holds the RTT, as routers are set up: without
                // it TCP's window would never fill a long path.
                link.queue = link.queue.max(link.delay * 2);
                link.loss = if parameters.lossy.includes(index) { parameters.loss } else { 0.0 };
                link
            })
            .collect();
        let rtt = links.iter().map(|l| l.delay * 2).max().unwrap_or_default();
        Self {
            parameters,
            links,
            changes: Vec::new(),
            // Slow start is over, and what it lost is repaired.
            warmup: Duration::from_millis(1000) + rtt * 16,
            time: Duration::from_millis(2500) + rtt * 6,
            tcp: TcpGrowth::default(),
            seeds: 1,
        }
    }

    /// Sum of rates x largest RTT, in bytes.
    #[must_use]
    pub fn product(&self) -> f64 {
        let rtt = self.links.iter().map(|l| l.delay * 2).max().unwrap_or_default();
        self.links.iter().map(|l| l.rate).sum::<f64>() * rtt.as_secs_f64()
    }

    /// The same as the draw `seed` has it: from 2 on with delays that are up to a hundredth longer
    /// or shorter, so that where nothing is lost at random, who is ahead is not decided by how bursts
    /// of two paths happen to follow each other.
    #[must_use]
    pub fn drawn(&self, seed: u64) -> Self {
        let mut drawn = self.clone();
        if seed > 1 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            for link in &mut drawn.links {
                link.delay =
                    link.delay.mul_f64(rng.random_range(1.0 - DRAWN_DELAY..1.0 + DRAWN_DELAY));
            }
        }
        drawn
    }

    /// The same over path `index` alone.
    #[must_use]
    pub fn alone(&self, index: usize) -> Self {
        let links = self.links.get(index).cloned().into_iter().collect();
        let changes = self.changes.iter().filter(|(_, path, _)| *path == index);
        let changes = changes.map(|(at, _, change)| (*at, 0, change.clone())).collect();
        Self { links, changes, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_differ_in_their_delays_by_little_and_the_first_has_the_conditions() {
        let condition = Condition::new(Parameters::plain("test"), 4.0);
        let delays = |seed| condition.drawn(seed).links.iter().map(|l| l.delay).collect::<Vec<_>>();
        let plain: Vec<_> = condition.links.iter().map(|l| l.delay).collect();
        assert_eq!(delays(1), plain);
        assert_eq!(delays(2), delays(2));
        assert_ne!(delays(2), delays(3));
        for seed in 2..50 {
            for (drawn, delay) in delays(seed).into_iter().zip(&plain) {
                let ratio = drawn.as_secs_f64() / delay.as_secs_f64();
                assert!((ratio - 1.0).abs() <= DRAWN_DELAY + 1e-6, "{seed}: {ratio}");
            }
        }
        let alone = condition.drawn(2).alone(1);
        assert_eq!(alone.links[0].delay, delays(2)[1]);
    }
}
