//! Coupling on queues that are computed: whole paths, no session.

use alloc::vec::Vec;
use core::time::Duration;

use fbdt_units::{Instant, PathId, SubflowSample};
use proptest::prelude::*;

use super::{Coupling, Observation, mix};
use crate::settings::WindowGrowth;

const MSS: f64 = 1448.0;
/// The longest queue.
const QUEUE_MS: f64 = 40.0;

/// A bottleneck of `rate` bytes per millisecond; `load` is what others keep in
/// it, in bytes, at a time in milliseconds.
struct Bottleneck {
    rate: f64,
    load: fn(f64) -> f64,
}

struct Path {
    base_ms: f64,
    window: f64,
    bottleneck: usize,
    held: f64,
    srtt_ms: f64,
    acked: f64,
    lost: u64,
    window_based: bool,
}

impl Path {
    fn over(bottleneck: usize, base_ms: f64, window: f64) -> Self {
        let srtt_ms = base_ms;
        Self {
            base_ms,
            window,
            bottleneck,
            held: 0.0,
            srtt_ms,
            acked: 0.0,
            lost: 0,
            window_based: true,
        }
    }
}

/// Paths that hold what they may, over queues as long as what is held there.
struct Network {
    coupling: Coupling,
    bottlenecks: Vec<Bottleneck>,
    paths: Vec<Path>,
    ms: u64,
    /// Milliseconds in which any paths were coupled.
    coupled: u64,
}

impl Network {
    fn new(bottlenecks: Vec<Bottleneck>, paths: Vec<Path>) -> Self {
        let coupling = Coupling::new(WindowGrowth::Cubic);
        Self { coupling, bottlenecks, paths, ms: 0, coupled: 0 }
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 1000 {
            self.ms += 1;
            let now = Instant::from_nanos(1_000_000_000 + self.ms * 1_000_000);
            let loads: Vec<f64> = self
                .bottlenecks
                .iter()
                .enumerate()
                .map(|(index, b)| {
                    let own = self.paths.iter().filter(|p| p.bottleneck == index);
                    own.map(|p| p.held).sum::<f64>() + (b.load)(self.ms as f64)
                })
                .collect();
            for (index, path) in self.paths.iter_mut().enumerate() {
                let rate = self.bottlenecks[path.bottleneck].rate;
                let queue_ms = (loads[path.bottleneck] / rate - path.base_ms).max(0.0);
                // A full queue takes something of everybody.
                path.lost += u64::from(queue_ms > QUEUE_MS);
                let rtt = path.base_ms + queue_ms;
                path.srtt_ms += (rtt - path.srtt_ms) / 8.0;
                let id = PathId(index as u8);
                let allowed = self.coupling.allowance(id).map_or(f64::MAX, |b| b as f64);
                let delivered = path.held / rtt;
                path.acked += delivered;
                path.held = (path.held - delivered).max(0.0);
                path.held += (path.window.min(allowed) - path.held).max(0.0);
                self.coupling.observe(now, &observation(id, path));
            }
            let shares = |p: u8| self.coupling.sharers(PathId(p)).next().is_some();
            self.coupled += u64::from((0..self.paths.len() as u8).any(shares));
        }
    }

    fn shares(&self, path: u8) -> Vec<u8> {
        self.coupling.sharers(PathId(path)).map(|id| id.0).collect()
    }
}

fn observation(path: PathId, state: &Path) -> Observation {
    let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
    let sample = SubflowSample {
        srtt: ms(state.srtt_ms),
        min_rtt: ms(state.base_ms),
        cwnd: state.window as u64,
        ssthresh: u64::MAX,
        mss: MSS as u32,
        acked_total: state.acked as u64,
        retransmitted_total: state.lost,
        ..SubflowSample::default()
    };
    let (in_flight, limit) = (state.held as u64, state.window as u64);
    Observation { path, sample, in_flight, limit, window_based: state.window_based }
}

/// A saw tooth of a TCP's window with the noise of its bursts.
fn tooth(ms: f64, period_ms: f64, salt: u64) -> f64 {
    let noise = (mix((ms / 30.0) as u64 * 31 + salt) % 1000) as f64 / 1000.0;
    60_000.0 + 25_000.0 * (ms % period_ms) / period_ms + 8_000.0 * noise
}

fn first_load(ms: f64) -> f64 {
    tooth(ms, 2300.0, 1)
}

fn second_load(ms: f64) -> f64 {
    tooth(ms, 2700.0, 2)
}

/// 20 Mbit/s.
fn bottleneck(load: fn(f64) -> f64) -> Bottleneck {
    Bottleneck { rate: 2500.0, load }
}

#[test]
fn f17_two_paths_over_one_queue_are_coupled_and_hold_what_one_would() {
    let paths = alloc::vec![Path::over(0, 20.0, 50_000.0), Path::over(0, 20.0, 50_000.0)];
    let mut network = Network::new(alloc::vec![bottleneck(first_load)], paths);
    network.run(30);
    assert_eq!(network.shares(0), [1]);
    assert_eq!(network.shares(1), [0]);
    let held: f64 = network.paths.iter().map(|p| p.held).sum();
    assert!(held < 90_000.0, "{held}, and it was 100 kB uncoupled");
    assert!(network.paths.iter().all(|p| p.held > 4_000.0), "none starves");
}

#[test]
fn f17_paths_over_two_queues_are_never_coupled() {
    let paths = alloc::vec![Path::over(0, 20.0, 50_000.0), Path::over(1, 20.0, 50_000.0)];
    let queues = alloc::vec![bottleneck(first_load), bottleneck(second_load)];
    let mut network = Network::new(queues, paths);
    network.run(300);
    assert_eq!(network.coupled, 0);
}

