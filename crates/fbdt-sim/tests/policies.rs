//! How users want paths to be used (F15), in virtual time.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::stats::WhyIdle;
use fbdt_proto::{
    Class, Classes, Config, PathPolicy, PathStats, Priority, RateCap, SchedulerKind, Weight,
};
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation};

const MIB: u64 = 1 << 20;

fn links(count: usize) -> Vec<LinkParameters> {
    (0..count).map(|index| LinkParameters::new(60.0 + 60.0 * index as f64, 3.0)).collect()
}

fn capped(mbps: u32) -> PathPolicy {
    PathPolicy { rate_cap: RateCap::from_kilobits(mbps * 1000), ..PathPolicy::default() }
}

fn weighted(weight: u8) -> PathPolicy {
    PathPolicy { weight: Weight::new(weight), ..PathPolicy::default() }
}

fn simulation(
    scheduler: SchedulerKind,
    links: Vec<LinkParameters>,
    policies: &[PathPolicy],
) -> Simulation {
    let config = Config::default().with_scheduler(scheduler);
    let mut scenario = Scenario::new(11, links);
    scenario.policies = policies.to_vec();
    scenario.config = (config.clone(), config);
    Simulation::new(scenario).unwrap()
}

fn download(simulation: &mut Simulation, class: Class, bytes: u64) {
    let stream = simulation.open(false, class).unwrap();
    simulation.write(false, stream, bytes);
    simulation.finish(false, stream);
}

/// What the sending end shows of a path.
fn sent(simulation: &Simulation, id: u8) -> PathStats {
    let [_, server] = simulation.stats();
    server.paths.into_iter().find(|path| path.id.0 == id).unwrap()
}

fn total(path: &PathStats) -> f64 {
    (path.new_bytes + path.redundant()) as f64
}

#[test]
fn f15_a_capped_path_sends_at_its_cap_and_the_others_at_their_rate() {
    for scheduler in SchedulerKind::ALL {
        let mut run = simulation(scheduler, links(2), &[PathPolicy::default(), capped(20)]);
        download(&mut run, Class::Background, 64 * MIB);
        run.run(Duration::from_millis(500)).unwrap();
        let before = total(&sent(&run, 1));
        run.run(Duration::from_secs(2)).unwrap();
        let rate = (total(&sent(&run, 1)) - before) * 8e-6 / 2.0;
        assert!(rate <= 20.6, "{scheduler:?}: {rate} Mbit/s of a cap of 20");
        if scheduler == SchedulerKind::default() {
            assert!(rate > 17.0, "{rate} Mbit/s of a cap of 20");
            assert!(sent(&run, 1).waited[WhyIdle::RateCap as usize] > Duration::from_secs(1));
        }
        assert!(run.run_until_done(Duration::from_secs(120)).unwrap(), "{scheduler:?}");
    }
}

#[test]
fn f15_bytes_follow_the_weights_whatever_the_rates() {
    for (weights, class) in [([3, 1], Class::Background), ([1, 4], Class::Interactive)] {
        let policies = weights.map(weighted);
        let mut run = simulation(SchedulerKind::default(), links(2), &policies);
        download(&mut run, class, 64 * MIB);
        run.run(Duration::from_secs(3)).unwrap();
        let shares = [0, 1].map(|id| sent(&run, id).new_bytes as f64);
        let (got, wanted) = (shares[0] / shares[1], f64::from(weights[0]) / f64::from(weights[1]));
        assert!((got / wanted - 1.0).abs() < 0.1, "{weights:?}: {got} instead of {wanted}");
        let waited = [0, 1].map(|id| sent(&run, id).waited[WhyIdle::Weight as usize]);
        assert!(waited.iter().any(|time| *time > Duration::from_millis(500)), "{waited:?}");
        assert!(run.run_until_done(Duration::from_secs(60)).unwrap());
    }
}

#[test]
fn f15_calls_do_not_wait_for_shares() {
    let mut run = simulation(SchedulerKind::default(), links(2), &[weighted(100), weighted(1)]);
    download(&mut run, Class::Conversational, 32 * MIB);
    run.run(Duration::from_secs(1)).unwrap();
    assert!(sent(&run, 1).new_bytes as f64 > 1.5 * sent(&run, 0).new_bytes as f64);
}

