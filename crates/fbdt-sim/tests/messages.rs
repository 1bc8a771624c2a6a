//! Messages and classes in virtual time: what calls, games and pages meet.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use fbdt_proto::{
    Class, Classes, Config, Delivery, Importance, MessageError, MessageOptions, PathPolicy,
    PathStats, StreamId, Weight, WhyIdle,
};
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);
const MIB: u64 = 1 << 20;

fn wifi() -> LinkParameters {
    LinkParameters::new(60.0, 12.0)
}

fn lte() -> LinkParameters {
    LinkParameters::new(30.0, 30.0)
}

fn simulation(links: Vec<LinkParameters>) -> Simulation {
    let mut simulation =
        Simulation::new(Scenario { log: false, ..Scenario::new(3, links) }).unwrap();
    simulation.run(MS * 500).unwrap();
    simulation
}

/// The slowest of a thousand.
fn p999(mut latencies: Vec<Duration>) -> Duration {
    latencies.sort_unstable();
    latencies[latencies.len() * 999 / 1000]
}

/// The server sends `count` messages of 200 bytes, one each 10 ms; `fault` is told of each.
fn talk(
    simulation: &mut Simulation,
    count: u32,
    options: MessageOptions,
    mut fault: impl FnMut(&mut Simulation, u32),
) -> (StreamId, Vec<Duration>) {
    let stream = simulation.open(false, Class::Conversational).unwrap();
    for index in 0..count {
        fault(simulation, index);
        simulation.send_message(false, stream, 192, options).unwrap();
        simulation.run(MS * 10).unwrap();
    }
    simulation.run(Duration::from_secs(3)).unwrap();
    let arrived = simulation.messages().iter().filter(|arrival| arrival.stream == stream);
    (stream, arrived.map(|arrival| arrival.latency).collect())
}

/// One radio is dark for 300 ms in each 2 s.
fn blackouts(simulation: &mut Simulation, index: u32) {
    match index % 200 {
        50 => simulation.change(0, &LinkChange::Blackout(true), true, true),
        80 => simulation.change(0, &LinkChange::Blackout(false), true, true),
        _ => {}
    }
}

/// Sends messages of 16 kB as fast as the session takes them; Mbit/s of those that arrived, and the
/// bytes that each path carried.
fn talk_without_end(simulation: &mut Simulation, time: Duration) -> (f64, Vec<u64>) {
    let stream = simulation.open(false, Class::Streaming).unwrap();
    let end = simulation.elapsed() + time;
    while simulation.elapsed() < end {
        while simulation.send_message(false, stream, 16_000, MessageOptions::default()).is_ok() {}
        simulation.run(MS).unwrap();
    }
    let bytes = simulation.messages().len() as f64 * 16_008.0;
    let carried = simulation.stats()[1].paths.iter().map(|path| path.carried).collect();
    (bytes * 8e-6 / time.as_secs_f64(), carried)
}

#[test]
fn f16_many_messages_use_a_path_that_is_much_later() {
    // What waits keeps the near path busy for longer than the other one is later.
    let late = LinkParameters { queue: MS * 100, ..LinkParameters::new(150.0, 200.0) };
    let mut simulation = simulation(vec![LinkParameters::new(50.0, 3.0), late]);
    let (mbps, carried) = talk_without_end(&mut simulation, Duration::from_secs(6));
    assert!(carried[1] > carried[0], "{carried:?}");
    assert!(mbps > 100.0, "{mbps} of 200 Mbit/s, slow start included");
}

/// Whatever is sent next would wait behind what waits already.
#[test]
fn f16_who_sends_all_that_is_taken_is_only_a_turn_ahead_of_the_paths() {
    let link = LinkParameters { queue: MS * 10, ..LinkParameters::new(200.0, 20.0) };
    let mut simulation = simulation(vec![link.clone(), link]);
    let (mbps, _) = talk_without_end(&mut simulation, Duration::from_secs(4));
    let arrived = simulation.messages();
    let mut late: Vec<_> = arrived.iter().skip(arrived.len() / 2).map(|a| a.latency).collect();
    late.sort_unstable();
    let median = late[late.len() / 2];
    assert!(median < MS * 60, "{median:?}, of which the links are 10 to 20 ms");
    assert!(mbps > 300.0, "{mbps} of 400 Mbit/s, slow start included");
}

