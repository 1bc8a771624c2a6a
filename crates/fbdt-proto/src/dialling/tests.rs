use alloc::vec::Vec;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Instant {
    Instant::from_nanos(1_000_000_000_000 + ms * 1_000_000)
}

/// A path of 15 ms whose probes were answered, or were not, before it is lost beside its subflow.
fn lost(answers: bool) -> Dialling {
    let mut path = Dialling::default();
    path.moved(at(0));
    path.begin(at(0), false);
    path.attempt(at(0), 1, 128);
    path.connected(at(15), MS * 15);
    path.up(at(60));
    while let Some(due) = path.next_probe().filter(|due| *due < at(10_000)) {
        path.probe(due);
        if answers {
            path.answered(due + MS * 15, MS * 15);
        }
    }
    path.begin(at(10_000), true);
    path
}

/// Dials up to a time: the network takes probes from `back` on, and SYNs from `open` on. Returns when
/// each SYN was sent and each probe, in ms of the outage.
fn dial(path: &mut Dialling, until: u64, back: u64, open: u64) -> (Vec<u64>, Vec<u64>) {
    let ms = |at: Instant| at.saturating_since(at_outage()).as_millis() as u64;
    let (mut syns, mut probes) = (Vec::new(), Vec::new());
    // Answers to probes arrive at these times; attempts end at these, some with a subflow.
    let (mut answers, mut ends) = (Vec::new(), Vec::new());
    let mut now = at_outage();
    while ms(now) < until {
        if path.next_attempt().is_some_and(|due| due <= now) {
            let patience = path.attempt(now, 1, 128);
            let comes_up = ms(now) >= open;
            ends.push((now + if comes_up { MS * 60 } else { patience }, comes_up));
            syns.push(ms(now));
        }
        if path.next_probe().is_some_and(|due| due <= now) {
            answers.extend((ms(now) >= back).then_some(now + MS * 15));
            probes.push(ms(now));
            path.probe(now);
        }
        for at in answers.extract_if(.., |at| *at <= now) {
            path.answered(at, MS * 15);
        }
        for (at, comes_up) in ends.extract_if(.., |(at, _)| *at <= now) {
            if comes_up {
                path.up(at);
                return (syns, probes);
            }
            path.vanished();
        }
        let due = path.next_attempt().into_iter().chain(path.next_probe());
        let next = due.chain(answers.iter().copied()).chain(ends.iter().map(|(at, _)| *at)).min();
        now = next.unwrap().max(now);
    }
    (syns, probes)
}

fn at_outage() -> Instant {
    at(10_000)
}

#[test]
fn f18_a_probe_finds_the_path_and_an_attempt_follows() {
    for back in [50, 150, 700, 2000, 5000] {
        let (syns, _) = dial(&mut lost(true), 60_000, back, back);
        let last = *syns.last().unwrap();
        // A probe's gap, and the RTT.
        assert!((back..back + back / 128 + 10 + 16).contains(&last), "{back}: {syns:?}");
        assert!(syns.iter().filter(|at| **at < 3000).count() <= 3, "{back}: {syns:?}");
    }
}

#[test]
fn f18_where_an_answer_takes_long_an_attempt_begins_beside_the_probe() {
    let mut path = lost(true);
    path.cancel();
    path.measured(MS * 40);
    path.begin(at_outage(), true);
    assert_eq!(path.next_attempt(), Some(at_outage()));
    path.attempt(at_outage(), 1, 128);
    assert_eq!(path.next_attempt(), Some(at_outage() + SYN_REPEAT), "probes look meanwhile");
    path.answered(at_outage() + MS * 500, MS * 40);
    assert_eq!(path.next_attempt(), Some(at_outage() + MS * 500));
}

#[test]
fn f18_without_probes_three_attempts_look_and_then_ever_fewer() {
    let (syns, probes) = dial(&mut lost(false), 600_000, u64::MAX, u64::MAX);
    assert_eq!(syns[..4], [0, 300, 1000, 7000]);
    assert!(probes.is_empty(), "nobody answers: {probes:?}");
    for pair in syns[3..].windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= 7000.max(pair[0] / 4).min(60_000) && gap <= 60_001, "{syns:?}");
    }
    // A firewall that lets five SYNs in within 30 s drops none.
    assert!(syns[3..].windows(6).all(|six| six[5] - six[0] > 30_000), "{syns:?}");
}

#[test]
fn f18_a_silent_path_is_probed_ever_less() {
    let (syns, probes) = dial(&mut lost(true), 3_600_000, u64::MAX, u64::MAX);
    assert_eq!(syns[0], 1000);
    let within = |from: u64, to: u64| probes.iter().filter(|at| (from..to).contains(*at)).count();
    assert!(within(0, 640) >= 60 && within(0, 60_000) < 700 && within(3_000_000, 3_600_000) < 26);
}

