//! Whole transfers in virtual time, one per condition that users meet.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{
    Budget, Class, Config, Outgoing, PathPolicy, Priority, Redundancy, SchedulerKind, WhyIdle,
    WindowMode,
};
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation};

const MIB: u64 = 1 << 20;

fn wifi() -> LinkParameters {
    LinkParameters::new(63.0, 3.0)
}

fn wigig() -> LinkParameters {
    LinkParameters::new(180.0, 2.0)
}

fn configured(config: &Config, links: Vec<LinkParameters>) -> Simulation {
    let mut scenario = Scenario::new(7, links);
    scenario.config = (config.clone(), config.clone());
    Simulation::new(scenario).unwrap()
}

/// The server sends `bytes`; goodput in Mbit/s.
fn download(simulation: &mut Simulation, bytes: u64) -> f64 {
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, bytes);
    simulation.finish(false, stream);
    let start = simulation.elapsed();
    assert!(simulation.run_until_done(Duration::from_secs(120)).unwrap(), "not done in time");
    bytes as f64 * 8.0 / (simulation.elapsed() - start).as_secs_f64() / 1e6
}

/// What an end shows of a path; they come up in any order.
fn path(stats: &fbdt_proto::SessionStats, id: u8) -> &fbdt_proto::PathStats {
    stats.paths.iter().find(|path| path.id.0 == id).unwrap()
}

fn both_schedulers(test: impl Fn(Config)) {
    for scheduler in [SchedulerKind::TwoEnded, SchedulerKind::JustInTime] {
        test(Config { scheduler, ..Config::default() });
    }
}

#[test]
fn two_paths_add_up() {
    both_schedulers(|config| {
        let mut simulation = configured(&config, vec![wifi(), wigig()]);
        let goodput = download(&mut simulation, 64 * MIB);
        assert!(goodput > 0.93 * 243.0, "{:?}: {goodput} of 243 Mbit/s", config.scheduler);
    });
}

#[test]
fn f2_windows_open_as_fast_as_slow_start() {
    let mut simulation = configured(
        &Config::default(),
        vec![LinkParameters::new(630.0, 3.0), LinkParameters::new(1800.0, 2.0)],
    );
    simulation.run(Duration::from_millis(500)).unwrap();
    let stream = simulation.open(false, Class::Interactive).unwrap();
    simulation.write(false, stream, 64 * MIB);
    simulation.run(Duration::from_millis(50)).unwrap();
    let share = simulation.delivered()[0] as f64 * 8e-6 / (2430.0 * 0.05);
    assert!(share > 0.7, "{share} of what the links carry in their first 50 ms");
}

#[test]
fn one_to_eight_paths_deliver_and_every_one_carries() {
    both_schedulers(|config| {
        for paths in 1..=8 {
            let mut simulation = configured(&config, vec![wigig(); paths]);
            download(&mut simulation, 32 * MIB);
            let stats = simulation.stats();
            for path in &stats[1].paths {
                assert!(path.new_bytes > MIB, "{paths} paths: {} idles", path.name);
            }
        }
    });
}

/// What of one stream is delivered within 4 s over a radio that is late and lossy beside a good one,
/// and how much was sent twice.
fn behind_a_hole(redundancy: Redundancy) -> (u64, u64) {
    let none = Budget { share: 0.0, allowance: 0 };
    let config = Config {
        redundancy,
        max_stream_window: 4 * MIB,
        class_budgets: [none; Class::ALL.len()],
        ..Config::default()
    };
    let late = LinkParameters { loss: 0.01, ..LinkParameters::new(63.0, 300.0) };
    let mut simulation = configured(&config, vec![late, wigig()]);
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, 256 * MIB);
    simulation.run(Duration::from_secs(4)).unwrap();
    (simulation.delivered()[0], simulation.stats()[1].redundant_bytes)
}

#[test]
fn f6_a_full_window_is_freed_whatever_the_budget() {
    let (without, none) = behind_a_hole(Redundancy::Suspect);
    let (with, copied) = behind_a_hole(Redundancy::ExpectedArrival);
    assert!(copied > none, "{copied} bytes copied, {none} by suspicion alone");
    assert!(with > without, "{with} bytes delivered, {without} without copies");
}

/// What part of the bytes is sent twice in 4 s of a stream whose window is a limit, and for how long
/// it was full.
fn copied_in_a_small_window(bytes: u64, links: Vec<LinkParameters>) -> (f64, Duration) {
    let mut simulation = configured(&Config::default().with_stream_buffer(bytes), links);
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, 256 * MIB);
    simulation.run(Duration::from_secs(4)).unwrap();
    let server = &simulation.stats()[1];
    let full = server.paths.iter().map(|p| p.waited[WhyIdle::FlowControl as usize]);
    (server.redundant_bytes as f64 / server.new_bytes as f64, full.max().unwrap())
}