#[test]
fn f17_two_queues_under_the_very_same_load_are_not_taken_for_one() {
    let paths = alloc::vec![Path::over(0, 20.0, 50_000.0), Path::over(1, 20.0, 50_000.0)];
    let queues = alloc::vec![bottleneck(first_load), bottleneck(first_load)];
    let mut network = Network::new(queues, paths);
    network.run(300);
    assert_eq!(network.coupled, 0, "correlation 1, but a trial shows that they are two");
}

#[test]
fn f17_an_idle_path_is_coupled_with_nobody() {
    let paths = alloc::vec![Path::over(0, 20.0, 50_000.0), Path::over(0, 20.0, 0.0)];
    let mut network = Network::new(alloc::vec![bottleneck(first_load)], paths);
    network.run(60);
    assert_eq!(network.coupled, 0);
}

#[test]
fn f17_without_a_queue_there_is_nothing_to_decide() {
    let paths = alloc::vec![Path::over(0, 20.0, 10_000.0), Path::over(0, 20.0, 10_000.0)];
    let free = Bottleneck { rate: 2500.0, load: |_| 0.0 };
    let mut network = Network::new(alloc::vec![free], paths);
    network.run(60);
    assert_eq!(network.coupled, 0);
    assert_eq!(network.coupling.allowance(PathId(0)), None);
}

#[test]
fn f17_four_paths_over_two_queues_are_two_groups() {
    let paths = [(0, 20.0), (1, 30.0), (0, 25.0), (1, 20.0)]
        .map(|(bottleneck, base)| Path::over(bottleneck, base, 40_000.0));
    let queues = alloc::vec![bottleneck(first_load), bottleneck(second_load)];
    let mut network = Network::new(queues, paths.into());
    network.run(60);
    assert_eq!((network.shares(0), network.shares(1)), (alloc::vec![2], alloc::vec![3]));
}

#[test]
fn f17_a_path_that_moves_to_a_queue_of_its_own_is_let_go() {
    let paths = alloc::vec![Path::over(0, 20.0, 50_000.0), Path::over(0, 20.0, 50_000.0)];
    let queues = alloc::vec![bottleneck(first_load), bottleneck(second_load)];
    let mut network = Network::new(queues, paths);
    network.run(30);
    assert_eq!(network.shares(0), [1]);
    network.paths[1].bottleneck = 1;
    network.run(90);
    assert!(network.shares(0).is_empty());
    assert!(network.paths[1].held > 40_000.0, "and holds its window again");
}

#[test]
fn f17_a_path_without_a_loss_based_window_is_not_coupled() {
    let mut paths = alloc::vec![Path::over(0, 20.0, 50_000.0), Path::over(0, 20.0, 50_000.0)];
    paths[1].window_based = false;
    let mut network = Network::new(alloc::vec![bottleneck(first_load)], paths);
    network.run(60);
    assert_eq!(network.coupled, 0);
    network.paths[1].window_based = true;
    network.run(30);
    assert_eq!(network.shares(0), [1]);
    network.paths[1].window_based = false;
    network.run(1);
    assert!(network.shares(0).is_empty(), "bbr took it over");
}

#[test]
fn f17_a_path_that_is_gone_frees_the_others() {
    let paths = alloc::vec![Path::over(0, 20.0, 50_000.0), Path::over(0, 20.0, 50_000.0)];
    let mut network = Network::new(alloc::vec![bottleneck(first_load)], paths);
    network.run(30);
    assert_eq!(network.shares(0), [1]);
    network.coupling.restart(PathId(1));
    assert_eq!(network.shares(0), [1], "a new connection to the same place changes nothing");
    let now = Instant::from_nanos(40_000_000_000);
    network.coupling.forget(now, PathId(1));
    assert!(network.shares(0).is_empty());
    assert_eq!(network.coupling.allowance(PathId(0)), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever TCP says in whatever order: no path is left with less than a
    /// frame, and a path that shares with nobody is held back only while it
    /// is tried.
    #[test]
    fn f17_no_path_starves(
        steps in prop::collection::vec(
            (0u8..4, 0u64..200, 0u64..200_000, 0u64..60, 0u64..3, 0u8..20), 1..400),
    ) {
        let mut coupling = Coupling::new(WindowGrowth::Cubic);
        let mut now = Instant::from_nanos(1_000_000_000);
        let mut totals = [(0u64, 0u64); 4];
        for (path, ms, held, queue_ms, lost, what) in steps {
            now = now + Duration::from_millis(ms);
            let id = PathId(path);
            match what {
                0 => coupling.forget(now, id),
                1 => {
                    totals[usize::from(path)] = (0, 0);
                    coupling.restart(id);
                }
                _ => {
                    let total = &mut totals[usize::from(path)];
                    total.0 += held / 2;
                    total.1 += lost;
                    let sample = SubflowSample {
                        srtt: Duration::from_millis(10 + queue_ms),
                        min_rtt: Duration::from_millis(10),
                        cwnd: held + 1,
                        mss: 1448,
                        acked_total: total.0,
                        retransmitted_total: total.1,
                        ..SubflowSample::default()
                    };
                    let window_based = what != 2;
                    let (in_flight, limit) = (held, held + 9);
                    let seen = Observation { path: id, sample, in_flight, limit, window_based };
                    coupling.observe(now, &seen);
                }
            }
            for path in 0..4 {
                let id = PathId(path);
                if let Some(bytes) = coupling.allowance(id) {
                    prop_assert!(bytes >= 4096);
                    prop_assert!(coupling.sharers(id).next().is_some() || coupling.is_trying());
                }
                prop_assert!(coupling.sharers(id).all(|other| other != id));
            }
        }
    }
}