/// More than both paths carry in time: what matters less must not take a late path's place.
#[test]
fn f16_what_matters_less_does_not_arrive_in_place_of_what_matters_more() {
    let mut simulation =
        simulation(vec![LinkParameters::new(60.0, 8.0), LinkParameters::new(30.0, 20.0)]);
    let stream = simulation.open(false, Class::Streaming).unwrap();
    let all = [Importance::Low, Importance::Normal, Importance::High];
    let mut sent = Vec::new();
    let begun = simulation.elapsed();
    while simulation.elapsed() < begun + MS * 400 {
        let importance = all[sent.len() % 3];
        let lifetime = Some(MS * 150);
        let options = MessageOptions { importance, lifetime, ..MessageOptions::default() };
        match simulation.send_message(false, stream, 19_992, options) {
            Ok(number) => sent.push((number, importance)),
            Err(_) => simulation.run(MS).unwrap(),
        }
    }
    simulation.run(Duration::from_secs(2)).unwrap();
    let numbers = |arrived: &[fbdt_sim::Arrival]| {
        arrived.iter().filter(|a| a.stream == stream).map(|a| a.number).collect::<BTreeSet<_>>()
    };
    let arrived = numbers(simulation.messages());
    let share = |importance| {
        let of = |(_, own): &&(u64, Importance)| *own == importance;
        let came = sent.iter().filter(of).filter(|(number, _)| arrived.contains(number));
        came.count() as f64 / sent.iter().filter(of).count() as f64
    };
    let [low, normal, high] = all.map(share);
    assert!(high > 0.99, "high {high}, normal {normal}, low {low} of {}", sent.len());
    assert!(normal > low, "high {high}, normal {normal}, low {low} of {}", sent.len());
}

#[test]
fn f16_blackouts_of_one_radio_cost_messages_less_than_20_ms() {
    for beside in [false, true] {
        let transfer = |simulation: &mut Simulation| {
            if beside {
                let stream = simulation.open(false, Class::Background).unwrap();
                simulation.write(false, stream, 400 * MIB);
            }
        };
        let best = [wifi(), lte()].map(|link| {
            let mut alone = simulation(vec![link]);
            transfer(&mut alone);
            p999(talk(&mut alone, 1500, MessageOptions::default(), |_, _| {}).1)
        });
        let mut both = simulation(vec![wifi(), lte()]);
        transfer(&mut both);
        let (_, latencies) = talk(&mut both, 1500, MessageOptions::default(), blackouts);
        assert_eq!(latencies.len(), 1500, "every one arrived");
        // What a transfer leaves in the queue of the radio that stays, nobody can overtake.
        let [wifi, lte] = best;
        let bound = if beside { lte.max(wifi) } else { lte.min(wifi) };
        let dark = p999(latencies);
        assert!(dark <= bound + MS * 20, "beside a transfer {beside}: {dark:?}, alone {best:?}");
        let classes = &both.stats()[1].classes;
        let calls = classes[Class::Conversational as usize];
        assert!(calls.redundant_bytes() <= calls.new_bytes + MIB, "{calls:?}");
        let transfer = classes[Class::Background as usize];
        let spent = transfer.chosen_bytes as f64 / transfer.new_bytes.max(1) as f64;
        assert!(spent <= 0.01 + 1e6 / transfer.new_bytes.max(1) as f64, "{spent}");
    }
}

/// Found by the property below: they used up the budget of the class, and went beyond it.
#[test]
fn f16_messages_that_ask_for_a_second_copy_cost_their_class_no_budget() {
    let mut both = simulation(vec![wifi(), lte(), LinkParameters::new(5.0, 80.0)]);
    let stream = both.open(true, Class::Background).unwrap();
    let options = MessageOptions { delivery: Delivery::Duplicated, ..Default::default() };
    for size in [41_114, 53_639, 37_351] {
        both.send_message(true, stream, size, options).unwrap();
    }
    both.run(MS * 500).unwrap();
    assert_eq!(both.messages().len(), 3);
    let background = both.stats()[0].classes[Class::Background as usize];
    assert_eq!(background.chosen_bytes, 0, "{background:?}");
    assert!(background.new_bytes > 132_000, "{background:?}");
    assert_eq!(background.asked_bytes, background.new_bytes, "{background:?}");
}

