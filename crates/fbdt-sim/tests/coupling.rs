//! F17 on whole sessions: what paths take of a bottleneck that they share
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

fn mbps(bytes: u64) -> f64 {
    bytes as f64 * 8e-6 / TIME.as_secs_f64()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count)
}

/// What came of a run.
#[derive(Debug)]
struct Run {
    /// Of the session, Mbit/s.
    goodput: f64,
    /// Share of the measured time in which any paths were coupled.
    coupled: f64,
    /// Whether they were at any time.
    ever: bool,
}

fn shares_with(simulation: &Simulation, path: u8) -> Vec<u8> {
    let stats = &simulation.stats()[SERVER];
    let of = stats.paths.iter().find(|p| p.id.0 == path).unwrap();
    of.shares_with.iter().map(|id| id.0).collect()
}

/// Runs in steps; says in which share of them any paths were coupled.
fn watch(simulation: &mut Simulation, time: Duration) -> f64 {
    let step = Duration::from_millis(500);
    let steps = time.as_millis() / step.as_millis();
    let mut coupled = 0;
    for _ in 0..steps {
        simulation.run(step).unwrap();
        let stats = &simulation.stats()[SERVER];
        coupled += u32::from(stats.paths.iter().any(|path| !path.shares_with.is_empty()));
    }
    f64::from(coupled) / steps as f64
}

fn download(simulation: &mut Simulation) {
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, 1 << 40);
}

fn measure(simulation: &mut Simulation) -> Run {
    download(simulation);
    let early = watch(simulation, WARM_UP);
    let before = simulation.delivered()[0];
    let coupled = watch(simulation, TIME);
    Run { goodput: mbps(simulation.delivered()[0] - before), coupled, ever: early + coupled > 0.0 }
}

/// One bottleneck: the RTTs of the paths over it, and TCPs beside them.
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
    /// Two paths with TCPs beside them.
    fn two(mbps: f64, queue_ms: f64, tcps: usize, seed: u64) -> Self {
        Self { mbps, queue_ms, rtts: vec![20.0, 20.0], tcps, growth: TcpGrowth::Cubic, seed }
    }

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

    fn run(&self, mode: CouplingMode) -> Run {
        let mut simulation = self.simulation(mode);
        self.add_tcps(&mut simulation, self.tcps);
        measure(&mut simulation)
    }

    /// What a TCP has if one more is in the session's place: the mean of all.
    fn one_tcp(&self) -> f64 {
        let mut simulation = self.simulation(CouplingMode::Off);
        let tcps = self.add_tcps(&mut simulation, self.tcps + 1);
        simulation.run(WARM_UP).unwrap();
        let carried = |s: &Simulation| tcps.iter().map(|tcp| s.carried(*tcp)).sum::<u64>();
        let before = carried(&simulation);
        simulation.run(TIME).unwrap();
        mbps(carried(&simulation) - before) / tcps.len() as f64
    }

    /// The session's part of one TCP's share.
    fn share(&self, mode: CouplingMode) -> f64 {
        self.run(mode).goodput / self.one_tcp()
    }
}

/// Bottlenecks of their own, each with TCPs of its own.
#[derive(Clone, Debug)]
struct Disjoint {
    links: Vec<LinkParameters>,
    tcps: Vec<usize>,
    seed: u64,
}

impl Disjoint {
    /// Rates, RTTs, queues, loss, rates that change, and TCPs beside, by `seed`.
    fn random(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut any = || {
            let rate = rng.random_range(10.0..100.0);
            let mut link = link(rate, rng.random_range(5.0..60.0), rng.random_range(10.0..60.0));
            match rng.random_range(0..4) {
                0 => link.loss = 0.002,
                1 => {
                    // A client that moves: another rate every 0.2 to 2 s.
                    let step = |_| {
                        let part = rng.random_range(0.2..1.0);
                        (ms(rng.random_range(200.0..2000.0)), part * rate * 125e3)
                    };
                    link.trace = (0..20).map(step).collect();
                }
                _ => {}
            }
            link
        };
        let links = vec![any(), any()];
        let tcps = (0..2).map(|_| rng.random_range(0..4)).collect();
        Self { links, tcps, seed }
    }

    /// Two links that nothing tells apart, filled at the same time.
    fn alike(tcps: usize, seed: u64) -> Self {
        Self { links: vec![link(50.0, 20.0, 20.0); 2], tcps: vec![tcps; 2], seed }
    }

    fn run(&self, mode: CouplingMode) -> Run {
        let scenario = scenario(self.seed, self.links.clone(), mode, TcpGrowth::Cubic);
        let mut simulation = Simulation::new(scenario).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let alike = self.links[0] == self.links[1];
        for (path, count) in self.tcps.iter().enumerate() {
            for number in 0..*count {
                let random = rng.random_range(0.0..2000.0);
                let after = if alike { 100.0 * number as f64 } else { random };
                let rtt = self.links[path].delay * 2;
                simulation.add_tcp_beside(path, rtt, TcpGrowth::Cubic, ms(after));
            }
        }
        measure(&mut simulation)
    }
}