#[test]
fn f6_what_is_not_overdue_yet_stays_within_the_budget_when_a_window_is_full() {
    let links = vec![LinkParameters::new(45.0, 10.0), LinkParameters::new(15.0, 10.0)];
    let (copied, full) = copied_in_a_small_window(64 << 10, links);
    assert!(full > Duration::from_secs(1), "the window was not full");
    assert!(copied < 0.03, "{copied} of the bytes were sent twice");
}

#[test]
fn f6_a_link_with_a_queue_has_no_time_for_copies_while_a_window_is_full() {
    // Twice of what has to be on the way: it stands in the links' queues.
    let links = vec![LinkParameters::new(45.0, 10.0), LinkParameters::new(15.0, 30.0)];
    let (copied, full) = copied_in_a_small_window(224 << 10, links);
    assert!(full > Duration::from_millis(50), "the window was not full");
    assert!(copied < 0.025, "{copied} of the bytes were sent twice");
}

#[test]
fn f9b_a_path_that_goes_dark_costs_nothing_but_its_share() {
    both_schedulers(|config| {
        let mut simulation = configured(&config, vec![wifi(), wigig()]);
        let stream = simulation.open(false, Class::Background).unwrap();
        simulation.write(false, stream, 64 * MIB);
        simulation.finish(false, stream);
        simulation.run(Duration::from_millis(500)).unwrap();
        let before = simulation.delivered()[0];
        simulation.change(1, &LinkChange::Blackout(true), true, true);
        simulation.run(Duration::from_secs(1)).unwrap();
        let during = (simulation.delivered()[0] - before) as f64 * 8e-6;
        assert!(during > 0.85 * 63.0, "{:?}: {during} Mbit in 1 s", config.scheduler);
        simulation.change(1, &LinkChange::Blackout(false), true, true);
        assert!(simulation.run_until_done(Duration::from_secs(30)).unwrap());
        let stats = simulation.stats();
        assert!(path(&stats[1], 1).suspected > 0);
        assert!(path(&stats[1], 1).subflows > 1, "F9b: a fresh subflow, not TCP's timer");
    });
}

#[test]
fn f15_a_backup_stands_by_takes_over_and_gives_back() {
    for scheduler in SchedulerKind::ALL {
        let config = Config::default().with_scheduler(scheduler);
        let mut scenario = Scenario::new(7, vec![wifi(), wigig()]);
        scenario.policies = vec![PathPolicy::of_priority(Priority::BACKUP)];
        scenario.config = (config.clone(), config.clone());
        let mut simulation = Simulation::new(scenario).unwrap();
        let stream = simulation.open(false, Class::Background).unwrap();
        simulation.write(false, stream, 96 * MIB);
        simulation.finish(false, stream);
        simulation.run(Duration::from_millis(500)).unwrap();
        let stats = simulation.stats();
        for end in &stats {
            let standby = path(end, 0);
            assert_eq!(standby.policy.priority, Priority::BACKUP, "both ends know");
            assert_eq!(standby.why_idle, WhyIdle::Standby);
            assert_eq!(standby.new_bytes + standby.redundant(), 0, "{scheduler:?}");
        }
        simulation.change(1, &LinkChange::Blackout(true), true, true);
        simulation.run(Duration::from_millis(100)).unwrap();
        let before = simulation.delivered()[0];
        simulation.run(Duration::from_secs(1)).unwrap();
        let during = (simulation.delivered()[0] - before) as f64 * 8e-6;
        assert!(during > 0.8 * 63.0, "{scheduler:?}: {during} Mbit in 1 s, from 100 ms on");
        simulation.change(1, &LinkChange::Blackout(false), true, true);
        simulation.run(Duration::from_secs(1)).unwrap();
        let given_back = path(&simulation.stats()[1], 0).clone();
        assert_eq!(given_back.why_idle, WhyIdle::Standby, "{scheduler:?}");
        assert!(simulation.run_until_done(Duration::from_secs(60)).unwrap());
        let stats = simulation.stats();
        assert_eq!(path(&stats[1], 0).new_bytes, given_back.new_bytes, "{scheduler:?}");
    }
}

