//! A draw as a simulation: as a session over all of its paths, or as a plain TCP over one.

use std::time::Duration;

use fbdt_proto::{Config, SchedulerKind};
use fbdt_sim::{
    Impairments, LinkChange, LinkParameters, PlainOptions, PlainPath, Scenario, Simulation, Sleep,
    TcpGrowth, Violation,
};

use crate::draw::{Bottleneck, Control, Draw, PathDraw};

/// Paths are dialled for this long, and five of the longest RTTs, before the work begins.
const DIALLING: f64 = 1.0;
/// Gathered acknowledgements pass in this part of their time.
const OPEN: f64 = 0.02;
/// RTT of other TCPs on a path's bottleneck, as a share of its own.
const OTHERS_RTT: f64 = 1.0;

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.max(0.0))
}

/// When the work begins.
pub(crate) fn beginning(draw: &Draw) -> Duration {
    seconds(DIALLING + 5.0 * draw.longest_rtt())
}

const fn growth(control: Control) -> TcpGrowth {
    match control {
        Control::Cubic => TcpGrowth::Linux,
        Control::Bbr => TcpGrowth::Bbr,
    }
}

/// Sockets are paced where the RTT is this long or longer, as the product's are.
fn paced(path: &PathDraw) -> bool {
    path.rtt_ms >= 1.0
}

/// Both directions of a path: client to server, server to client.
fn links(draw: &Draw, path: &PathDraw) -> [LinkParameters; 2] {
    [true, false].map(|up| {
        let rate = path.rate(up);
        let begins = beginning(draw);
        let steps = path.steps.iter();
        let impairments = Impairments {
            jitter: seconds(path.jitter_ms / 1e3),
            overtaking: path.overtaking,
            burst: path.bucket(up),
            policer: matches!(path.bottleneck, Bottleneck::PolicerMs(_)),
            loss_run: path.loss_run,
            rates: steps.map(|step| (begins + seconds(step.at_s), rate * step.factor)).collect(),
            sleep: path.sleep.map(|sleep| Sleep {
                rest: seconds(sleep.rest_ms / 1e3),
                wake: seconds(sleep.wake_ms / 1e3),
            }),
        };
        // Acknowledgements go the other way than the work.
        let gathered = path.gathered_ms > 0.0 && up != draw.work.is_upload();
        let time = seconds(path.gathered_ms / 1e3);
        LinkParameters {
            queue: seconds(path.queue(up)),
            loss: path.loss,
            aggregation: gathered.then(|| (time.mul_f64(1.0 - OPEN), time)),
            impairments,
            ..LinkParameters::new(rate * 8e-6, path.rtt_ms)
        }
    })
}

fn link_seed(draw: &Draw, path: usize) -> u64 {
    draw.seed.wrapping_mul(1000).wrapping_add(path as u64)
}

/// Begins and ends of outages by time, each with its path.
pub(crate) fn outages(draw: &Draw) -> Vec<(Duration, usize, LinkChange)> {
    let begins = beginning(draw);
    let mut changes = Vec::new();
    for (path, drawn) in draw.paths.iter().enumerate() {
        for outage in &drawn.outages {
            let at = begins + seconds(outage.at_s);
            changes.push((at, path, LinkChange::Blackout(true)));
            changes.push((at + seconds(outage.length_s), path, LinkChange::Blackout(false)));
        }
    }
    changes.sort_by_key(|(at, ..)| *at);
    changes
}

/// A scheduler with its rules, or the product's default.
#[must_use]
pub(crate) fn config(draw: &Draw, base: &Config) -> Config {
    base.clone().with_stream_buffer(draw.buffer_bytes)
}

/// The rules that a scheduler is published with; of the product's own the default.
#[must_use]
pub(crate) fn rules(kind: SchedulerKind) -> Config {
    Config::default().with_scheduler(kind)
}

