//! Whole transfers under every scheduler, with the rules it is published with.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{Class, Classes, Config, Limits, PathPolicy, PathStats, SchedulerKind};
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation};

const MIB: u64 = 1 << 20;

fn simulation(kind: SchedulerKind, buffer: Option<u64>, links: &[LinkParameters]) -> Simulation {
    let mut config = Config::default().with_scheduler(kind);
    if let Some(bytes) = buffer {
        config.limits = Limits { stream_window: bytes, ..Limits::default() };
        config.max_stream_window = bytes;
    }
    let mut scenario = Scenario::new(7, links.to_vec());
    scenario.config = (config.clone(), config);
    Simulation::new(scenario).unwrap()
}

/// The server sends `bytes`; goodput in Mbit/s and what its paths did.
fn download(simulation: &mut Simulation, bytes: u64) -> (f64, Vec<PathStats>) {
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, bytes);
    simulation.finish(false, stream);
    let start = simulation.elapsed();
    assert!(simulation.run_until_done(Duration::from_secs(120)).unwrap(), "not done in time");
    let seconds = (simulation.elapsed() - start).as_secs_f64();
    let [_, server] = simulation.stats();
    (bytes as f64 * 8.0 / seconds / 1e6, server.paths)
}

#[test]
fn everyone_delivers_and_all_but_the_redundant_one_add_up() {
    let links = [LinkParameters::new(60.0, 3.0), LinkParameters::new(40.0, 4.0)];
    for kind in SchedulerKind::ALL {
        let (goodput, paths) = download(&mut simulation(kind, None, &links), 32 * MIB);
        let least = match kind {
            SchedulerKind::Redundant => 54.0,
            // Half of the bytes on each path until its first search.
            SchedulerKind::MuSher => 75.0,
            _ => 88.0,
        };
        assert!(goodput > least, "{}: {goodput} of 100 Mbit/s", kind.name());
        assert!(goodput < 101.0);
        assert!(paths.iter().all(|p| p.received < MIB), "{}", kind.name());
    }
}

#[test]
fn a_path_that_goes_dark_holds_nobody_up_for_long() {
    let links = [LinkParameters::new(60.0, 3.0), LinkParameters::new(40.0, 4.0)];
    for kind in SchedulerKind::ALL {
        let mut simulation = simulation(kind, None, &links);
        let stream = simulation.open(false, Class::Background).unwrap();
        simulation.write(false, stream, 64 * MIB);
        simulation.run(Duration::from_millis(500)).unwrap();
        simulation.change(1, &LinkChange::Blackout(true), true, true);
        simulation.run(Duration::from_millis(500)).unwrap();
        let before = simulation.delivered()[0];
        simulation.run(Duration::from_millis(500)).unwrap();
        let mbps = (simulation.delivered()[0] - before) as f64 * 8e-6 / 0.5;
        assert!(mbps > 0.8 * 60.0, "{}: {mbps} Mbit/s", kind.name());
        assert!(simulation.stats()[1].paths[1].suspected > 0, "{}", kind.name());
    }
}

#[test]
fn where_a_late_path_blocks_the_buffer_minrtt_sends_again_and_lrf_waits() {
    // 20 Mbit/s x 200 ms on the late path are more than the buffer.
    let links = [LinkParameters::new(40.0, 4.0), LinkParameters::new(20.0, 200.0)];
    let run = |kind| download(&mut simulation(kind, Some(256 << 10), &links), 8 * MIB);
    let again = |paths: &[PathStats]| paths.iter().map(|p| p.copied_scheduled).sum::<u64>();
    let (minrtt, lrf, blest) =
        (run(SchedulerKind::MinRtt), run(SchedulerKind::LowestRttFirst), run(SchedulerKind::Blest));
    assert!(again(&minrtt.1) > 0);
    assert_eq!(again(&lrf.1), 0);
    assert!(minrtt.0 > 1.2 * lrf.0, "minrtt {} lrf {}", minrtt.0, lrf.0);
    // BLEST leaves the late path out instead.
    assert!(blest.1[1].new_bytes < minrtt.1[1].new_bytes / 2 + 1, "{:?}", blest.1[1]);
    assert!(blest.0 > 0.8 * 40.0, "blest {}", blest.0);
}

#[test]
fn f15_what_blocks_the_buffer_is_not_sent_again_where_it_is_kept_off() {
    let links = [LinkParameters::new(40.0, 4.0), LinkParameters::new(100.0, 200.0)];
    let never = Classes::NONE.with(Class::Background);
    for kind in [SchedulerKind::MinRtt, SchedulerKind::Blest, SchedulerKind::Ecf] {
        let mut run = simulation(kind, Some(128 << 10), &links);
        run.set_policy(0, PathPolicy { never, ..PathPolicy::default() });
        let (_, paths) = download(&mut run, 2 * MIB);
        let fast = paths.iter().find(|path| path.id.0 == 0).unwrap();
        assert_eq!(fast.copied_scheduled, 0, "{}", kind.name());
    }
}

#[test]
fn redundant_sends_all_on_all() {
    let links = [LinkParameters::new(40.0, 4.0), LinkParameters::new(40.0, 4.0)];
    let mut simulation = simulation(SchedulerKind::Redundant, None, &links);
    let (goodput, paths) = download(&mut simulation, 8 * MIB);
    assert!(goodput > 0.9 * 40.0, "{goodput}");
    for path in paths {
        let sent = path.new_bytes + path.copied_scheduled;
        assert!(sent > 7 * MIB, "{}: {sent}", path.name);
    }
}

#[test]
fn musher_finds_the_ratio_of_the_links() {
    let links = [LinkParameters::new(90.0, 4.0), LinkParameters::new(10.0, 4.0)];
    let mut simulation = simulation(SchedulerKind::MuSher, None, &links);
    let (goodput, paths) = download(&mut simulation, 64 * MIB);
    // At half each it would be 20 Mbit/s for ever.
    assert!(goodput > 60.0, "{goodput}");
    assert!(paths[0].new_bytes > 4 * paths[1].new_bytes);
}

#[test]
fn what_a_full_writer_has_written_is_not_long_in_arriving() {
    // RTTs are 14 ms with what stands in the links' queues; four windows of them would wait for 56 ms more.
    let links = [LinkParameters::new(300.0, 4.0), LinkParameters::new(200.0, 4.0)];
    let mut simulation = simulation(SchedulerKind::JustInTime, None, &links);
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, 1024 * MIB);
    simulation.run(Duration::from_secs(3)).unwrap();
    let [_, server] = simulation.stats();
    let written: u64 = server.streams.iter().map(|stream| stream.written).sum();
    let delivered = simulation.delivered()[0];
    assert!(delivered > 480_000_000 / 8 * 3, "{delivered}");
    let waits = (written - delivered) as f64 * 8.0 / 500e6;
    assert!(waits < 0.035, "{waits} s");
}
