//! A silent path that is back is found soon, and by few attempts.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::Class;
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation, TcpGrowth};

const MS: Duration = Duration::from_millis(1);

/// A download over two radios of this RTT. The faster one is dark for a while. Returns after how many ms it
/// carries bytes again, and the attempts that were made on it.
fn back(rtt_ms: f64, dark: u32, probes: bool, offset: u32) -> (u32, u32) {
    let links = vec![LinkParameters::new(300.0, rtt_ms), LinkParameters::new(50.0, rtt_ms)];
    let tcp = TcpGrowth::Linux;
    let scenario =
        Scenario { log: false, tcp, probes, ..Scenario::new(3 + u64::from(offset), links) };
    let mut both = Simulation::new(scenario).unwrap();
    both.run(MS * 5000).unwrap();
    let stream = both.open(false, Class::Background).unwrap();
    both.write(false, stream, 4000 << 20);
    both.run(MS * (1000 + offset)).unwrap();
    let dialled = both.dialled(0);
    both.change(0, &LinkChange::Blackout(true), true, true);
    both.run(MS * (dark + offset % 53)).unwrap();
    both.change(0, &LinkChange::Blackout(false), true, true);
    let received = |both: &Simulation| both.stats()[0].paths[0].received;
    let before = received(&both);
    let mut took = 0;
    while received(&both) <= before + 20_000 {
        both.run(MS).unwrap();
        took += 1;
        assert!(took < 30_000, "it never came back");
    }
    (took, both.dialled(0) - dialled)
}

#[test]
fn f18_probes_find_a_path_that_is_back() {
    // Dialling every 50 ms took 41 and 65 ms on average, at most 64 and 91 ms.
    for (rtt_ms, dark, mean, most) in
        [(3.0, 150, 30, 45), (3.0, 2000, 30, 45), (10.0, 150, 65, 80), (10.0, 2000, 65, 80)]
    {
        let all: Vec<(u32, u32)> = (0..8).map(|n| back(rtt_ms, dark, true, n * 13)).collect();
        let sum: u32 = all.iter().map(|(took, _)| took).sum();
        assert!(sum / 8 <= mean, "{rtt_ms} ms, {dark} ms dark: {all:?}");
        assert!(all.iter().all(|(took, syns)| *took <= most && *syns <= 3), "{all:?}");
    }
}

#[test]
fn f18_without_probes_few_attempts_find_it() {
    let (took, syns) = back(3.0, 2900, false, 0);
    assert!(took < 8000 && syns <= 5, "back after {took} ms and {syns} attempts");
    let (took, _) = back(3.0, 150, false, 0);
    assert!(took < 400, "a short outage: {took} ms");
}

/// A radio that is silent for 150 ms of each 650 ms, for 20 s: the bytes that it carried.
fn flapping(probes: bool) -> u64 {
    let links = vec![LinkParameters::new(300.0, 3.0), LinkParameters::new(50.0, 3.0)];
    let tcp = TcpGrowth::Linux;
    let scenario = Scenario { log: false, tcp, probes, ..Scenario::new(3, links) };
    let mut both = Simulation::new(scenario).unwrap();
    both.run(MS * 5000).unwrap();
    let stream = both.open(false, Class::Background).unwrap();
    both.write(false, stream, 4000 << 20);
    for _ in 0..30 {
        both.change(0, &LinkChange::Blackout(true), true, true);
        both.run(MS * 150).unwrap();
        both.change(0, &LinkChange::Blackout(false), true, true);
        both.run(MS * 500).unwrap();
    }
    both.stats()[0].paths[0].received
}

#[test]
fn f18_a_radio_that_flaps_carries_bytes_in_between() {
    let carried = flapping(true);
    let whole = 300e6 / 8.0 * 0.5 * 30.0;
    assert!(carried as f64 > whole * 0.7, "{carried} of {whole} bytes");
    println!("{} with probes, {} without, of {whole}", carried, flapping(false));
}