#[test]
fn f17_two_paths_take_one_tcps_share_of_a_bottleneck() {
    let shares: Vec<(f64, f64)> = (1..=4)
        .map(|tcps| {
            // One run's share is anything from 0.75 to 1.3: who loses when is chance.
            let runs: Vec<(f64, f64)> = (0..5)
                .map(|seed| {
                    let shared = Shared::two(50.0, 20.0, tcps, seed);
                    let one = shared.one_tcp();
                    let share = |mode| shared.run(mode).goodput / one;
                    (share(CouplingMode::Fair), share(CouplingMode::Off))
                })
                .collect();
            let (fair, off) = (mean(runs.iter().map(|r| r.0)), mean(runs.iter().map(|r| r.1)));
            println!("beside {tcps}: {fair:.2} of a TCP's share, {off:.2} uncoupled");
            (fair, off)
        })
        .collect();
    for (fair, off) in &shares {
        assert!((0.6..=1.1).contains(fair), "{fair} of one TCP's share");
        assert!(fair < off, "{fair} of one TCP's share, {off} uncoupled");
    }
    // Beside one TCP alone it is about 1.15, and five runs' mean may be 1.05.
    let off = mean(shares.iter().map(|share| share.1));
    assert!(off > 1.15, "there would be nothing to couple: {off}");
}

/// Two seconds of queueing delays are compared, and a trial takes slots of two RTTs: a transfer that
/// is over before is never coupled.
#[test]
fn f17_paths_are_coupled_after_nearly_three_seconds_at_the_earliest() {
    // The seconds are what docs/coupling.md says.
    for (mbps, queue_ms, rtt, seconds) in
        [(200.0, 10.0, 5.0, 3.0), (100.0, 40.0, 20.0, 4.0), (50.0, 60.0, 60.0, 6.0)]
    {
        let coupled_after = |seed| {
            let shared = Shared { rtts: vec![rtt, rtt], ..Shared::two(mbps, queue_ms, 1, seed) };
            let mut simulation = shared.simulation(CouplingMode::Fair);
            shared.add_tcps(&mut simulation, shared.tcps);
            download(&mut simulation);
            (1..=400).find_map(|step| {
                simulation.run(ms(100.0)).unwrap();
                (!shares_with(&simulation, 0).is_empty()).then(|| f64::from(step) / 10.0)
            })
        };
        let mut times: Vec<f64> = (0..5).map(|seed| coupled_after(seed).unwrap()).collect();
        times.sort_by(f64::total_cmp);
        println!("RTT {rtt} ms: coupled after {times:?} s");
        assert!(times[0] > 2.5 && times[0].round() == seconds, "{times:?}");
        assert!(times[2] < 10.0, "{times:?}");
    }
}