/// A session over all paths, before it does anything.
pub(crate) fn session(draw: &Draw, base: &Config, log: bool) -> Result<Simulation, String> {
    let config = config(draw, base);
    let scenario = Scenario {
        config: (config.clone(), config),
        tcp: growth(draw.control),
        paced: draw.paths.iter().all(paced),
        log,
        lingering_allowed: true,
        ..Scenario::new(draw.seed, Vec::new())
    };
    let mut simulation = Simulation::new(scenario).map_err(|error| error.to_string())?;
    for (index, path) in draw.paths.iter().enumerate() {
        let seed = link_seed(draw, index);
        if draw.shared && index == 1 {
            simulation.add_path_beside(0, seconds(path.rtt_ms / 1e3), seed);
        } else {
            simulation.add_path_of(links(draw, path), seed);
        }
    }
    for (index, path) in draw.paths.iter().enumerate() {
        for _ in 0..path.others {
            let rtt = seconds(path.rtt_ms / 1e3 * OTHERS_RTT);
            let (growth, begins) = (growth(draw.control), beginning(draw));
            if draw.work.is_upload() {
                simulation.add_upload_beside(index, rtt, growth, begins);
            } else {
                simulation.add_tcp_beside(index, rtt, growth, begins);
            }
        }
    }
    Ok(simulation)
}

/// A plain TCP over one path. Another `chance` has other losses and jitter.
pub(crate) fn plain(draw: &Draw, index: usize, chance: u64) -> PlainPath {
    let path = &draw.paths[index];
    let options = PlainOptions {
        growth: growth(draw.control),
        paced: paced(path),
        buffer: draw.buffer_bytes,
        upload: draw.work.is_upload(),
    };
    let seed = link_seed(draw, index).wrapping_add(chance << 50);
    let mut plain = PlainPath::new(links(draw, path), seed, options);
    // The first path's others are on the bottleneck that the second one shares.
    let others = if draw.shared && index == 1 { draw.paths[0].others } else { path.others };
    for _ in 0..others {
        let rtt = seconds(path.rtt_ms / 1e3 * OTHERS_RTT);
        plain.add_tcp_beside(rtt, growth(draw.control), beginning(draw));
    }
    plain
}

/// What is run in steps, with outages in between.
pub(crate) trait Stage {
    /// Runs for `time`.
    fn run(&mut self, time: Duration) -> Result<(), Violation>;
    /// Virtual time since the start.
    fn elapsed(&self) -> Duration;
    /// Changes both directions of a path.
    fn change(&mut self, path: usize, change: &LinkChange);
}

impl Stage for Simulation {
    fn run(&mut self, time: Duration) -> Result<(), Violation> {
        Self::run(self, time)
    }

    fn elapsed(&self) -> Duration {
        Self::elapsed(self)
    }

    fn change(&mut self, path: usize, change: &LinkChange) {
        Self::change(self, path, change, true, true);
    }
}

/// A plain TCP over the path with this number.
pub(crate) struct Alone {
    pub(crate) tcp: PlainPath,
    pub(crate) path: usize,
}

impl Stage for Alone {
    fn run(&mut self, time: Duration) -> Result<(), Violation> {
        self.tcp.run(time);
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        self.tcp.elapsed()
    }

    fn change(&mut self, path: usize, change: &LinkChange) {
        if path == self.path {
            self.tcp.change(change);
        }
    }
}

/// Outages that are still to come.
pub(crate) struct Timeline {
    changes: std::iter::Peekable<std::vec::IntoIter<(Duration, usize, LinkChange)>>,
}

impl Timeline {
    pub(crate) fn of(draw: &Draw) -> Self {
        Self { changes: outages(draw).into_iter().peekable() }
    }

    /// Runs until `end` at most, and until `done`; says whether it was.
    pub(crate) fn run_until<S: Stage>(
        &mut self,
        stage: &mut S,
        end: Duration,
        step: Duration,
        mut done: impl FnMut(&mut S) -> bool,
    ) -> Result<bool, Violation> {
        while stage.elapsed() < end {
            let now = stage.elapsed();
            while let Some((_, path, change)) = self.changes.next_if(|(at, ..)| *at <= now) {
                stage.change(path, &change);
            }
            let next = self.changes.peek().map_or(end, |(at, ..)| *at).min(end);
            stage.run(step.min(next - now))?;
            if done(stage) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