#[test]
fn f16_without_copies_blackouts_are_felt() {
    let mut both = simulation(vec![wifi(), lte()]);
    let options = MessageOptions { delivery: Delivery::BestEffort, ..Default::default() };
    let (_, latencies) = talk(&mut both, 1500, options, blackouts);
    assert!(latencies.len() < 1500, "what a lost path had is gone: {}", latencies.len());
    let stats = both.stats()[1].clone();
    assert_eq!(stats.messages.sent, 1500);
    assert_eq!(stats.messages.dropped, 1500 - latencies.len() as u64);
}

#[test]
fn f16_what_is_too_old_is_not_sent_and_leaves_no_hole() {
    let mut both = simulation(vec![wifi(), lte()]);
    let options = MessageOptions { lifetime: Some(MS * 150), ..Default::default() };
    let dark = |simulation: &mut Simulation, index: u32| {
        if index == 100 || index == 400 {
            for path in 0..2 {
                simulation.change(path, &LinkChange::Blackout(index == 100), true, true);
            }
        }
    };
    let (stream, latencies) = talk(&mut both, 1000, options, dark);
    let [_, server] = both.stats();
    assert!(server.messages.dropped > 200, "{:?}", server.messages);
    assert!(latencies.len() > 650, "{}", latencies.len());
    // The last ones arrive as if nothing had happened.
    let late = latencies[latencies.len() - 300..].iter().max().unwrap();
    assert!(*late < MS * 60, "{late:?}");
    both.finish_all();
    assert!(both.run_until_done(Duration::from_secs(5)).unwrap());
    for client in [true, false] {
        both.release(client, stream);
    }
    both.run(Duration::from_secs(2)).unwrap();
    both.check_leaks().unwrap();
}

#[test]
fn f16_important_messages_overtake_what_waits() {
    let mut one = simulation(vec![LinkParameters::new(2.0, 20.0)]);
    let stream = one.open(false, Class::Conversational).unwrap();
    for _ in 0..60 {
        one.send_message(false, stream, 4000, MessageOptions::default()).unwrap();
    }
    one.run(MS * 20).unwrap();
    let high = MessageOptions { importance: Importance::High, ..Default::default() };
    let last = one.send_message(false, stream, 200, high).unwrap();
    one.run(Duration::from_secs(5)).unwrap();
    let order: Vec<u64> = one.messages().iter().map(|arrival| arrival.number).collect();
    assert_eq!(order.len(), 61);
    let place = order.iter().position(|number| *number == last).unwrap();
    assert!(place < 40, "it was the {place}th to arrive");
}

/// Bursts of 30 messages, the important ones last: how late the last important one arrives, and the
/// last of all.
fn burst(links: Vec<LinkParameters>) -> (Duration, Duration) {
    let mut simulation = simulation(links);
    let stream = simulation.open(false, Class::Streaming).unwrap();
    let mut important = BTreeSet::new();
    // The peer's limit grows with the first ones.
    for index in 0..10 {
        important.clear();
        for _ in 0..27 {
            simulation.send_message(false, stream, 6000, MessageOptions::BACK).unwrap();
        }
        for _ in 0..3 {
            let front = simulation.send_message(false, stream, 6000, MessageOptions::FRONT);
            important.insert(front.unwrap());
        }
        simulation.run(MS * 200).unwrap();
        assert_eq!(simulation.messages().len(), 30 * (index + 1), "none is lost");
    }
    let last = &simulation.messages()[270..];
    let latest = |front: Option<bool>| {
        let wanted = |number| front.is_none_or(|front| important.contains(number) == front);
        let chosen = last.iter().filter(|arrival| wanted(&arrival.number));
        chosen.map(|arrival| arrival.latency).max().unwrap()
    };
    (latest(Some(true)), latest(None))
}

#[test]
fn f16_the_later_path_takes_messages_from_the_back() {
    let (fast, slow) = (LinkParameters::new(60.0, 10.0), LinkParameters::new(30.0, 30.0));
    let (important, all) = burst(vec![fast.clone()]);
    let (important_both, all_both) = burst(vec![fast, slow]);
    assert!(all_both + MS * 2 < all, "two radios: {all_both:?}, one: {all:?}");
    assert!(important_both <= important, "{important_both:?}, one radio: {important:?}");
}

#[test]
fn f16_messages_wait_for_the_radio_that_has_them_there_sooner() {
    let (fast, late) = (LinkParameters::new(60.0, 10.0), LinkParameters::new(30.0, 530.0));
    let alone = burst(vec![fast.clone()]);
    let both = burst(vec![fast, late]);
    for (with, without) in [(both.0, alone.0), (both.1, alone.1)] {
        assert!(with <= without + MS * 5, "{with:?}, the soonest radio alone: {without:?}");
    }
}