/// Nobody waits for a path that takes nothing: dark, standing by, capped to nearly nothing or left
/// out by the scheduler.
#[test]
fn f15_shares_never_stop_a_session() {
    for scheduler in SchedulerKind::ALL {
        for dark in 0..3 {
            let late = LinkParameters::new(30.0, 400.0);
            let links = [links(2), vec![late]].concat();
            let policies = [weighted(1), PathPolicy { ..capped(1) }, weighted(50)];
            let mut run = simulation(scheduler, links, &policies);
            download(&mut run, Class::Background, 4 * MIB);
            run.run(Duration::from_millis(300)).unwrap();
            run.change(dark, &LinkChange::Blackout(true), true, true);
            assert!(run.run_until_done(Duration::from_secs(120)).unwrap(), "{scheduler:?} {dark}");
        }
    }
}

fn never(class: Class) -> PathPolicy {
    PathPolicy { never: Classes::NONE.with(class), ..PathPolicy::default() }
}

/// Neither new bytes nor copies, whatever the scheduler; other classes are carried as before.
#[test]
fn f15_a_path_carries_nothing_of_a_class_that_is_kept_off_it() {
    for scheduler in SchedulerKind::ALL {
        let mut run =
            simulation(scheduler, links(2), &[PathPolicy::default(), never(Class::Background)]);
        download(&mut run, Class::Background, 8 * MIB);
        run.run(Duration::from_millis(500)).unwrap();
        let path = sent(&run, 1);
        assert_eq!((path.new_bytes, path.redundant()), (0, 0), "{scheduler:?}");
        assert!(path.waited[WhyIdle::KeptOff as usize] > Duration::ZERO, "{scheduler:?}");
        assert!(run.run_until_done(Duration::from_secs(60)).unwrap(), "{scheduler:?}");
        assert_eq!(total(&sent(&run, 1)), 0.0, "{scheduler:?}");
        download(&mut run, Class::Interactive, 8 * MIB);
        assert!(run.run_until_done(Duration::from_secs(60)).unwrap(), "{scheduler:?}");
        assert!(sent(&run, 1).new_bytes > 0, "{scheduler:?}");
    }
}

/// What is kept off the only path that is left waits, lost bytes too, and goes on with the other.
#[test]
fn f15_what_is_kept_off_waits_for_its_own_paths() {
    for scheduler in SchedulerKind::ALL {
        let mut run =
            simulation(scheduler, links(2), &[PathPolicy::default(), never(Class::Background)]);
        download(&mut run, Class::Background, 8 * MIB);
        download(&mut run, Class::Interactive, MIB);
        run.run(Duration::from_millis(200)).unwrap();
        run.change(0, &LinkChange::Blackout(true), true, true);
        run.run(Duration::from_secs(2)).unwrap();
        let [_, server] = run.stats();
        let background = &server.classes[Class::Background as usize];
        let sent_by_then = background.new_bytes;
        assert!(sent_by_then < 8 * MIB, "{scheduler:?}");
        run.run(Duration::from_secs(2)).unwrap();
        let [_, server] = run.stats();
        let background = &server.classes[Class::Background as usize];
        assert_eq!(background.new_bytes, sent_by_then, "{scheduler:?}");
        run.change(0, &LinkChange::Blackout(false), true, true);
        assert!(run.run_until_done(Duration::from_secs(120)).unwrap(), "{scheduler:?}");
    }
}

#[test]
fn f15_policies_change_while_bytes_flow() {
    let mut run = simulation(SchedulerKind::default(), links(2), &[]);
    download(&mut run, Class::Background, 256 * MIB);
    let mut lap = |policy: PathPolicy| {
        run.set_policy(1, policy);
        run.run(Duration::from_millis(200)).unwrap();
        let before = total(&sent(&run, 1));
        run.run(Duration::from_secs(1)).unwrap();
        (total(&sent(&run, 1)) - before) * 8e-6
    };
    assert!(lap(PathPolicy::default()) > 90.0);
    let capped = lap(capped(10));
    assert!((8.0..=11.0).contains(&capped), "{capped}");
    assert!(lap(PathPolicy::of_priority(Priority::BACKUP)) < 0.1);
    assert!(lap(PathPolicy::default()) > 90.0, "and back");
}

#[test]
fn f15_a_metered_path_carries_no_copy_that_only_saves_time() {
    let metered = PathPolicy { metered: true, ..PathPolicy::default() };
    let copies = |policies: &[PathPolicy]| {
        let mut run = simulation(SchedulerKind::default(), links(2), policies);
        for _ in 0..20 {
            download(&mut run, Class::Interactive, 20_000);
            run.run(Duration::from_millis(100)).unwrap();
        }
        let path = sent(&run, 0);
        path.copied_idle + path.copied_overdue
    };
    assert!(copies(&[]) > 0, "F10 crosses over on short flows");
    assert_eq!(copies(&[metered, PathPolicy::default()]), 0);
}
