//! F15 on whole sessions: what paths take of a bottleneck that they share
//! with each other and with TCPs, and what it costs where they share none.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{Class, Config, CouplingMode, WindowGrowth};
use fbdt_sim::{LinkParameters, Scenario, Simulation, TcpGrowth};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const SERVER: usize = 1;
/// Until what is shared is found out, and then what is measured.
const WARM_UP: Duration = Duration::from_secs(15);
const TIME: Duration = Duration::from_secs(45);

fn ms(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

fn link(mbps: f64, rtt_ms: f64, queue_ms: f64) -> LinkParameters {
    LinkParameters { queue: ms(queue_ms), ..LinkParameters::new(mbps, rtt_ms) }
}

fn scenario(seed: u64, links: Vec<LinkParameters>, mode: CouplingMode, tcp: TcpGrowth) -> Scenario {
    let window_growth =
        if tcp == TcpGrowth::Reno { WindowGrowth::Reno } else { WindowGrowth::Cubic };
    let config = Config { coupling: mode, window_growth, ..Config::default() };
    let mut scenario = Scenario::new(seed, links);
    scenario.config = (config.clone(), config);
    scenario.tcp = tcp;
    scenario.log = false;
    scenario
}

/// One bottleneck: `rtts` of the paths, TCPs beside them.
#[derive(Clone, Debug)]
struct Shared {
    mbps: f64,
    queue_ms: f64,
    rtts: Vec<f64>,
    tcps: usize,
    growth: TcpGrowth,
    seed: u64,
}

impl Shared {
    /// TCPs with the RTTs of the paths in turn, started one after the other.
    fn add_tcps(&self, simulation: &mut Simulation, count: usize) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        (0..count)
            .map(|number| {
                let rtt = ms(self.rtts[number % self.rtts.len()]);
                simulation.add_tcp_beside(0, rtt, self.growth, ms(rng.random_range(0.0..2000.0)))
            })
            .collect()
    }

    fn simulation(&self, mode: CouplingMode) -> Simulation {
        let first = link(self.mbps, self.rtts[0], self.queue_ms);
        let scenario = scenario(self.seed, vec![first], mode, self.growth);
        let mut simulation = Simulation::new(scenario).unwrap();
        for (number, rtt) in self.rtts.iter().enumerate().skip(1) {
            simulation.add_path_beside(0, ms(*rtt), self.seed + number as u64);
        }
        simulation
    }

    /// Goodput of a session with `mode` and of the TCPs' mean, Mbit/s, and
    /// the share of the time in which the paths were coupled.
    fn session(&self, mode: CouplingMode) -> (f64, f64, f64) {
        let mut simulation = self.simulation(mode);
        let tcps = self.add_tcps(&mut simulation, self.tcps);
        let run = measure(&mut simulation, &tcps);
        (run.goodput, run.tcps / self.tcps.max(1) as f64, run.coupled)
    }

    /// What one TCP more would have in the session's place: the best of the
    /// paths' RTTs.
    fn one_tcp(&self) -> f64 {
        let mut simulation = self.simulation(CouplingMode::Off);
        let mut tcps = self.add_tcps(&mut simulation, self.tcps);
        let best = self.rtts.iter().copied().fold(f64::MAX, f64::min);
        tcps.push(simulation.add_tcp_beside(0, ms(best), self.growth, Duration::ZERO));
        simulation.run(WARM_UP).unwrap();
        let before = simulation.carried(tcps[self.tcps]);
        simulation.run(TIME).unwrap();
        mbps(simulation.carried(tcps[self.tcps]) - before)
    }
}

fn mbps(bytes: u64) -> f64 {
    bytes as f64 * 8e-6 / TIME.as_secs_f64()
}

#[derive(Debug)]
struct Run {
    goodput: f64,
    tcps: f64,
    /// Share of the time in which any paths were coupled.
    coupled: f64,
    /// First time that they were, in seconds.
    first: Option<f64>,
}

fn is_coupled(simulation: &Simulation) -> bool {
    simulation.stats()[SERVER].paths.iter().any(|path| !path.shares_with.is_empty())
}

fn measure(simulation: &mut Simulation, tcps: &[usize]) -> Run {
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, 1 << 40);
    let step = Duration::from_millis(500);
    let mut first = None;
    let mut steps = |simulation: &mut Simulation, time: Duration| {
        let count = time.as_millis() / step.as_millis();
        let mut coupled = 0;
        for _ in 0..count {
            simulation.run(step).unwrap();
            if is_coupled(simulation) {
                coupled += 1;
                first.get_or_insert(simulation.elapsed().as_secs_f64());
            }
        }
        coupled as f64 / count as f64
    };
    steps(simulation, WARM_UP);
    let carried = |s: &Simulation| tcps.iter().map(|tcp| s.carried(*tcp)).sum::<u64>();
    let before = (simulation.delivered()[0], carried(simulation));
    let coupled = steps(simulation, TIME);
    Run {
        goodput: mbps(simulation.delivered()[0] - before.0),
        tcps: mbps(carried(simulation) - before.1),
        coupled,
        first,
    }
}

#[test]
fn explore_shared() {
    for (mbps, queue_ms) in [(20.0, 20.0), (100.0, 20.0), (100.0, 40.0)] {
        for tcps in 1..=4 {
            for seed in 0..2 {
                let shared = Shared {
                    mbps,
                    queue_ms,
                    rtts: vec![20.0, 20.0],
                    tcps,
                    growth: TcpGrowth::Cubic,
                    seed,
                };
                let one = shared.one_tcp();
                let off = shared.session(CouplingMode::Off);
                let fair = shared.session(CouplingMode::Fair);
                println!(
                    "{mbps} q{queue_ms} tcps {tcps} seed {seed}: one {one:.1} fair {:.2} (coupled {:.2}) off {:.2}; of even {:.2}",
                    fair.0 / one, fair.2, off.0 / one, fair.0 / (mbps / (tcps + 1) as f64)
                );
            }
        }
    }
}