/// The second one's may go by the late radio only.
#[test]
fn f16_a_message_that_waits_for_a_radio_holds_up_no_other_stream() {
    let (fast, late) = (LinkParameters::new(20.0, 10.0), LinkParameters::new(20.0, 110.0));
    let mut both = simulation(vec![fast, late]);
    let never = Classes::NONE.with(Class::Background);
    both.set_policy(0, PathPolicy { never, ..PathPolicy::default() });
    let urgent = both.open(false, Class::Streaming).unwrap();
    let other = both.open(false, Class::Background).unwrap();
    for index in 0..20 {
        // As much as the first radio carries in the time: one of them waits nearly always.
        for _ in 0..5 {
            both.send_message(false, urgent, 5000, MessageOptions::default()).unwrap();
        }
        if index == 10 {
            both.send_message(false, other, 5000, MessageOptions::default()).unwrap();
        }
        both.run(MS * 10).unwrap();
    }
    both.run(Duration::from_secs(2)).unwrap();
    let latency = |stream| {
        let of = both.messages().iter().filter(|arrival| arrival.stream == stream);
        of.map(|arrival| arrival.latency).max().unwrap()
    };
    assert_eq!(both.messages().len(), 101);
    assert!(latency(other) < MS * 75, "{:?}", latency(other));
}

/// More than the soonest radio carries, of as many streams as there are programs behind a device: what
/// waits for it while the other one has room is nearly all.
#[test]
fn f16_of_many_streams_that_talk_each_gets_its_turn() {
    let (fast, late) = (LinkParameters::new(8.0, 10.0), LinkParameters::new(8.0, 810.0));
    let mut both = simulation(vec![fast, late]);
    let options = MessageOptions { lifetime: Some(MS * 200), ..Default::default() };
    let open = |_| both.open(false, Class::Conversational).unwrap();
    let streams: Vec<StreamId> = (0..192).map(open).collect();
    for _ in 0..50 {
        for some in streams.chunks(12) {
            for stream in some {
                both.send_message(false, *stream, 200, options).unwrap();
            }
            both.run(MS).unwrap();
        }
    }
    both.run(Duration::from_secs(2)).unwrap();
    let arrived = |stream| both.messages().iter().filter(|one| one.stream == stream).count();
    let counts: Vec<usize> = streams.iter().map(|stream| arrived(*stream)).collect();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*least > 0 && *most <= 2 * least, "{counts:?}");
    let stats = both.stats()[1].messages;
    assert!(stats.dropped > 0 && stats.acknowledged + stats.dropped >= 192 * 50, "{stats:?}");
}