#[test]
fn f15_one_primary_is_enough_and_a_second_backup_comes_last() {
    let links = vec![wifi(), wifi(), wigig(), wigig()];
    let mut scenario = Scenario::new(7, links);
    let policy = |name| PathPolicy::of_priority(Priority::from_name(name).unwrap());
    scenario.policies = ["backup2", "backup"].map(policy).to_vec();
    let mut simulation = Simulation::new(scenario).unwrap();
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, 64 * MIB);
    let sent = |simulation: &mut Simulation, dark: usize| {
        simulation.change(dark, &LinkChange::Blackout(true), true, true);
        simulation.run(Duration::from_millis(300)).unwrap();
        [0, 1].map(|id| path(&simulation.stats()[1], id).new_bytes)
    };
    simulation.run(Duration::from_millis(300)).unwrap();
    assert_eq!(sent(&mut simulation, 2), [0, 0], "the other primary goes on alone");
    let [last, next] = sent(&mut simulation, 3);
    assert!(last == 0 && next > 0, "{last} and {next} bytes");
    assert!(sent(&mut simulation, 1)[0] > 0);
}

#[test]
fn f9_a_proxy_that_acknowledges_and_keeps_bytes_holds_nobody_up() {
    both_schedulers(|config| {
        let mut simulation = configured(&config, vec![wifi(), wigig()]);
        let stream = simulation.open(false, Class::Background).unwrap();
        simulation.write(false, stream, 64 * MIB);
        simulation.run(Duration::from_millis(500)).unwrap();
        simulation.change(1, &LinkChange::Held(true), true, true);
        // What it keeps is missed after the answers' time.
        simulation.run(Duration::from_secs(1)).unwrap();
        assert!(path(&simulation.stats()[1], 1).suspected > 0);
        let before = simulation.delivered()[0];
        simulation.run(Duration::from_secs(1)).unwrap();
        let during = (simulation.delivered()[0] - before) as f64 * 8e-6;
        assert!(during > 0.85 * 63.0, "{:?}: {during} Mbit in 1 s", config.scheduler);
        simulation.change(1, &LinkChange::Held(false), true, true);
        assert!(simulation.run_until_done(Duration::from_secs(30)).unwrap());
        assert!(path(&simulation.stats()[1], 1).new_bytes > 16 * MIB, "it works again");
    });
}

#[test]
fn a_path_half_a_second_late_is_still_used_or_left_out() {
    both_schedulers(|config| {
        let mut late = wigig();
        late.delay += Duration::from_millis(500);
        let mut simulation = configured(&config, vec![wifi(), late]);
        let goodput = download(&mut simulation, 64 * MIB);
        assert!(goodput > 0.93 * 63.0, "{:?}: {goodput} Mbit/s", config.scheduler);
    });
}

#[test]
fn loss_on_one_path_does_not_hurt_the_other() {
    both_schedulers(|config| {
        let mut lossy = wigig();
        lossy.loss = 0.05;
        let mut simulation = configured(&config, vec![wifi(), lossy]);
        let goodput = download(&mut simulation, 32 * MIB);
        assert!(goodput > 0.95 * 63.0, "{:?}: {goodput} Mbit/s", config.scheduler);
    });
}

#[test]
fn only_one_of_two_paths_ever_works() {
    both_schedulers(|config| {
        let mut dead = wigig();
        dead.blackout = true;
        let mut simulation = configured(&config, vec![dead, wifi()]);
        let goodput = download(&mut simulation, 16 * MIB);
        assert!(goodput > 0.9 * 63.0, "{:?}: {goodput} Mbit/s", config.scheduler);
    });
}

#[test]
fn f5_the_papers_windows_idle_where_pipelined_ones_do_not() {
    let thesis = Config {
        scheduler: SchedulerKind::TwoEnded,
        window_mode: WindowMode::Thesis,
        redundancy: Redundancy::RttWait,
        ..Config::default()
    };
    let pipelined = Config { scheduler: SchedulerKind::TwoEnded, ..Config::default() };
    let slow = download(&mut configured(&thesis, vec![wifi(), wigig()]), 8 * MIB);
    let fast = download(&mut configured(&pipelined, vec![wifi(), wigig()]), 8 * MIB);
    assert!(slow * 1.3 < fast, "thesis {slow}, pipelined {fast} Mbit/s");
}

#[test]
fn f10_a_short_flow_takes_both_paths() {
    let mut simulation = configured(&Config::default(), vec![wifi(), wigig()]);
    simulation.run(Duration::from_millis(100)).unwrap();
    let stream = simulation.open(false, Class::Interactive).unwrap();
    simulation.write(false, stream, 10_000);
    simulation.finish(false, stream);
    assert!(simulation.run_until_done(Duration::from_secs(2)).unwrap());
    let stats = &simulation.stats()[1];
    let copied: u64 = stats.paths.iter().map(|p| p.copied_idle).sum();
    assert!(copied >= 9_000, "only {copied} bytes were sent on both paths");
}

