//! No stream keeps from others what they need: windows, turns, places, attention.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{Class, Config, Importance, Limits, MessageOptions, StreamId};
use fbdt_sim::{LinkParameters, Scenario, Simulation};

const MS: Duration = Duration::from_millis(1);
const MIB: u64 = 1 << 20;

fn simulation(links: Vec<LinkParameters>, config: Config, log: bool) -> Simulation {
    let scenario = Scenario { config: (config.clone(), config), log, ..Scenario::new(3, links) };
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.run(MS * 500).unwrap();
    simulation
}

fn plain(links: Vec<LinkParameters>) -> Simulation {
    simulation(links, Config::default(), false)
}

/// As many messages as the session takes.
fn fill(simulation: &mut Simulation, stream: StreamId, size: usize) {
    while simulation.send_message(false, stream, size, MessageOptions::default()).is_ok() {}
}

/// When the messages of a stream arrived that were sent after the first `skipped`, in order.
fn latencies(simulation: &Simulation, stream: StreamId) -> Vec<Duration> {
    let own = simulation.messages().iter().filter(|arrival| arrival.stream == stream);
    own.map(|arrival| arrival.latency).collect()
}

fn quantile(mut latencies: Vec<Duration>, share: f64) -> Duration {
    latencies.sort_unstable();
    latencies[((latencies.len() - 1) as f64 * share) as usize]
}

/// Mbit/s of a large transfer within 5 s, `answers` of 30 kB being kept open.
fn beside_kept_answers(answers: usize) -> f64 {
    let links = vec![LinkParameters::new(100.0, 10.0), LinkParameters::new(50.0, 60.0)];
    let mut simulation = plain(links);
    let first = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, first, 32 * MIB);
    simulation.finish(false, first);
    simulation.run(MS * 4000).unwrap();
    for _ in 0..answers {
        let answer = simulation.open(false, Class::Interactive).unwrap();
        simulation.write(false, answer, 30_000);
        simulation.run(MS * 20).unwrap();
    }
    let before = simulation.delivered()[0];
    let last = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, last, 128 * MIB);
    simulation.run(MS * 5000).unwrap();
    (simulation.delivered()[0] - before) as f64 * 8e-6 / 5.0
}

#[test]
fn f2_connections_that_are_kept_open_take_no_windows_from_later_ones() {
    let (without, with) = (beside_kept_answers(0), beside_kept_answers(60));
    assert!(without > 120.0, "{without} of 150 Mbit/s");
    assert!(with > 0.9 * without, "{with} instead of {without} Mbit/s");
}

#[test]
fn f2_a_reader_that_pauses_is_not_asked_for_room_all_the_time() {
    let mut paused = simulation(
        vec![LinkParameters::new(100.0, 10.0), LinkParameters::new(50.0, 60.0)],
        Config::default(),
        true,
    );
    paused.set_reading(true, false);
    let stream = paused.open(false, Class::Background).unwrap();
    paused.write(false, stream, 64 * MIB);
    paused.run(MS * 5000).unwrap();
    let asked = |simulation: &Simulation| simulation.log().matches("Want {").count();
    let before = asked(&paused);
    paused.run(MS * 10_000).unwrap();
    let asked = asked(&paused) - before;
    assert!(asked <= 20, "{asked} requests in 10 s, of which none can be granted");
}

#[test]
fn f16_what_queues_is_not_sent_twice() {
    let slow = || LinkParameters { queue: MS * 100, ..LinkParameters::new(3.0, 40.0) };
    let mut calls = plain(vec![slow(), slow()]);
    let stream = calls.open(false, Class::Conversational).unwrap();
    for _ in 0..800 {
        fill(&mut calls, stream, 1192);
        calls.run(MS * 10).unwrap();
    }
    let mbps = calls.messages().len() as f64 * 1200.0 * 8e-6 / 8.0;
    assert!(mbps > 4.5, "{mbps} of 6 Mbit/s");
}

