//! Conditions drawn from a seed. They are independent for each path, except where they are the draw's.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Queues and bursts of policers hold at least four segments: no device has less.
const LEAST_BYTES: f64 = 6000.0;
/// A draw lasts so many of its longest RTTs, and this long besides, in seconds.
const RTTS: f64 = 30.0;
const BESIDE: f64 = 3.0;
const LONGEST: f64 = 18.0;
/// The time is shortened until paths carry about this many bytes in it, but not below [`FEWEST_RTTS`]
/// and [`SHORTEST`] seconds.
const MOST_BYTES: f64 = 120e6;
const FEWEST_RTTS: f64 = 12.0;
const SHORTEST: f64 = 0.5;
/// A short transfer, a stream and messages are not more than the best path carries in this time, or at
/// this share of its rate.
const TRANSFER_TIME: f64 = 5.0;
const STREAM_SHARE: f64 = 0.9;
/// Paths of a draw that is written by hand.
const MOST_PATHS: usize = 8;
/// A paced stream has at most this rate, in Mbit/s.
const STREAM_MBPS: f64 = 50.0;

/// What limits a path's rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// A queue of so many milliseconds.
    QueueMs(f64),
    /// What exceeds a burst of so many milliseconds is dropped.
    PolicerMs(f64),
}

/// A silent time of a path, in seconds from when the work begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outage {
    /// When it begins.
    pub at_s: f64,
    /// How long it lasts.
    pub length_s: f64,
}

/// A new rate of both directions of a path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// When it begins, in seconds from when the work begins.
    pub at_s: f64,
    /// Share of the path's rates.
    pub factor: f64,
}

/// A radio's sleep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RadioSleep {
    /// Without a segment for so long it falls asleep.
    pub rest_ms: f64,
    /// The next segment waits for so long.
    pub wake_ms: f64,
}

/// One path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathDraw {
    /// Rate from server to client.
    pub down_mbps: f64,
    /// Rate from client to server.
    pub up_mbps: f64,
    /// RTT without queue.
    pub rtt_ms: f64,
    /// What limits its rate.
    pub bottleneck: Bottleneck,
    /// Bytes that pass at once after a rest; 0: none.
    pub burst_bytes: u64,
    /// Share of segments that are lost.
    pub loss: f64,
    /// Mean number of segments that are lost in a row.
    pub loss_run: f64,
    /// Standard deviation of the one-way delay.
    pub jitter_ms: f64,
    /// Whether segments overtake each other.
    pub overtaking: bool,
    /// Acknowledgements of the work are gathered for so long.
    pub gathered_ms: f64,
    /// When nothing gets through.
    pub outages: Vec<Outage>,
    /// When rates change.
    pub steps: Vec<RateStep>,
    /// A radio's sleep.
    pub sleep: Option<RadioSleep>,
    /// Plain TCPs on its bottleneck that send for ever in the work's direction.
    pub others: u8,
}

/// Congestion control of every TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Linux's cubic.
    Cubic,
    /// Linux's BBR, version 1.
    Bbr,
}

/// What the program does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Work {
    /// A download that does not end.
    BulkDown,
    /// An upload that does not end.
    BulkUp,
    /// Downloads of so many bytes, one after the other.
    Short {
        /// Their size.
        bytes: u64,
    },
    /// A download of so many bytes so often.
    Stream {
        /// Bytes written at once.
        bytes: u64,
        /// Time between two writes.
        every_ms: f64,
    },
    /// Messages to the client.
    Messages {
        /// Their size.
        bytes: u64,
        /// Time between two.
        every_ms: f64,
    },
}

impl Work {
    /// Whether the client sends.
    #[must_use]
    pub const fn is_upload(self) -> bool {
        matches!(self, Self::BulkUp)
    }

    /// Whether it is a transfer that does not end.
    #[must_use]
    pub const fn is_bulk(self) -> bool {
        matches!(self, Self::BulkDown | Self::BulkUp)
    }

    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BulkDown => "bulk-down",
            Self::BulkUp => "bulk-up",
            Self::Short { .. } => "short",
            Self::Stream { .. } => "stream",
            Self::Messages { .. } => "messages",
        }
    }
}

/// Conditions, and the work that is done under them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draw {
    /// It follows from this.
    pub seed: u64,
    /// The paths.
    pub paths: Vec<PathDraw>,
    /// Whether the second path goes over the first one's bottleneck, with an RTT of its own.
    pub shared: bool,
    /// Congestion control of every TCP.
    pub control: Control,
    /// Bytes that the receiver holds at most, of a session's stream as of a plain TCP.
    pub buffer_bytes: u64,
    /// What the program does.
    pub work: Work,
    /// How long, in seconds.
    pub time_s: f64,
}