#[test]
fn f17_so_do_three_paths_with_rtts_of_their_own_and_reno() {
    for (rtts, growth) in
        [(vec![20.0, 30.0, 40.0], TcpGrowth::Cubic), (vec![20.0, 20.0], TcpGrowth::Reno)]
    {
        let shares: Vec<f64> = (0..8)
            .map(|seed| {
                let rtts = rtts.clone();
                let shared = Shared { mbps: 50.0, queue_ms: 40.0, rtts, tcps: 2, growth, seed };
                shared.share(CouplingMode::Fair)
            })
            .collect();
        // Means of eight still move by a standard error; those of 24 are 1.03 and 0.94.
        let (share, count) = (mean(shares.iter().copied()), shares.len() as f64);
        let squares: f64 = shares.iter().map(|one| (one - share).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        println!("{rtts:?} {growth:?}: {share:.2} of a TCP's share, +-{error:.2}");
        assert!(share <= 1.1 + error, "{rtts:?} {growth:?}: {share} +-{error} of one TCP's share");
        assert!(share >= 0.7, "{rtts:?} {growth:?}: {share} of one TCP's share");
    }
}

#[test]
fn f17_disjoint_paths_keep_the_sum_and_are_never_coupled() {
    let (mut off, mut fair, mut coupled) = (0.0, 0.0, 0);
    for seed in 0..24 {
        let disjoint = Disjoint::random(seed);
        off += disjoint.run(CouplingMode::Off).goodput;
        let run = disjoint.run(CouplingMode::Fair);
        fair += run.goodput;
        coupled += u32::from(run.ever);
    }
    println!("24 seeds: {:.3} of the sum, {coupled} wrongly coupled", fair / off);
    assert!(fair >= 0.97 * off, "{fair} of {off} Mbit/s");
    assert_eq!(coupled, 0);
}

#[test]
fn f17_links_that_nothing_tells_apart_are_not_taken_for_one() {
    for tcps in 0..4 {
        let run = Disjoint::alike(tcps, 1).run(CouplingMode::Fair);
        assert!(!run.ever, "{tcps} TCPs on each");
    }
}

#[test]
fn f17_the_meeting_point_moves_to_the_path_that_shares_nothing() {
    let share_of_last = |mode, seed| {
        let shared = Shared { rtts: vec![20.0, 20.0], ..Shared::two(50.0, 40.0, 2, seed) };
        let mut simulation = shared.simulation(mode);
        simulation.add_path(link(30.0, 20.0, 20.0), 9);
        shared.add_tcps(&mut simulation, 2);
        let run = measure(&mut simulation);
        let sent = |id: u8| {
            let stats = simulation.stats();
            stats[SERVER].paths.iter().find(|p| p.id.0 == id).unwrap().new_bytes as f64
        };
        (sent(2) / (sent(0) + sent(1) + sent(2)), run)
    };
    let runs = |mode| (1..=3).map(|seed| share_of_last(mode, seed)).collect::<Vec<_>>();
    let (off, fair) = (runs(CouplingMode::Off), runs(CouplingMode::Fair));
    let mean_share = |runs: &[(f64, Run)]| mean(runs.iter().map(|run| run.0));
    let (off, share) = (mean_share(&off), mean_share(&fair));
    assert!(share > off * 1.05, "{share} of the bytes instead of {off}");
    for (_, run) in fair {
        assert!(run.goodput > 0.95 * 30.0, "{run:?}");
    }
}

#[test]
fn f17_a_path_that_moves_to_a_link_of_its_own_is_let_go() {
    let shared = Shared::two(50.0, 40.0, 1, 1);
    let mut simulation = shared.simulation(CouplingMode::Fair);
    shared.add_tcps(&mut simulation, 1);
    download(&mut simulation);
    simulation.run(Duration::from_secs(30)).unwrap();
    assert_eq!(shares_with(&simulation, 0), [1]);
    // Only the client knows; the server sees a new connection of the path.
    simulation.readdress_path(1, link(50.0, 25.0, 20.0), 7);
    simulation.run(Duration::from_secs(90)).unwrap();
    assert!(shares_with(&simulation, 0).is_empty());
    let before = simulation.delivered()[0];
    simulation.run(Duration::from_secs(20)).unwrap();
    let goodput = (simulation.delivered()[0] - before) as f64 * 8e-6 / 20.0;
    assert!(goodput > 60.0, "{goodput} Mbit/s of 50 and a half of 50");
}

/// What one uncoupled path has beside a TCP that fills a deep queue, of what a TCP in its place has: F7 leaves a
/// path less of such a queue than TCP takes.
#[test]
fn f7_a_path_keeps_a_part_of_a_deep_queue_that_another_fills() {
    for (rtt, queue_ms, least) in [(20.0, 40.0, 0.7), (20.0, 100.0, 0.4), (40.0, 160.0, 0.3)] {
        let runs = (0..2).map(|seed| {
            let shared = Shared { rtts: vec![rtt], ..Shared::two(50.0, queue_ms, 1, seed) };
            shared.share(CouplingMode::Off)
        });
        let share = mean(runs);
        println!("RTT {rtt} ms, queue {queue_ms} ms: {share:.2} of a TCP's share");
        assert!(share >= least, "RTT {rtt} ms, queue {queue_ms} ms: {share} of a TCP's share");
    }
}

/// Shares and sums over more rates, queues and seeds, for people: `cargo test -p fbdt-sim
/// --release --test coupling -- --ignored --nocapture table`.
#[test]
#[ignore = "a table for people, 15 minutes of virtual time a row"]
fn table() {
    println!("| Mbit/s | queue | TCPs beside | coupled of the time | fair | uncoupled |");
    println!("|---|---|---|---|---|---|");
    for (mbps, queue_ms) in [(20.0, 20.0), (20.0, 60.0), (50.0, 40.0), (100.0, 20.0)] {
        for tcps in 1..=4 {
            let runs: Vec<(f64, f64, f64)> = (0..5)
                .map(|seed| {
                    let shared = Shared::two(mbps, queue_ms, tcps, seed);
                    let (one, fair) = (shared.one_tcp(), shared.run(CouplingMode::Fair));
                    let off = shared.run(CouplingMode::Off).goodput / one;
                    (fair.coupled, fair.goodput / one, off)
                })
                .collect();
            let [coupled, fair, off] = [
                mean(runs.iter().map(|r| r.0)),
                mean(runs.iter().map(|r| r.1)),
                mean(runs.iter().map(|r| r.2)),
            ];
            println!("| {mbps} | {queue_ms} ms | {tcps} | {coupled:.2} | {fair:.2} | {off:.2} |");
        }
    }
    let runs: Vec<(f64, f64, bool)> = (1000..1100)
        .map(|seed| {
            let disjoint = Disjoint::random(seed);
            let fair = disjoint.run(CouplingMode::Fair);
            (disjoint.run(CouplingMode::Off).goodput, fair.goodput, fair.ever)
        })
        .collect();
    let sum = |of: fn(&(f64, f64, bool)) -> f64| runs.iter().map(of).sum::<f64>();
    let wrong = runs.iter().filter(|r| r.2).count();
    println!(
        "{} pairs of disjoint links: {:.3} of the uncoupled sum, {wrong} ever coupled",
        runs.len(),
        sum(|r| r.1) / sum(|r| r.0)
    );
}