#[test]
fn f16_a_flood_waits_at_the_sender_and_all_of_it_arrives() {
    let mut both = simulation(vec![wifi(), lte()]);
    let stream = both.open(true, Class::Interactive).unwrap();
    let (mut sent, mut blocked) = (0, 0);
    while sent < 3000 {
        match both.send_message(true, stream, 1200, MessageOptions::default()) {
            Ok(_) => sent += 1,
            Err(MessageError::Blocked) => {
                blocked += 1;
                both.run(MS).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
    both.run(Duration::from_secs(10)).unwrap();
    assert_eq!(both.messages().len(), 3000);
    assert!(blocked > 0, "the sender was told to wait");
}

/// Pages beside a transfer: each is answered by a short flow.
#[test]
fn f11_short_flows_are_not_held_up_by_a_blackout() {
    let answered = |links: Vec<LinkParameters>, faults: bool| {
        let mut simulation = simulation(links);
        let transfer = simulation.open(false, Class::Background).unwrap();
        simulation.write(false, transfer, 400 * MIB);
        let mut slowest = Duration::ZERO;
        for index in 0..40 {
            let stream = simulation.open(false, Class::Interactive).unwrap();
            let begun = simulation.elapsed();
            simulation.write(false, stream, 12_000);
            simulation.finish(false, stream);
            // In the middle of each fifth answer the first radio goes dark.
            if faults && index % 5 == 4 {
                simulation.run(MS * 3).unwrap();
                simulation.change(0, &LinkChange::Blackout(true), true, true);
            }
            let before = simulation.stats()[0].classes[Class::Interactive as usize].received_bytes;
            let wanted = before.max(12_000 * (index + 1));
            let done = simulation
                .run_until(Duration::from_secs(5), |s| {
                    s.stats()[0].classes[Class::Interactive as usize].received_bytes >= wanted
                })
                .unwrap();
            assert!(done);
            slowest = slowest.max(simulation.elapsed() - begun);
            simulation.change(0, &LinkChange::Blackout(false), true, true);
            simulation.run(MS * 400).unwrap();
        }
        slowest
    };
    let alone = answered(vec![lte()], false);
    let both = answered(vec![wifi(), lte()], true);
    assert!(both <= alone + MS * 20, "{both:?}, one radio alone {alone:?}");
}

#[derive(Clone, Debug)]
enum Operation {
    Send { client: bool, stream: usize, size: usize, importance: u8, delivery: u8, ms: u64 },
    Write { client: bool, stream: usize, bytes: u64 },
    Class { client: bool, stream: usize, class: usize },
    Advance { ms: u64 },
    Dark { path: usize },
    Light { path: usize },
    Loss { path: usize, loss: f64 },
    Reset { path: usize },
}

fn operation() -> impl Strategy<Value = Operation> {
    let path = 0..3usize;
    let size = prop_oneof![0..300usize, 0..60_000usize];
    prop_oneof![
        8 => (any::<bool>(), 0..4usize, size, 0..3u8, 0..3u8, prop_oneof![Just(0), 1..400u64]).prop_map(
            |(client, stream, size, importance, delivery, ms)|
            Operation::Send { client, stream, size, importance, delivery, ms }),
        2 => (any::<bool>(), 0..4usize, 1..300_000u64)
            .prop_map(|(client, stream, bytes)| Operation::Write { client, stream, bytes }),
        1 => (any::<bool>(), 0..4usize, 0..4usize)
            .prop_map(|(client, stream, class)| Operation::Class { client, stream, class }),
        5 => (1..200u64).prop_map(|ms| Operation::Advance { ms }),
        1 => path.clone().prop_map(|path| Operation::Dark { path }),
        2 => path.clone().prop_map(|path| Operation::Light { path }),
        1 => (path.clone(), 0.0..0.05f64).prop_map(|(path, loss)| Operation::Loss { path, loss }),
        1 => path.prop_map(|path| Operation::Reset { path }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever happens to the paths, a message arrives whole and at most once, one without a
    /// deadline arrives, and in the end nobody holds anything.
    #[test]
    fn f16_every_message_once(
        depth in 1..40usize,
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        let links = vec![wifi(), lte(), LinkParameters::new(5.0, 80.0)];
        let config = Config { window_depth: depth, ..Config::default() };
        let mut scenario = Scenario { log: false, ..Scenario::new(depth as u64, links) };
        scenario.config = (config.clone(), config);
        let mut both = Simulation::new(scenario).unwrap();
        both.run(MS * 300).unwrap();
        let streams: Vec<StreamId> =
            Class::ALL.map(|class| both.open(true, class).unwrap()).into();
        // The peer may answer on them once it knows them.
        for stream in &streams {
            both.write(true, *stream, 1);
        }
        both.run(MS * 200).unwrap();
        let mut promised = BTreeSet::new();
        for operation in &operations {
            apply(&mut both, &streams, operation, &mut promised)?;
        }
        for path in 0..3 {
            both.change(path, &LinkChange::Blackout(false), true, true);
            both.change(path, &LinkChange::Loss(0.0), true, true);
        }
        both.run(Duration::from_secs(20)).unwrap();
        for arrival in both.messages() {
            promised.remove(&(arrival.from_client, arrival.number));
        }
        prop_assert!(promised.is_empty(), "{promised:?} did not arrive");
        both.finish_all();
        prop_assert!(both.run_until_done(Duration::from_secs(20)).unwrap());
        for stream in streams {
            both.release(true, stream);
            both.release(false, stream);
        }
        both.run(Duration::from_secs(5)).unwrap();
        both.check_leaks().map_err(|error| TestCaseError::fail(error.to_string()))?;
    }
}

fn apply(
    both: &mut Simulation,
    streams: &[StreamId],
    operation: &Operation,
    promised: &mut BTreeSet<(bool, u64)>,
) -> Result<(), TestCaseError> {
    match *operation {
        Operation::Send { client, stream, size, importance, delivery, ms } => {
            let options = MessageOptions {
                importance: [Importance::Low, Importance::Normal, Importance::High]
                    [usize::from(importance)],
                delivery: [Delivery::Reliable, Delivery::Duplicated, Delivery::BestEffort]
                    [usize::from(delivery)],
                lifetime: (ms > 0).then_some(MS * u32::try_from(ms).unwrap()),
            };
            match both.send_message(client, streams[stream], size, options) {
                Ok(number) if ms == 0 && delivery < 2 => drop(promised.insert((client, number))),
                Ok(_) | Err(MessageError::Blocked) => {}
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }
        Operation::Write { client, stream, bytes } => both.write(client, streams[stream], bytes),
        Operation::Class { client, stream, class } => {
            both.set_class(client, streams[stream], Class::ALL[class]);
        }
        Operation::Advance { ms } => both
            .run(Duration::from_millis(ms))
            .map_err(|error| TestCaseError::fail(error.to_string()))?,
        Operation::Dark { path } => both.change(path, &LinkChange::Blackout(true), true, true),
        Operation::Light { path } => both.change(path, &LinkChange::Blackout(false), true, true),
        Operation::Loss { path, loss } => both.change(path, &LinkChange::Loss(loss), true, true),
        Operation::Reset { path } => both.reset_path(path),
    }
    Ok(())
}

/// What the server has sent on a path.
fn sent(simulation: &Simulation, id: u8) -> PathStats {
    let [_, server] = simulation.stats();
    server.paths.into_iter().find(|path| path.id.0 == id).unwrap()
}

/// New bytes and copies of it. The session's own words, which go by all paths, are less than a
/// message.
fn carried(simulation: &Simulation, id: u8) -> u64 {
    sent(simulation, id).new_bytes + sent(simulation, id).redundant()
}

#[test]
fn f16_messages_that_are_kept_off_a_path_go_by_the_others_only() {
    for delivery in [Delivery::Reliable, Delivery::Duplicated] {
        let options = MessageOptions { delivery, ..Default::default() };
        let mut free = simulation(vec![lte(), wifi()]);
        talk(&mut free, 100, options, |_, _| {});
        assert!(carried(&free, 1) > 15_000, "it is the faster path: {}", carried(&free, 1));
        let mut both = simulation(vec![lte(), wifi()]);
        let never = Classes::NONE.with(Class::Conversational);
        both.set_policy(1, PathPolicy { never, ..PathPolicy::default() });
        let (_, latencies) = talk(&mut both, 100, options, |simulation, index| {
            simulation.change(0, &LinkChange::Blackout(index > 50), true, true);
        });
        assert!(carried(&both, 1) < 200, "{delivery:?}: {}", carried(&both, 1));
        assert!((45..=51).contains(&latencies.len()), "the others wait: {}", latencies.len());
        assert!(latencies[..40].iter().all(|latency| *latency < MS * 17), "{latencies:?}");
        assert_eq!(sent(&both, 1).why_idle, WhyIdle::KeptOff, "{delivery:?}");
        both.change(0, &LinkChange::Blackout(false), true, true);
        both.run(Duration::from_secs(10)).unwrap();
        assert_eq!(both.messages().len(), 100, "{delivery:?}");
        assert!(carried(&both, 1) < 200, "{delivery:?}: {}", carried(&both, 1));
    }
}

/// What messages of a class, as many as the session takes, put on two paths of 60 and 30 Mbit/s.
fn flood(class: Class, weights: [u8; 2]) -> f64 {
    let mut both = simulation(vec![wifi(), lte()]);
    for (path, weight) in weights.into_iter().enumerate() {
        both.set_policy(path, PathPolicy { weight: Weight::new(weight), ..PathPolicy::default() });
    }
    let stream = both.open(false, class).unwrap();
    for _ in 0..3000 {
        while both.send_message(false, stream, 1000, MessageOptions::default()).is_ok() {}
        both.run(MS).unwrap();
    }
    sent(&both, 0).new_bytes as f64 / sent(&both, 1).new_bytes as f64
}

#[test]
fn f15_messages_follow_the_weights_and_calls_do_not_wait() {
    for (weights, wanted) in [([1, 2], 0.5), ([5, 1], 5.0)] {
        let got = flood(Class::Interactive, weights);
        assert!((got / wanted - 1.0).abs() < 0.1, "{weights:?}: {got}");
    }
    let calls = flood(Class::Conversational, [1, 100]);
    assert!(calls > 1.5, "{calls}");
}
