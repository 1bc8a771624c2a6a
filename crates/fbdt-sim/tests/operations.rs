//! Any sequence of operations and faults over 1 to 8 paths: the invariants
//! hold after every event, and once the faults are over everything arrives.

use std::time::Duration;

use fbdt_proto::{
    Class, Config, PathPolicy, Priority, RateCap, Redundancy, SchedulerKind, Weight, WindowMode,
};
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Operation {
    Open { client: bool, class: usize },
    Write { client: bool, stream: usize, bytes: u64 },
    Finish { client: bool, stream: usize },
    Abandon { client: bool, stream: usize },
    Advance { ms: u64 },
    Blackout { path: usize, up: bool, down: bool },
    Light { path: usize },
    Held { path: usize, up: bool, down: bool },
    Loss { path: usize, loss: f64 },
    Rate { path: usize, mbps: f64 },
    Delay { path: usize, ms: u64 },
    Reset { path: usize },
    Remove { path: usize },
    Restore { path: usize },
    Add { mbps: f64 },
    Reading { client: bool, reading: bool },
    Class { client: bool, stream: usize, class: usize },
    Policy { path: usize, policy: PathPolicy },
}

fn policy() -> impl Strategy<Value = PathPolicy> {
    let never = (0..15u8).prop_map(|bits| {
        Class::ALL.into_iter().filter(|class| bits & 1 << *class as u8 != 0).collect()
    });
    let cap = prop::option::of(2000..50_000u32);
    (never, 0..3u8, prop::option::of(1..9u8), cap, any::<bool>()).prop_map(
        |(never, priority, weight, cap, metered)| PathPolicy {
            never,
            priority: Priority::new(priority).unwrap_or_default(),
            weight: weight.and_then(Weight::new),
            rate_cap: cap.and_then(RateCap::from_kilobits),
            metered,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let path = 0..8usize;
    prop_oneof![
        2 => (any::<bool>(), 0..4usize).prop_map(|(client, class)| Operation::Open { client, class }),
        6 => (any::<bool>(), 0..6usize, prop_oneof![1..3000u64, 1..3_000_000u64])
            .prop_map(|(client, stream, bytes)| Operation::Write { client, stream, bytes }),
        2 => (any::<bool>(), 0..6usize).prop_map(|(client, stream)| Operation::Finish { client, stream }),
        1 => (any::<bool>(), 0..6usize).prop_map(|(client, stream)| Operation::Abandon { client, stream }),
        6 => (1..400u64).prop_map(|ms| Operation::Advance { ms }),
        2 => (path.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(path, up, down)| Operation::Blackout { path, up, down }),
        2 => path.clone().prop_map(|path| Operation::Light { path }),
        1 => (path.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(path, up, down)| Operation::Held { path, up, down }),
        1 => (path.clone(), 0.0..0.1f64).prop_map(|(path, loss)| Operation::Loss { path, loss }),
        1 => (path.clone(), 1.0..300.0f64).prop_map(|(path, mbps)| Operation::Rate { path, mbps }),
        1 => (path.clone(), 1..600u64).prop_map(|(path, ms)| Operation::Delay { path, ms }),
        1 => path.clone().prop_map(|path| Operation::Reset { path }),
        1 => path.clone().prop_map(|path| Operation::Remove { path }),
        1 => path.prop_map(|path| Operation::Restore { path }),
        1 => (5.0..200.0f64).prop_map(|mbps| Operation::Add { mbps }),
        1 => (any::<bool>(), any::<bool>())
            .prop_map(|(client, reading)| Operation::Reading { client, reading }),
        1 => (any::<bool>(), 0..6usize, 0..4usize)
            .prop_map(|(client, stream, class)| Operation::Class { client, stream, class }),
        2 => (0..8usize, policy()).prop_map(|(path, policy)| Operation::Policy { path, policy }),
    ]
}

/// Half of the time FBDT's own schedulers with any rules, else any with the
/// rules that it is published with.
fn config() -> impl Strategy<Value = Config> {
    let own = (
        prop::sample::select(&[SchedulerKind::TwoEnded, SchedulerKind::JustInTime][..]),
        prop::sample::select(
            &[WindowMode::Pipelined, WindowMode::Pipelined, WindowMode::Thesis][..],
        ),
        prop::sample::select(
            &[Redundancy::ExpectedArrival, Redundancy::RttWait, Redundancy::Off][..],
        ),
    )
        .prop_map(|(scheduler, window_mode, redundancy)| Config {
            scheduler,
            window_mode,
            redundancy,
            ..Config::default()
        });
    let any = prop::sample::select(&SchedulerKind::ALL[..])
        .prop_map(|kind| Config::default().with_scheduler(kind));
    prop_oneof![own, any]
}

fn apply(
    simulation: &mut Simulation,
    paths: &mut usize,
    operation: &Operation,
) -> Result<(), TestCaseError> {
    let stream = |s: &Simulation, client, n: usize| {
        let streams = s.streams(client);
        (!streams.is_empty()).then(|| streams[n % streams.len()])
    };
    match *operation {
        Operation::Open { client, class } => {
            simulation
                .open(client, Class::ALL[class])
                .map_err(|e| TestCaseError::fail(e.to_string()))?;
        }
        Operation::Write { client, stream: n, bytes } => {
            if let Some(id) = stream(simulation, client, n) {
                simulation.write(client, id, bytes);
            }
        }
        Operation::Finish { client, stream: n } => {
            if let Some(id) = stream(simulation, client, n) {
                simulation.finish(client, id);
            }
        }
        Operation::Abandon { client, stream: n } => {
            if let Some(id) = stream(simulation, client, n) {
                simulation.abandon(client, id);
            }
        }
        Operation::Advance { ms } => run(simulation, ms)?,
        Operation::Blackout { path, up, down } => {
            simulation.change(path % *paths, &LinkChange::Blackout(true), up, down);
        }
        Operation::Light { path } => {
            simulation.change(path % *paths, &LinkChange::Blackout(false), true, true);
            simulation.change(path % *paths, &LinkChange::Held(false), true, true);
        }
        Operation::Held { path, up, down } => {
            simulation.change(path % *paths, &LinkChange::Held(true), up, down);
        }
        Operation::Loss { path, loss } => {
            simulation.change(path % *paths, &LinkChange::Loss(loss), true, true);
        }
        Operation::Rate { path, mbps } => {
            simulation.change(path % *paths, &LinkChange::Rate(mbps * 125_000.0), true, true);
        }
        Operation::Delay { path, ms } => {
            let delay = LinkChange::Delay(Duration::from_millis(ms));
            simulation.change(path % *paths, &delay, true, false);
        }
        Operation::Reset { path } => simulation.reset_path(path % *paths),
        Operation::Remove { path } => simulation.remove_path(path % *paths),
        Operation::Restore { path } => simulation.restore_path(path % *paths),
        Operation::Add { mbps } if *paths < 8 => {
            simulation.add_path(LinkParameters::new(mbps, 10.0), 77 + *paths as u64);
            *paths += 1;
        }
        Operation::Add { .. } => {}
        Operation::Reading { client, reading } => simulation.set_reading(client, reading),
        Operation::Class { client, stream: n, class } => {
            if let Some(id) = stream(simulation, client, n) {
                simulation.set_class(client, id, Class::ALL[class]);
            }
        }
        Operation::Policy { path, policy } => simulation.set_policy(path % *paths, policy),
    }
    Ok(())
}

fn run(simulation: &mut Simulation, ms: u64) -> Result<(), TestCaseError> {
    simulation
        .run(Duration::from_millis(ms))
        .map_err(|violation| TestCaseError::fail(violation.to_string()))
}

/// Ends all faults and waits for everything.
fn settle(simulation: &mut Simulation, paths: usize) -> Result<(), TestCaseError> {
    for path in 0..paths {
        for change in [
            LinkChange::Blackout(false),
            LinkChange::Held(false),
            LinkChange::Loss(0.0),
            LinkChange::Rate(2.5e7),
            LinkChange::Delay(Duration::from_millis(5)),
        ] {
            simulation.change(path, &change, true, true);
        }
        simulation.restore_path(path);
        simulation.set_policy(path, PathPolicy::default());
    }
    for client in [true, false] {
        simulation.set_reading(client, true);
        for id in simulation.streams(client) {
            simulation.finish(client, id);
        }
    }
    let done = simulation
        .run_until_done(Duration::from_secs(300))
        .map_err(|violation| TestCaseError::fail(violation.to_string()))?;
    prop_assert!(done, "not everything arrived after the faults were over");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn f1_to_f13_any_operations_over_any_paths(
        seed in any::<u64>(),
        config in config(),
        rates in prop::collection::vec((2.0..200.0f64, 1.0..80.0f64), 1..6),
        operations in prop::collection::vec(operation(), 1..40),
    ) {
        let links = rates.iter().map(|(mbps, rtt)| LinkParameters::new(*mbps, *rtt)).collect();
        let mut scenario = Scenario::new(seed, links);
        scenario.config = (config.clone(), config);
        let mut simulation = Simulation::new(scenario).unwrap();
        let mut paths = rates.len();
        for operation in &operations {
            apply(&mut simulation, &mut paths, operation)?;
        }
        settle(&mut simulation, paths)?;
    }
}
