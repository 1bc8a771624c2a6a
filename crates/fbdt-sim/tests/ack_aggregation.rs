//! Acknowledgements that are gathered on their way and come all at once (F7, F9): what a radio or
//! a driver does that serves the other direction in bursts.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{Class, CommitRule, Config};
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation};

const SERVER: usize = 1;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// For how long of each period of how long a link holds back what comes.
type Held = (Duration, Duration);

/// A download over these links in its sixth to tenth second: Mbit/s, and how often a path was
/// taken for silent.
fn download(config: &Config, links: &[(LinkParameters, Held)]) -> (f64, u64) {
    let parameters = links.iter().map(|(link, _)| link.clone()).collect();
    let mut scenario = Scenario::new(7, parameters);
    scenario.config = (config.clone(), config.clone());
    (scenario.log, scenario.paced) = (false, true);
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.run(ms(100)).unwrap();
    for (path, (_, held)) in links.iter().enumerate() {
        simulation.change(path, &LinkChange::Aggregation(Some(*held)), true, false);
    }
    let stream = simulation.open(false, Class::Background).unwrap();
    simulation.write(false, stream, 1 << 40);
    simulation.run(ms(5000)).unwrap();
    let suspected =
        |s: &Simulation| s.stats()[SERVER].paths.iter().map(|p| p.suspected).sum::<u64>();
    let before = (simulation.delivered()[0], suspected(&simulation));
    simulation.run(ms(5000)).unwrap();
    let goodput = (simulation.delivered()[0] - before.0) as f64 * 8e-6 / 5.0;
    (goodput, suspected(&simulation) - before.1)
}

/// The radios of a published experiment, a tenth as fast.
fn radios() -> [(LinkParameters, Held); 2] {
    [
        (LinkParameters::new(190.0, 3.0), (ms(45), ms(46))),
        (LinkParameters::new(55.0, 3.0), (ms(150), ms(152))),
    ]
}

#[test]
fn f7_gathered_acknowledgements_do_not_starve_a_path() {
    let plain = Config { commit: CommitRule::Window, ..Config::default() };
    for radio in radios() {
        // What TCP alone carries of it: a window in each period.
        let (alone, _) = download(&plain, std::slice::from_ref(&radio));
        let (goodput, _) = download(&Config::default(), std::slice::from_ref(&radio));
        println!("{goodput:.1} of {alone:.1} Mbit/s");
        assert!(goodput >= 0.97 * alone, "{goodput} of {alone} Mbit/s");
    }
}

/// Less than what counts as held back (10 ms), more than the RTT: what a radio with a near server is.
#[test]
fn f7_neither_do_those_that_are_gathered_for_some_milliseconds_over_a_short_rtt() {
    let plain = Config { commit: CommitRule::Window, ..Config::default() };
    for (rtt, held, mbps) in [(1.0, 4, 20.0), (1.0, 9, 200.0), (2.0, 9, 20.0), (4.0, 12, 20.0)] {
        let radio = (LinkParameters::new(mbps, rtt), (ms(held), ms(held + 1)));
        let (alone, _) = download(&plain, std::slice::from_ref(&radio));
        let (goodput, _) = download(&Config::default(), std::slice::from_ref(&radio));
        println!("{rtt} ms, gathered for {held}: {goodput:.1} of {alone:.1} Mbit/s");
        assert!(goodput >= 0.9 * alone, "{rtt} ms, {held}: {goodput} of {alone} Mbit/s");
    }
}

#[test]
fn f7_f9_paths_whose_acknowledgements_are_gathered_add_up() {
    let plain = Config { commit: CommitRule::Window, ..Config::default() };
    let alone = radios().map(|radio| download(&plain, &[radio]).0);
    let (goodput, suspected) = download(&Config::default(), &radios());
    let sum: f64 = alone.iter().sum();
    println!("{goodput:.1} Mbit/s of {alone:?}");
    assert!(goodput >= 0.95 * sum, "{goodput} of {alone:?} Mbit/s");
    assert_eq!(suspected, 0, "no path is silent");
}