#[test]
fn f11_f12_a_conversation_is_not_held_up_by_a_download() {
    let mut simulation = configured(&Config::default(), vec![wifi(), wigig()]);
    let bulk = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, bulk, 256 * MIB);
    simulation.run(Duration::from_secs(1)).unwrap();
    let call = simulation.open(false, Class::Conversational).unwrap();
    simulation.write(false, call, 200);
    simulation.finish(false, call);
    simulation.run(Duration::from_millis(60)).unwrap();
    let stats = &simulation.stats()[1];
    let call = stats.streams.iter().find(|s| s.id == call);
    assert!(call.is_none_or(|s| s.acknowledged == 200), "it waits behind the download");
}

#[test]
fn f12_streams_of_one_class_share_alike() {
    let mut simulation = configured(&Config::default(), vec![wifi(), wigig()]);
    let streams: Vec<_> =
        (0..4).map(|_| simulation.open(false, Class::Background).unwrap()).collect();
    for &stream in &streams {
        simulation.write(false, stream, 256 * MIB);
    }
    simulation.run(Duration::from_secs(2)).unwrap();
    let stats = &simulation.stats()[1];
    let shares: Vec<u64> = stats.streams.iter().map(|s| s.acknowledged).collect();
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(*least as f64 > 0.8 * *most as f64, "{shares:?}");
}

#[test]
fn f2_a_reader_that_never_reads_costs_one_window() {
    let mut simulation = configured(&Config::default(), vec![wigig()]);
    simulation.set_reading(true, false);
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, 64 * MIB);
    simulation.run(Duration::from_secs(5)).unwrap();
    let held = simulation.stats()[0].receive_memory;
    assert!(held <= 5 * MIB, "{held} bytes are held for a reader that does not read");
    simulation.set_reading(true, true);
    simulation.finish(false, stream);
    assert!(simulation.run_until_done(Duration::from_secs(60)).unwrap());
}

#[test]
fn f7_the_commit_limit_keeps_the_queue_short() {
    let mut link = wigig();
    link.queue = Duration::from_millis(200);
    let mut simulation = configured(&Config::default(), vec![link]);
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, 64 * MIB);
    simulation.run(Duration::from_secs(2)).unwrap();
    let srtt = simulation.stats()[1].paths[0].srtt;
    assert!(srtt < Duration::from_millis(20), "the queue has grown to {srtt:?}");
}

#[test]
fn a_session_outlives_all_paths_for_the_linger_time_only() {
    let mut simulation = configured(&Config::default(), vec![wigig()]);
    simulation.run(Duration::from_millis(50)).unwrap();
    simulation.remove_path(0);
    simulation.run(Duration::from_secs(59)).unwrap();
    let error = simulation.run(Duration::from_secs(2)).unwrap_err();
    assert!(error.to_string().contains("all paths were down"), "{error}");
}

#[test]
fn the_same_seed_gives_the_same_log_byte_for_byte() {
    let run = |seed| {
        let mut lossy = wigig();
        lossy.loss = 0.02;
        let mut simulation = Simulation::new(Scenario::new(seed, vec![wifi(), lossy])).unwrap();
        download(&mut simulation, 4 * MIB);
        simulation.log().to_owned()
    };
    let first = run(1);
    assert!(first.len() > 1000);
    assert!(first == run(1), "the same seed differs");
    assert!(first != run(2), "the seed changes nothing");
}

#[test]
fn late_copies_of_a_finished_stream_count_as_received_and_as_duplicate() {
    let mut simulation = configured(&Config::default(), vec![wifi(), wigig()]);
    for _ in 0..20 {
        let stream = simulation.open(false, Class::Interactive).unwrap();
        simulation.write(false, stream, 30_000);
        simulation.finish(false, stream);
        assert!(simulation.run_until_done(Duration::from_secs(2)).unwrap());
    }
    simulation.run(Duration::from_millis(100)).unwrap();
    let stats = &simulation.stats()[0];
    assert!(stats.duplicate_bytes > 0, "short flows are sent on both paths");
    let first: u64 = stats.paths.iter().map(|p| p.received - p.duplicate).sum();
    assert!(first >= 600_000, "{first} of 600000 bytes came first by some path");
}

