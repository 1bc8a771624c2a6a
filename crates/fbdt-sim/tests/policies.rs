//! How users want paths to be used (F15), in virtual time.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{
    Class, Classes, Config, PathPolicy, PathStats, Priority, RateCap, Redundancy, SchedulerKind,
    Weight, WhyIdle, WindowMode,
};
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation};
use proptest::prelude::*;

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
        let before = [0, 1].map(|id| total(&sent(&run, id)));
        run.run(Duration::from_secs(2)).unwrap();
        let rate = |id: u8| (total(&sent(&run, id)) - before[usize::from(id)]) * 8e-6 / 2.0;
        let (free, rate) = (rate(0), rate(1));
        assert!(free > 50.0, "{scheduler:?}: {free} of 60 Mbit/s beside a cap");
        assert!(rate <= 20.6, "{scheduler:?}: {rate} Mbit/s of a cap of 20");
        assert!(rate > 16.0, "{scheduler:?}: {rate} Mbit/s of a cap of 20");
        if scheduler == SchedulerKind::default() {
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

/// Every scheduler with its rules, the paper's mode, and a front pinned to the second path.
fn configs() -> Vec<Config> {
    let published = SchedulerKind::ALL.map(|kind| Config::default().with_scheduler(kind));
    let two_ended = || Config::default().with_scheduler(SchedulerKind::TwoEnded);
    let thesis =
        Config { window_mode: WindowMode::Thesis, redundancy: Redundancy::RttWait, ..two_ended() };
    let pinned = Config { forward: Some("path1".into()), ..two_ended() };
    published.into_iter().chain([thesis, pinned]).collect()
}

/// Two paths, of which the second never carries the background.
fn half_open(config: &Config) -> Simulation {
    first_open(config, 2)
}

/// Paths of which only the first carries the background.
fn first_open(config: &Config, count: usize) -> Simulation {
    let mut scenario = Scenario::new(11, links(count));
    scenario.policies = vec![never(Class::Background); count];
    scenario.policies[0] = PathPolicy::default();
    scenario.config = (config.clone(), config.clone());
    Simulation::new(scenario).unwrap()
}

/// Path and stream of each piece of a stream that an end has received, from the log; without
/// the session's own words, which go by all paths.
fn received(run: &Simulation, client: bool) -> Vec<(usize, u32)> {
    let piece = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (end, _, path, what) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let here = (end == "0") == client && what == "data";
        let piece = (path.parse().ok()?, words.next().filter(|_| here)?.parse().ok()?);
        Some(piece).filter(|(_, stream)| *stream > 0)
    };
    run.log().lines().filter_map(piece).collect()
}

/// Neither new bytes nor copies, whatever the scheduler; other classes are carried as before.
#[test]
fn f15_a_path_carries_nothing_of_a_class_that_is_kept_off_it() {
    for config in configs() {
        let mut run = half_open(&config);
        download(&mut run, Class::Background, 8 * MIB);
        run.run(Duration::from_millis(500)).unwrap();
        assert_eq!(sent(&run, 1).why_idle, WhyIdle::KeptOff, "{config:?}");
        assert!(run.run_until_done(Duration::from_secs(60)).unwrap(), "{config:?}");
        assert!(received(&run, true).iter().all(|(path, _)| *path == 0), "{config:?}");
        download(&mut run, Class::Interactive, 8 * MIB);
        assert!(run.run_until_done(Duration::from_secs(60)).unwrap(), "{config:?}");
        assert!(sent(&run, 1).new_bytes > 0, "{config:?}");
    }
}