/// Draws of the distributions that conditions have.
struct Dice(ChaCha8Rng);

impl Dice {
    fn happens(&mut self, probability: f64) -> bool {
        self.0.random::<f64>() < probability
    }

    fn log_uniform(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.0.random::<f64>())
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.0.random::<f64>()).ln()
    }

    fn of(&mut self, count: u8) -> u8 {
        1 + (self.0.random::<f64>() * f64::from(count)) as u8
    }
}

impl Draw {
    /// The conditions of a seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
        let count = match dice.0.random::<f64>() {
            share if share < 0.6 => 2,
            share if share < 0.85 => 3,
            _ => 4,
        };
        let mut paths: Vec<PathDraw> = (0..count).map(|_| path(&mut dice)).collect();
        let shared = dice.happens(0.1);
        if shared && let [first, second, ..] = &mut paths[..] {
            let own = second.rtt_ms;
            *second = PathDraw { rtt_ms: own, others: 0, ..first.clone() };
        }
        let control = if dice.happens(0.5) { Control::Cubic } else { Control::Bbr };
        let buffer_bytes = dice.log_uniform(65536.0, 67_108_864.0) as u64;
        let work = work(&mut dice, &paths);
        let mut draw = Self { seed, paths, shared, control, buffer_bytes, work, time_s: 0.0 };
        draw.time_s = draw.time();
        for path in &mut draw.paths {
            path.outages.retain(|outage| outage.at_s < draw.time_s);
            path.steps.retain(|step| step.at_s < draw.time_s);
        }
        draw
    }

    /// Whether a draw that was written by hand can be run.
    ///
    /// # Errors
    ///
    /// The first value that cannot be, with its name.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MOST_PATHS).contains(&self.paths.len()) {
            return Err(format!("paths: {}, 1 to {MOST_PATHS} are allowed", self.paths.len()));
        }
        let within = |name: &str, value: f64, least: f64, most: f64| {
            let fits = (least..=most).contains(&value);
            fits.then_some(())
                .ok_or_else(|| format!("{name}: {value}, {least} to {most} is allowed"))
        };
        within("time_s", self.time_s, 0.001, 3600.0)?;
        within("buffer_bytes", self.buffer_bytes as f64, 1.0, 4e9)?;
        for path in &self.paths {
            within("down_mbps", path.down_mbps, 1e-3, 1e5)?;
            within("up_mbps", path.up_mbps, 1e-3, 1e5)?;
            within("rtt_ms", path.rtt_ms, 1e-3, 1e5)?;
            within("loss", path.loss, 0.0, 1.0)?;
            within("loss_run", path.loss_run, 1.0, 1e6)?;
            within("jitter_ms", path.jitter_ms, 0.0, 1e5)?;
            within("gathered_ms", path.gathered_ms, 0.0, 1e5)?;
            let (Bottleneck::QueueMs(ms) | Bottleneck::PolicerMs(ms)) = path.bottleneck;
            within("queue_ms or policer_ms", ms, 0.0, 1e5)?;
        }
        Ok(())
    }

    /// The longest RTT without queue, in seconds.
    #[must_use]
    pub fn longest_rtt(&self) -> f64 {
        self.paths.iter().map(|path| path.rtt_ms / 1e3).fold(0.0, f64::max)
    }

    /// The same work over one of its paths alone.
    #[must_use]
    pub fn only(&self, path: usize) -> Self {
        let mut paths: Vec<PathDraw> = self.paths.get(path).cloned().into_iter().collect();
        if self.shared
            && path == 1
            && let [only] = &mut paths[..]
        {
            // The first path's others are on this bottleneck too.
            only.others = self.paths[0].others;
        }
        Self { paths, shared: false, ..self.clone() }
    }

    fn time(&self) -> f64 {
        let rtt = self.longest_rtt();
        let time = (BESIDE + RTTS * rtt).min(LONGEST);
        // What a buffer allows in an RTT is carried at most.
        let carried = |path: &PathDraw| {
            let rate = path.rate(self.work.is_upload());
            rate.min(self.buffer_bytes as f64 / (path.rtt_ms / 1e3))
        };
        let rate: f64 = self.paths.iter().map(carried).sum();
        let least = (SHORTEST + FEWEST_RTTS * rtt).min(time);
        (MOST_BYTES / rate).clamp(least, time)
    }
}

