//! The end of a session: what was written before it arrives, whichever path is the slow one.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{Class, OpenError};
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation};

const MOST: Duration = Duration::from_secs(30);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Every order of these paths.
fn orders(paths: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    if paths.len() < 2 {
        return vec![paths.to_vec()];
    }
    let first = |index: usize| {
        let mut others = paths.to_vec();
        let one = others.remove(index);
        orders(&others).into_iter().map(move |mut rest| {
            rest.push(one);
            rest
        })
    };
    (0..paths.len()).flat_map(first).collect()
}

fn simulation(paths: &[(f64, f64)], seed: u64) -> Simulation {
    let links = paths.iter().map(|(mbps, rtt_ms)| LinkParameters::new(*mbps, *rtt_ms)).collect();
    let mut simulation =
        Simulation::new(Scenario { log: false, ..Scenario::new(seed, links) }).unwrap();
    simulation.run(ms(1100)).unwrap();
    simulation
}

/// Writes, finishes, drops the handle and shuts down; the reader must come to the true end.
fn ends_whole(paths: &[(f64, f64)], client: bool, bytes: u64, streams: usize) {
    let mut simulation = simulation(paths, bytes);
    let opened: Vec<_> =
        (0..streams).map(|_| simulation.open(client, Class::Background).unwrap()).collect();
    for stream in &opened {
        simulation.write(client, *stream, bytes);
        simulation.finish(client, *stream);
    }
    // Until the session has taken everything: less than any path needs.
    simulation.run(ms(2)).unwrap();
    for stream in &opened {
        simulation.release(client, *stream);
    }
    simulation.shutdown(client, MOST);
    assert!(!simulation.is_ending(), "{paths:?}: nothing has been acknowledged yet");
    assert_eq!(simulation.open(client, Class::Background), Err(OpenError::Closed));
    simulation.run_until(MOST, Simulation::is_over).unwrap();
    let what = format!("{paths:?}, {streams} streams of {bytes} bytes, client {client}");
    assert!(simulation.is_over(), "{what}: it ends");
    assert!(simulation.is_done(), "{what}: {:?} arrived", simulation.delivered());
    assert_eq!(simulation.delivered()[usize::from(client)], bytes * streams as u64, "{what}");
}

#[test]
fn nothing_is_lost_whichever_path_is_late() {
    let paths = [(300.0, 2.0), (20.0, 40.0), (5.0, 500.0)];
    for order in orders(&paths) {
        for client in [true, false] {
            for bytes in [1, 1400, 60_000] {
                ends_whole(&order, client, bytes, 1);
                ends_whole(&order[..2], client, bytes, 3);
            }
        }
    }
}

#[test]
fn nothing_is_lost_where_the_only_path_is_cut_for_a_while() {
    let mut simulation = simulation(&[(20.0, 40.0)], 1);
    let stream = simulation.open(true, Class::Background).unwrap();
    simulation.write(true, stream, 50_000);
    simulation.finish(true, stream);
    simulation.change(0, &LinkChange::Blackout(true), true, true);
    simulation.run(ms(50)).unwrap();
    simulation.shutdown(true, MOST);
    simulation.run(ms(3000)).unwrap();
    assert!(!simulation.is_ending());
    simulation.change(0, &LinkChange::Blackout(false), true, true);
    simulation.run_until(MOST, Simulation::is_over).unwrap();
    assert!(simulation.is_done() && simulation.is_over());
}

#[test]
fn a_shutdown_ends_in_time_where_nothing_gets_through() {
    let mut simulation = simulation(&[(20.0, 40.0)], 2);
    let stream = simulation.open(true, Class::Background).unwrap();
    simulation.write(true, stream, 50_000);
    simulation.finish(true, stream);
    simulation.run(ms(2)).unwrap();
    simulation.change(0, &LinkChange::Blackout(true), true, true);
    simulation.shutdown(true, ms(700));
    simulation.run(ms(690)).unwrap();
    assert!(!simulation.is_ending());
    simulation.run(ms(20)).unwrap();
    assert!(simulation.is_ending());
    assert!(!simulation.is_done());
}