/// What is kept off the only path that is left waits, lost bytes too, and goes on with the other.
#[test]
fn f15_what_is_kept_off_waits_for_its_own_paths() {
    for config in configs() {
        let mut run = half_open(&config);
        download(&mut run, Class::Background, 8 * MIB);
        download(&mut run, Class::Interactive, MIB);
        run.run(Duration::from_millis(200)).unwrap();
        run.change(0, &LinkChange::Blackout(true), true, true);
        run.run(Duration::from_secs(2)).unwrap();
        let background = |run: &Simulation| {
            let [_, server] = run.stats();
            let class = &server.classes[Class::Background as usize];
            class.new_bytes + class.redundant_bytes()
        };
        let before = background(&run);
        assert!(before < 8 * MIB, "{config:?}");
        let [_, server] = run.stats();
        let interactive = server.streams.iter().find(|s| s.class == Class::Interactive).unwrap();
        assert_eq!(interactive.acknowledged, MIB, "nobody else waits: {config:?}");
        // A connection that is reset leaves lost bytes behind.
        run.reset_path(0);
        run.run(Duration::from_secs(20)).unwrap();
        assert_eq!(background(&run), before, "{config:?}");
        run.change(0, &LinkChange::Blackout(false), true, true);
        assert!(run.run_until_done(Duration::from_secs(120)).unwrap(), "{config:?}");
    }
}

#[test]
fn f15_a_session_that_may_send_nothing_does_not_go_in_circles() {
    for config in configs() {
        // Two that wait could wake each other for ever.
        let mut run = first_open(&config, 3);
        run.remove_path(0);
        download(&mut run, Class::Background, MIB);
        run.run(Duration::from_secs(1)).unwrap();
        let (end, mut events) = (run.elapsed() + Duration::from_secs(10), 0);
        while run.elapsed() < end {
            run.run_one(Duration::from_secs(1)).unwrap();
            events += 1;
        }
        // Ticks of one end, and probes.
        assert!(events < 6000, "{events} events in 10 s: {config:?}");
        let [_, server] = run.stats();
        assert_eq!(server.classes[Class::Background as usize].new_bytes, 0, "{config:?}");
        run.set_policy(1, PathPolicy::default());
        assert!(run.run_until_done(Duration::from_secs(60)).unwrap(), "{config:?}");
    }
}

/// Also what a scheduler has set aside for a path that the stream may not use any more.
#[test]
fn f15_a_stream_of_another_class_keeps_to_its_paths_at_once() {
    for config in configs() {
        let mut run = half_open(&config);
        let stream = run.open(false, Class::Interactive).unwrap();
        run.write(false, stream, 32 * MIB);
        run.run(Duration::from_millis(500)).unwrap();
        let before = total(&sent(&run, 1));
        assert!(before > 0.0, "{config:?}");
        run.set_class(false, stream, Class::Background);
        run.run(Duration::from_millis(300)).unwrap();
        assert_eq!(total(&sent(&run, 1)), before, "{config:?}");
        run.set_class(false, stream, Class::Streaming);
        run.run(Duration::from_millis(300)).unwrap();
        assert!(total(&sent(&run, 1)) > before, "{config:?}");
        run.set_class(false, stream, Class::Background);
        run.finish(false, stream);
        assert!(run.run_until_done(Duration::from_secs(60)).unwrap(), "{config:?}");
    }
}