#[test]
fn f18_a_server_that_limits_connections_is_found_out_and_attempts_wait() {
    let mut path = lost(true);
    let (syns, _) = dial(&mut path, 300_000, 0, u64::MAX);
    assert!(path.is_limited(), "{syns:?}");
    for pair in syns[3..].windows(2) {
        assert!(pair[1] - pair[0] >= 10_000, "{syns:?}");
    }
    // It lets one in again: the budget stays what it is.
    path.connected(at(400_000), MS);
    path.up(at(400_000));
    path.begin(at(900_000), true);
    path.begin(at(900_000), true);
    assert!(!path.is_limited());
    let mut lossy = lost(true);
    let (syns, _) = dial(&mut lossy, 10_000, 0, 300);
    assert!(!lossy.is_limited() && syns.len() == 2, "one SYN was lost: {syns:?}");
}

#[test]
fn f18_a_server_that_restarts_is_back_soon() {
    restarts(&mut lost(true));
    // An unknown server gets longer attempts. A refused attempt costs the same, however long it was.
    let mut unknown = Dialling::default();
    unknown.moved(at(0));
    restarts(&mut unknown);
}

fn restarts(path: &mut Dialling) {
    path.cancel();
    path.begin(at_outage(), false);
    let mut syns = Vec::new();
    while syns.len() < 5 {
        let due = path.next_attempt().unwrap();
        syns.push(due.saturating_since(at_outage()).as_millis());
        path.attempt(due, 1, 128);
        path.refused();
    }
    assert_eq!(syns, [0, 300, 1000, 3200, 10_200]);
}

#[test]
fn f18_a_machine_that_refuses_probes_no_longer_runs_its_server_again() {
    let mut path = lost(true);
    path.cancel();
    path.begin(at_outage(), false);
    for ms in [0, 300, 1000, 3200] {
        path.attempt(at_outage() + MS * ms, 1, 128);
        path.refused();
    }
    let mut probes = Vec::new();
    while path.next_attempt().unwrap() > path.next_probe().unwrap() {
        let due = path.next_probe().unwrap();
        probes.push(due.saturating_since(at_outage()).as_millis());
        path.probe(due);
        // The server's program runs again after 6 s.
        if due < at_outage() + MS * 6000 {
            path.unanswerable(due + MS);
        }
    }
    let back = path.next_attempt().unwrap().saturating_since(at_outage()).as_millis();
    assert!((6000..8300).contains(&back), "{back} after {probes:?}");
    let paced = probes.windows(2).all(|pair| pair[1] - pair[0] == 1250);
    assert!(paced, "{probes:?}");
    path.forgotten();
    path.begin(at_outage() + MS * 20_000, false);
    assert!(path.next_attempt().unwrap() <= at_outage() + MS * 20_000);
}

#[test]
fn f18_the_pace_follows_the_rtt() {
    let mut path = lost(false);
    path.cancel();
    path.begin(at_outage(), true);
    path.measured(MS * 630);
    let patience = path.attempt(at_outage(), 1, 128);
    assert!(patience > MS * 630 && patience < SYN_REPEAT);
    assert_eq!(path.next_attempt(), Some(at_outage() + MS * 945));
    path.measured(MS * 2000);
    assert!(path.attempt(at_outage(), 1, 128) > MS * 3000, "its answer comes after 2 s");
    assert_eq!(path.next_probe(), None);
}

#[test]
fn f18_each_address_of_an_unknown_server_has_its_attempt() {
    let mut path = Dialling::default();
    path.begin(at(0), false);
    let mut times = Vec::new();
    while times.len() < 8 {
        let due = path.next_attempt().unwrap();
        times.push(due.saturating_since(at(0)).as_millis());
        path.attempt(due.max(at(0)), 8, 128);
    }
    assert_eq!(times, [0, 250, 500, 750, 1000, 1250, 1500, 1750]);
}

#[test]
fn f18_a_connection_that_is_ended_at_once_each_time_is_no_sign_of_life() {
    let mut path = lost(false);
    let mut count = 0;
    let mut now = at_outage();
    while now < at(70_000) {
        let due = path.next_attempt().unwrap().max(now);
        path.attempt(due, 1, 128);
        path.connected(due + MS, MS);
        path.up(due + MS * 2);
        now = due + MS * 3;
        path.begin(now, false);
        count += 1;
    }
    assert!((5..=12).contains(&count), "{count} in a minute");
}

#[test]
fn f18_a_radio_that_flaps_is_dialled_each_time() {
    let mut path = lost(true);
    for round in 0..50 {
        let begun = at(10_000 + round * 650);
        path.begin(begun, true);
        path.answered(begun + MS * 150, MS);
        let due = path.next_attempt().unwrap();
        assert_eq!(due, begun + MS * 150, "round {round}");
        path.attempt(due, 1, 128);
        path.connected(due + MS, MS);
        path.up(due + MS * 4);
    }
}