fn path(dice: &mut Dice) -> PathDraw {
    let down_mbps = dice.log_uniform(0.06, 2000.0);
    let up_mbps = down_mbps / dice.log_uniform(1.0, 20.0);
    let rtt_ms = dice.log_uniform(1.0, 700.0);
    let queued = dice.happens(0.85);
    let bottleneck = if queued {
        Bottleneck::QueueMs(dice.log_uniform(5.0, 1000.0))
    } else {
        Bottleneck::PolicerMs(dice.log_uniform(10.0, 1000.0))
    };
    let burst_bytes =
        if dice.happens(0.5) { dice.log_uniform(16_384.0, 4_194_304.0) as u64 } else { 0 };
    let lossy = dice.happens(0.5);
    let loss = if lossy { dice.log_uniform(1e-4, 0.05) } else { 0.0 };
    let loss_run = if lossy && dice.happens(0.5) { dice.log_uniform(2.0, 20.0) } else { 1.0 };
    let jittery = dice.happens(0.6);
    let jitter_ms = if jittery { rtt_ms * dice.log_uniform(0.02, 1.0) } else { 0.0 };
    let overtaking = jittery && dice.happens(0.1);
    let gathered_ms = if dice.happens(0.2) { dice.log_uniform(4.0, 150.0) } else { 0.0 };
    PathDraw {
        down_mbps,
        up_mbps,
        rtt_ms,
        bottleneck,
        burst_bytes,
        loss,
        loss_run,
        jitter_ms,
        overtaking,
        gathered_ms,
        outages: outages(dice),
        steps: steps(dice),
        sleep: dice.happens(0.2).then(|| RadioSleep {
            rest_ms: dice.log_uniform(40.0, 500.0),
            wake_ms: dice.log_uniform(10.0, 200.0),
        }),
        others: if dice.happens(0.25) { dice.of(4) } else { 0 },
    }
}

fn outages(dice: &mut Dice) -> Vec<Outage> {
    let mut outages = Vec::new();
    if dice.happens(0.4) {
        let (length, pause) = (dice.log_uniform(0.05, 5.0), dice.log_uniform(0.3, 20.0));
        let mut at_s = dice.exponential(pause);
        while at_s < LONGEST {
            let length_s = dice.exponential(length);
            outages.push(Outage { at_s, length_s });
            at_s += length_s + dice.exponential(pause);
        }
    }
    outages
}

fn steps(dice: &mut Dice) -> Vec<RateStep> {
    let mut steps = Vec::new();
    if dice.happens(0.3) {
        let every = dice.log_uniform(0.2, 10.0);
        let mut at_s = every;
        while at_s < LONGEST {
            steps.push(RateStep { at_s, factor: dice.log_uniform(0.1, 1.0) });
            at_s += every;
        }
    }
    steps
}

fn work(dice: &mut Dice, paths: &[PathDraw]) -> Work {
    let best = paths.iter().map(|path| path.down_mbps).fold(0.0, f64::max) * 125e3;
    match dice.0.random::<f64>() {
        share if share < 0.5 => Work::BulkDown,
        share if share < 0.65 => Work::BulkUp,
        share if share < 0.8 => {
            let bytes = dice.log_uniform(1e4, 1e7).min(best * TRANSFER_TIME);
            Work::Short { bytes: bytes as u64 }
        }
        share if share < 0.9 => {
            let rate = (best * dice.log_uniform(0.05, STREAM_SHARE)).min(STREAM_MBPS * 125e3);
            let every_ms = dice.log_uniform(5.0, 100.0);
            Work::Stream { bytes: ((rate * every_ms / 1e3) as u64).max(1), every_ms }
        }
        _ => {
            let bytes = dice.log_uniform(64.0, 16_384.0) as u64;
            let every_ms = dice.log_uniform(2.0, 100.0);
            let least = bytes as f64 / (best * STREAM_SHARE) * 1e3;
            Work::Messages { bytes, every_ms: every_ms.max(least) }
        }
    }
}

impl PathDraw {
    /// Rate of a direction, in bytes per second.
    #[must_use]
    pub fn rate(&self, upload: bool) -> f64 {
        125e3 * if upload { self.up_mbps } else { self.down_mbps }
    }

    /// Bytes that a token bucket holds, and that a policer passes at once.
    #[must_use]
    pub fn bucket(&self, upload: bool) -> u64 {
        match self.bottleneck {
            Bottleneck::QueueMs(_) => self.burst_bytes,
            Bottleneck::PolicerMs(ms) => {
                let policed = (self.rate(upload) * ms / 1e3).max(LEAST_BYTES);
                policed as u64 + self.burst_bytes
            }
        }
    }

    /// The longest wait in the queue of a direction, in seconds; of a policer 0.
    #[must_use]
    pub fn queue(&self, upload: bool) -> f64 {
        match self.bottleneck {
            Bottleneck::QueueMs(ms) => (ms / 1e3).max(LEAST_BYTES / self.rate(upload)),
            Bottleneck::PolicerMs(_) => 0.0,
        }
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