/// The first path takes calls as fast as its cap lets it, the second everything else.
#[test]
fn f15_nobody_waits_for_the_share_of_a_path_that_would_not_take_it() {
    let slow =
        PathPolicy { weight: Weight::new(1), never: never(Class::Background).never, ..capped(2) };
    let fast = PathPolicy { weight: Weight::new(1), ..never(Class::Conversational) };
    let mut run = simulation(SchedulerKind::default(), links(2), &[slow, fast]);
    download(&mut run, Class::Conversational, 4 * MIB);
    download(&mut run, Class::Background, 16 * MIB);
    run.run(Duration::from_secs(3)).unwrap();
    assert_eq!(sent(&run, 1).new_bytes, 16 * MIB);
    assert!(sent(&run, 0).new_bytes < MIB);
    assert!(run.run_until_done(Duration::from_secs(60)).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Whatever is kept off whatever, whoever fails meanwhile: each path carries its classes only,
    /// a class without a path waits, and all the others are done.
    #[test]
    fn f15_each_class_goes_by_its_own_paths(
        config in prop::sample::select(configs()),
        kept_off in prop::collection::vec(0..15u8, 1..5),
        classes in prop::collection::vec(0..4usize, 1..6),
        dark in prop::collection::vec((0..5usize, 1..800u64), 0..6),
    ) {
        let classes: Vec<Class> = classes.into_iter().map(|class| Class::ALL[class]).collect();
        let named = |bits: &u8| Class::ALL.into_iter().filter(|c| bits & 1 << *c as u8 != 0).collect();
        let kept_off: Vec<Classes> = kept_off.iter().map(named).collect();
        let mut scenario = Scenario::new(5, links(kept_off.len()));
        scenario.policies =
            kept_off.iter().map(|never| PathPolicy { never: *never, ..PathPolicy::default() }).collect();
        scenario.config = (config.clone(), config);
        let mut run = Simulation::new(scenario).unwrap();
        let streams: Vec<_> = classes.iter().map(|class| (run.open(true, *class).unwrap(), *class)).collect();
        for (stream, _) in &streams {
            run.write(true, *stream, 300_000);
            run.finish(true, *stream);
        }
        for (path, ms) in dark {
            let path = path % kept_off.len();
            run.change(path, &LinkChange::Blackout(true), true, true);
            run.run(Duration::from_millis(ms)).unwrap();
            run.change(path, &LinkChange::Blackout(false), true, true);
        }
        run.run(Duration::from_secs(20)).unwrap();
        let [client, _] = run.stats();
        for (stream, class) in &streams {
            let has_path = kept_off.iter().any(|never| !never.contains(*class));
            let sent = client.streams.iter().find(|s| s.id == *stream).unwrap().acknowledged;
            prop_assert_eq!(sent, if has_path { 300_000 } else { 0 }, "{:?} of {:?}", class, kept_off);
        }
        for (path, id) in received(&run, false) {
            let stream = streams.iter().find(|(stream, _)| stream.0 == id);
            prop_assert!(stream.is_none_or(|(_, class)| !kept_off[path].contains(*class)));
        }
        run.set_policy(0, PathPolicy::default());
        for (stream, _) in streams {
            run.finish(false, stream);
        }
        prop_assert!(run.run_until_done(Duration::from_secs(60)).unwrap());
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

#[test]
fn f15_nor_one_that_a_scheduler_sends_by_its_own_rules() {
    let links = || vec![LinkParameters::new(40.0, 4.0), LinkParameters::new(20.0, 200.0)];
    let copies = |scheduler: SchedulerKind, policy: PathPolicy| {
        let mut config = Config::default().with_scheduler(scheduler);
        config.limits.stream_window = 256 << 10;
        config.max_stream_window = 256 << 10;
        let mut scenario = Scenario::new(11, links());
        scenario.policies = vec![policy, PathPolicy::default()];
        scenario.config = (config.clone(), config);
        let mut run = Simulation::new(scenario).unwrap();
        download(&mut run, Class::Background, 4 * MIB);
        assert!(run.run_until_done(Duration::from_secs(60)).unwrap(), "{scheduler:?}");
        sent(&run, 0).copied_scheduled
    };
    let metered = PathPolicy { metered: true, ..PathPolicy::default() };
    for scheduler in SchedulerKind::ALL {
        assert_eq!(copies(scheduler, metered), 0, "{scheduler:?}");
    }
    assert!(copies(SchedulerKind::MinRtt, PathPolicy::default()) > 0, "else it says nothing");
}

/// A path that is behind never catches up with a transfer that goes on; what is more urgent goes before it.
#[test]
fn f11_redundant_repeats_the_best_class_first() {
    let narrow = [LinkParameters::new(60.0, 4.0), LinkParameters::new(5.0, 4.0)];
    let mut run = simulation(SchedulerKind::Redundant, narrow.to_vec(), &[]);
    let bulk = run.open(false, Class::Background).unwrap();
    run.write(false, bulk, 64 * MIB);
    run.run(Duration::from_secs(1)).unwrap();
    let call = run.open(false, Class::Conversational).unwrap();
    assert!(call > bulk);
    run.write(false, call, MIB);
    run.run(Duration::from_millis(300)).unwrap();
    assert!(received(&run, true).contains(&(1, call.0)));
}