#[test]
fn f2_readers_that_pause_leave_room_for_one_that_reads() {
    use fbdt_proto::{Frame, FrameDecoder, Instant, PathId, Role, Session, SubflowSample};
    // Two sessions wired directly: bytes arrive at once, nobody reads but one.
    let config = Config::default();
    let mut now = Instant::from_nanos(1);
    let mut ends = [
        Session::new(now, Role::Client, config.clone(), config.limits).unwrap(),
        Session::new(now, Role::Server, config.clone(), config.limits).unwrap(),
    ];
    let sample = SubflowSample {
        srtt: Duration::from_millis(2),
        min_rtt: Duration::from_millis(1),
        cwnd: 1 << 24,
        mss: 1448,
        delivery_rate: 1 << 30,
        ..SubflowSample::default()
    };
    let ids = [0, 1].map(|end: usize| ends[end].subflow_up(now, PathId(0), "only"));
    let streams: Vec<_> =
        (0..400).map(|_| ends[1].open_stream(now, Class::Background).unwrap()).collect();
    let last = *streams.last().unwrap();
    let mut read = 0;
    let mut decoders = [FrameDecoder::new(65536), FrameDecoder::new(65536)];
    for _ in 0..4000 {
        now = now + Duration::from_millis(1);
        for &stream in &streams {
            let _ = ends[1].write(now, stream, &[7; 65536]);
        }
        for from in [0, 1] {
            ends[from].handle_timeout(now);
            ends[from].handle_sample(now, ids[from], &sample);
            let mut out = Outgoing::default();
            while out.len() < 1 << 22 && ends[from].poll_transmit(now, ids[from], &mut out) {}
            let out = out.to_vec();
            let mut input = &out[..];
            while let Some(frame) = decoders[1 - from].push(&mut input).unwrap() {
                let is_data = matches!(frame, Frame::Data { .. });
                ends[1 - from].handle_frame(now, ids[1 - from], frame).unwrap();
                assert!(!is_data || ends[1 - from].receive_memory() < 320 << 20);
            }
        }
        while let Ok(Some(bytes)) = ends[0].read(now, last, usize::MAX) {
            read += bytes.len() as u64;
        }
        if read > 8 * MIB {
            return;
        }
    }
    panic!("399 readers that pause have stopped the one that reads at {read} bytes");
}

#[test]
fn a_close_never_looks_like_an_end_of_what_was_not_read() {
    use fbdt_proto::{Frame, Instant, PathId, Role, Session, StreamError, StreamId};
    for whole in [true, false] {
        let (now, config) = (Instant::from_nanos(1), Config::default());
        let limits = config.limits;
        let mut client = Session::new(now, Role::Client, config, limits).unwrap();
        let subflow = client.subflow_up(now, PathId(0), "only");
        let stream = StreamId(2);
        let data = |offset, fin| Frame::Data { stream, offset, fin, payload: vec![7; 4000].into() };
        client.handle_frame(now, subflow, data(0, false)).unwrap();
        client.handle_frame(now, subflow, data(if whole { 4000 } else { 8000 }, true)).unwrap();
        assert_eq!(client.read(now, stream, 1000).unwrap().unwrap().len(), 1000);
        let close = Frame::Close { code: 0, reason: String::new() };
        client.handle_frame(now, subflow, close).unwrap();
        let mut rest = 0;
        let end = loop {
            match client.read(now, stream, 9999) {
                Ok(Some(bytes)) => rest += bytes.len(),
                end => break end,
            }
        };
        if whole {
            assert_eq!((rest, end), (7000, Ok(None)), "what had arrived whole is read to its end");
        } else {
            assert!(matches!(end, Err(StreamError::Closed(_))), "{end:?} after {rest} bytes");
        }
    }
}

#[test]
fn f3b_a_path_that_held_its_packets_for_a_while_carries_again_soon() {
    both_schedulers(|config| {
        for held in [300, 1000, 3000] {
            let mut simulation = configured(&config, vec![wifi(), wigig()]);
            let stream = simulation.open(false, Class::Background).unwrap();
            simulation.write(false, stream, 512 * MIB);
            simulation.run(Duration::from_millis(1000)).unwrap();
            let stall = LinkChange::Stall(Duration::from_millis(held));
            simulation.change(1, &stall, true, true);
            simulation.run(Duration::from_millis(held)).unwrap();
            // What was on its way arrives, and one probe more.
            simulation.run(Duration::from_millis(600)).unwrap();
            let before = path(&simulation.stats()[1], 1).new_bytes;
            simulation.run(Duration::from_secs(1)).unwrap();
            let carried = (path(&simulation.stats()[1], 1).new_bytes - before) as f64 * 8e-6;
            assert!(
                carried > 0.9 * 180.0,
                "{:?}: {carried} Mbit after {held} ms",
                config.scheduler
            );
        }
    });
}
