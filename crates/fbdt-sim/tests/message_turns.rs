//! Streams and their messages share what there is, whatever they were before.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{Class, MessageOptions, StreamId};
use fbdt_sim::{LinkParameters, Scenario, Simulation};

const MS: Duration = Duration::from_millis(1);

fn simulation(links: Vec<LinkParameters>) -> Simulation {
    let mut simulation =
        Simulation::new(Scenario { log: false, ..Scenario::new(3, links) }).unwrap();
    simulation.run(MS * 500).unwrap();
    simulation
}

/// All of `streams` send messages of 1200 bytes as fast as the session takes them.
fn flood(simulation: &mut Simulation, streams: &[StreamId], time: Duration) {
    let end = simulation.elapsed() + time;
    let options = MessageOptions { lifetime: Some(MS * 1000), ..MessageOptions::default() };
    while simulation.elapsed() < end {
        for stream in streams {
            while simulation.send_message(false, *stream, 1192, options).is_ok() {}
        }
        simulation.run(MS).unwrap();
    }
}

fn arrived(simulation: &Simulation, stream: StreamId) -> usize {
    simulation.messages().iter().filter(|arrival| arrival.stream == stream).count()
}

#[test]
fn f12_who_joins_a_class_starves_nobody_who_was_served_more() {
    let mut both = simulation(vec![LinkParameters::new(80.0, 10.0)]);
    let old = both.open(false, Class::Background).unwrap();
    flood(&mut both, &[old], MS * 2000);
    let new = both.open(false, Class::Conversational).unwrap();
    flood(&mut both, &[old, new], MS * 100);
    both.set_class(false, new, Class::Background);
    let before = [old, new].map(|stream| arrived(&both, stream));
    flood(&mut both, &[old, new], MS * 1000);
    let [old, new] = [(old, before[0]), (new, before[1])].map(|(s, n)| arrived(&both, s) - n);
    assert!(old * 2 > new && new * 2 > old, "{old} and {new}");
}

#[test]
fn f12_who_comes_back_waits_for_nobody_who_came_meanwhile() {
    let mut both = simulation(vec![LinkParameters::new(80.0, 10.0)]);
    let old = both.open(false, Class::Background).unwrap();
    both.write(false, old, 20 << 20);
    both.run(Duration::from_secs(4)).unwrap();
    assert_eq!(both.missing(), "");
    let new = both.open(false, Class::Background).unwrap();
    both.write(false, new, 40 << 20);
    both.run(MS * 500).unwrap();
    both.write(false, old, 1 << 20);
    // Half of what comes is its own: 2.5 MB. Had it waited until both had been served alike, the other
    // one's 20 MB would take two seconds.
    both.run(MS * 500).unwrap();
    assert_eq!(both.missing(), format!("server's part of stream {}", new.0));
}

#[test]
fn f16_a_message_fits_however_much_others_have_taken_of_the_windows() {
    let mut both = simulation(vec![LinkParameters::new(400.0, 40.0)]);
    for _ in 0..24 {
        let stream = both.open(false, Class::Streaming).unwrap();
        let end = both.elapsed() + MS * 300;
        while both.elapsed() < end {
            let large = MessageOptions::default();
            while both.send_message(false, stream, 16_000, large).is_ok() {}
            both.run(MS).unwrap();
        }
    }
    both.run(MS * 500).unwrap();
    let last = both.open(false, Class::Streaming).unwrap();
    for _ in 0..3 {
        both.send_message(false, last, 30_000, MessageOptions::default()).unwrap();
    }
    both.run(MS * 3000).unwrap();
    assert_eq!(arrived(&both, last), 3);
}
