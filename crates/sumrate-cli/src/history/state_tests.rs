use fbdt::Health;

use super::*;
use crate::history::{PathLook, SessionLook};
use crate::status::SessionReport;

fn path(name: &str, down: u64) -> PathLook {
    let name = name.to_owned();
    let health = Health::Active;
    PathLook {
        name,
        health,
        withheld: None,
        down,
        up: down / 10,
        carried: down * 2,
        rtt_us: 12_000,
    }
}

fn look(id: &str, client: Option<&str>, paths: Vec<PathLook>) -> Look {
    let session = SessionLook { id: id.to_owned(), client: client.map(str::to_owned), paths };
    Look { sessions: vec![session], outage: None }
}

/// 10 and 5 Mbit/s for so many seconds.
fn carried(seconds: u32) -> State {
    let mut state = State::default();
    for second in 1..=seconds {
        let bytes = |mbps: u64| mbps * 125_000 * u64::from(second);
        let paths = vec![path("wlan0", bytes(10)), path("usb0", bytes(5))];
        state.observe(f64::from(second), &look("a", None, paths));
    }
    state
}

#[test]
fn the_total_is_the_sum_of_the_paths() {
    let report = carried(400).report(400.5);
    let down = |index: usize| &report.paths[index].down_mbps;
    assert_eq!((report.paths[0].name.as_str(), down(0).len()), ("usb0", 300));
    assert_eq!((down(0)[299], down(1)[0], report.total.down_mbps[150]), (5.0, 10.0, 15.0));
    assert_eq!(report.total.up_mbps[299], 1.5);
    assert_eq!(report.paths[1].rtt_ms[0], Some(12.0));
    assert!((report.events[0].ago_s - 399.5).abs() < 1e-9, "{:?}", report.events);
}

#[test]
fn seconds_without_a_sample_get_the_mean_and_seconds_before_the_first_are_empty() {
    let mut state = carried(2);
    let paths = vec![path("wlan0", 125_000 * 62), path("eth0", 0)];
    state.observe(6.0, &look("a", None, paths));
    let report = state.report(6.0);
    assert_eq!(report.total.down_mbps, [15.0, 15.0, 10.5, 10.5, 10.5, 10.5]);
    let eth0 = report.paths.iter().find(|path| path.name == "eth0").unwrap();
    assert_eq!(eth0.rtt_ms, [None, None, Some(12.0), Some(12.0), Some(12.0), Some(12.0)]);
    let usb0 = report.paths.iter().find(|path| path.name == "usb0").unwrap();
    assert_eq!(
        usb0.down_mbps,
        [5.0, 5.0, 0.0, 0.0, 0.0, 0.0],
        "it is gone, and stays in the chart"
    );
}

#[test]
fn a_path_that_is_gone_leaves_when_nothing_of_it_is_left_to_draw() {
    let mut state = carried(2);
    for second in 3..=303 {
        state.observe(f64::from(second), &look("a", None, vec![path("wlan0", 0)]));
    }
    let names: Vec<String> = state.report(303.0).paths.into_iter().map(|path| path.name).collect();
    assert_eq!(names, ["wlan0"]);
}

#[test]
fn a_status_report_gets_rates_and_bytes_of_all_sessions() {
    let mut state = carried(10);
    // The session is replaced: bytes since the start stay.
    state.observe(11.0, &look("b", None, vec![path("wlan0", 125_000)]));
    state.observe(12.0, &look("b", None, vec![path("wlan0", 625_000)]));
    let now = PathReport {
        name: "wlan0".to_owned(),
        received_bytes: 875_000,
        sent_bytes: 12_500,
        ..PathReport::default()
    };
    let annotated = |path: PathReport| {
        let session =
            SessionReport { id: "b".to_owned(), paths: vec![path], ..SessionReport::default() };
        let mut report = StatusReport { sessions: vec![session], ..StatusReport::default() };
        state.annotate(12.5, &mut report);
        report
    };
    let report = annotated(now.clone());
    let wlan0 = &report.sessions[0].paths[0];
    assert_eq!((wlan0.down_mbps, wlan0.up_mbps), (4.0, 0.0));
    assert_eq!(wlan0.carried_bytes, 2 * (12_500_000 + 625_000));
    assert_eq!(report.rates, RatesReport { down_mbps: 4.0, up_mbps: 0.0 });
    let report = annotated(PathReport { health: "dead".to_owned(), ..now });
    assert_eq!(report.rates, RatesReport::default(), "a lost path has no rate");
    assert_eq!(report.sessions[0].paths[0].carried_bytes, 2 * (12_500_000 + 625_000));
}

#[test]
fn a_server_counts_sessions_of_one_name_apart() {
    let mut state = State::default();
    let bytes = |id: &str, down| SessionLook {
        id: id.to_owned(),
        client: Some("first".to_owned()),
        paths: vec![path("wlan0", down)],
    };
    state
        .observe(1.0, &Look { sessions: vec![bytes("a", 1_000), bytes("b", 5_000)], outage: None });
    let session = |id: &str| SessionReport {
        id: id.to_owned(),
        credential: Some("first".to_owned()),
        paths: vec![PathReport { name: "wlan0".to_owned(), ..PathReport::default() }],
        ..SessionReport::default()
    };
    let mut report = StatusReport {
        role: "server".to_owned(),
        sessions: vec![session("a"), session("b")],
        ..StatusReport::default()
    };
    state.annotate(1.5, &mut report);
    let carried = |index: usize| report.sessions[index].paths[0].carried_bytes;
    assert_eq!((carried(0), carried(1)), (2_000, 10_000));
}

#[test]
fn many_clients_of_a_server_take_bounded_memory() {
    let mut state = State::default();
    for second in 1..=200u32 {
        let client = format!("client-{second}");
        let paths = vec![path("wlan0", 1_000_000), path("usb0", 1_000_000)];
        state.observe(f64::from(second), &look(&client, Some(&client), paths));
    }
    assert_eq!((state.paths.len(), state.counters.len(), state.carried.len()), (64, 2, 0));
    assert_eq!(state.report(200.0).total.down_mbps[199], 16.0, "the total has all");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_takes_one_sample_a_second() {
    let history = History::new(Instant::now());
    let looks = std::cell::Cell::new(0);
    let keep = history.keep(|| {
        looks.set(looks.get() + 1);
        Look::default()
    });
    let _ = tokio::time::timeout(Duration::from_millis(9_500), keep).await;
    assert_eq!(looks.get(), 10);
    history.note_change("wlan0", "wlan0 is a backup now".to_owned());
    assert_eq!(history.report().events[0].event, "path-changed");
}