#[test]
fn f12_bytes_and_messages_of_a_class_take_turns() {
    let mut both = plain(vec![LinkParameters::new(60.0, 12.0), LinkParameters::new(30.0, 30.0)]);
    let [bytes, messages] = [0, 1].map(|_| both.open(false, Class::Background).unwrap());
    both.write(false, bytes, 100 * MIB);
    for _ in 0..1000 {
        fill(&mut both, messages, 1000);
        both.run(MS * 5).unwrap();
    }
    let spoken = both.messages().len() as u64 * 1008;
    let read = both.delivered()[0];
    let share = read as f64 / (read + spoken) as f64;
    assert!((0.35..0.65).contains(&share), "bytes have {share} of {} bytes", read + spoken);
}

#[test]
fn f12_a_few_messages_do_not_wait_behind_all_that_another_stream_has_queued() {
    let mut both = plain(vec![LinkParameters::new(100.0, 20.0), LinkParameters::new(20.0, 600.0)]);
    let [thick, thin] = [0, 1].map(|_| both.open(false, Class::Streaming).unwrap());
    for step in 0..2000 {
        fill(&mut both, thick, 16_000);
        if step >= 1000 && step % 4 == 0 {
            both.send_message(false, thin, 192, MessageOptions::default()).unwrap();
        }
        both.run(MS * 5).unwrap();
    }
    let p99 = quantile(latencies(&both, thin), 0.99);
    assert!(p99 < MS * 100, "{p99:?}");
}

#[test]
fn f16_a_stream_that_is_over_its_flood_leaves_windows_for_others() {
    let limits = Limits { session_window: 64 << 20, ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let links = vec![LinkParameters::new(300.0, 10.0), LinkParameters::new(300.0, 200.0)];
    let mut both = simulation(links, config, false);
    let [first, second] = [0, 1].map(|_| both.open(false, Class::Streaming).unwrap());
    for _ in 0..600 {
        fill(&mut both, first, 16_000);
        both.run(MS * 5).unwrap();
    }
    both.run(MS * 1000).unwrap();
    let mut sent = 0;
    for _ in 0..2000 {
        for _ in 0..5 {
            let options = MessageOptions { importance: Importance::Normal, ..Default::default() };
            sent += usize::from(both.send_message(false, second, 992, options).is_ok());
        }
        both.run(MS).unwrap();
    }
    both.run(MS * 1000).unwrap();
    let soon = latencies(&both, second).into_iter().filter(|time| *time <= MS * 200).count();
    assert!(soon * 10 >= 2000 * 5 * 9, "{soon} of 10000 within 200 ms, {sent} were taken");
}

#[test]
fn f16_what_expires_unsent_leaves_no_stream_behind() {
    let limits =
        Limits { stream_window: 128 << 10, session_window: 128 << 10, ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let links = vec![LinkParameters::new(60.0, 12.0), LinkParameters::new(30.0, 30.0)];
    let mut both = simulation(links, config, false);
    let stream = both.open(true, Class::Interactive).unwrap();
    both.write(true, stream, 1);
    both.run(MS * 200).unwrap();
    // Longer than the message window, which cannot grow so far out of so small a session's.
    let options = MessageOptions { lifetime: Some(MS * 3000), ..MessageOptions::default() };
    both.send_message(false, stream, 40_000, options).unwrap();
    both.finish_all();
    both.run(MS * 500).unwrap();
    both.release(true, stream);
    both.release(false, stream);
    both.run(MS * 6000).unwrap();
    both.check_leaks().unwrap();
}

/// A message as long as its space needs all of the space's limit, of which a part was not said.
#[test]
fn f16_long_messages_among_short_ones_do_not_stall_where_windows_cannot_grow() {
    let limits =
        Limits { stream_window: 128 << 10, session_window: 256 << 10, ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let links = vec![LinkParameters::new(60.0, 12.0), LinkParameters::new(30.0, 30.0)];
    let mut both = simulation(links, config, false);
    let stream = both.open(false, Class::Interactive).unwrap();
    let mut sent = 0;
    for _ in 0..4000 {
        let size = if sent % 2 == 0 { 9992 } else { 65_528 };
        let options = MessageOptions::default();
        sent += u32::from(both.send_message(false, stream, size, options).is_ok());
        both.run(MS).unwrap();
    }
    let arrived = both.messages().len();
    assert!(arrived > 100, "{arrived} of {sent} in 4 s");
    let late = quantile(latencies(&both, stream), 1.0);
    assert!(late < MS * 600, "{late:?}");
}
