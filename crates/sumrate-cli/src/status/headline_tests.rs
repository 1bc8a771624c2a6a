use super::*;
use crate::status::{PathErrorReport, QuotaReport, RatesReport};

fn path(name: &str, health: &str, down_mbps: f64, up_mbps: f64) -> PathReport {
    PathReport {
        name: name.to_owned(),
        health: health.to_owned(),
        why: "nothing-to-send".to_owned(),
        down_mbps,
        up_mbps,
        ..PathReport::default()
    }
}

fn report(role: &str, sessions: Vec<Vec<PathReport>>) -> StatusReport {
    let paths = sessions.iter().flatten();
    let rates = paths.fold(RatesReport::default(), |sum, path| RatesReport {
        down_mbps: sum.down_mbps + path.down_mbps,
        up_mbps: sum.up_mbps + path.up_mbps,
    });
    let session = |paths| SessionReport { paths, ..SessionReport::default() };
    let sessions = sessions.into_iter().map(session).collect();
    StatusReport { role: role.to_owned(), rates, sessions, ..StatusReport::default() }
}

fn said(role: &str, sessions: Vec<Vec<PathReport>>) -> (Level, String) {
    let mut report = report(role, sessions);
    annotate(&mut report);
    let HeadlineReport { level, sentence } = report.headline.unwrap();
    (level, sentence)
}

fn paused(name: &str) -> PathReport {
    let quota = QuotaReport {
        limit_bytes: Some(1_000_000),
        used_bytes: 1_000_000,
        month: "2026-11".to_owned(),
    };
    PathReport { why: "quota".to_owned(), quota: Some(quota), ..path(name, "dead", 0.0, 0.0) }
}

#[test]
fn a_download_names_its_rate_and_its_paths() {
    let both = vec![path("wlan0", "active", 57.2, 0.4), path("usb0", "active", 27.9, 0.2)];
    let wanted = "85 Mbit/s down over wlan0 and usb0, both fine".to_owned();
    assert_eq!(said("client", vec![both]), (Level::Good, wanted));
    let upload = vec![path("wlan0", "active", 0.1, 3.13)];
    let wanted = "3.1 Mbit/s up over wlan0, fine".to_owned();
    assert_eq!(said("client", vec![upload]), (Level::Good, wanted));
    let idle = vec![path("a", "active", 0.0, 0.0); 3];
    assert_eq!(said("client", vec![idle]), (Level::Idle, "idle, all fine".to_owned()));
}

#[test]
fn a_path_that_is_not_well_is_named() {
    let lost = vec![path("wlan0", "dead", 0.0, 0.0), path("usb0", "active", 28.0, 0.0)];
    let wanted = "28 Mbit/s down over usb0, wlan0: not connected".to_owned();
    assert_eq!(said("client", vec![lost]), (Level::Degraded, wanted));
    let silent = vec![path("wlan0", "suspect", 0.0, 0.0), path("usb0", "active", 0.0, 0.0)];
    let wanted = "idle, wlan0: no answer, probing".to_owned();
    assert_eq!(said("client", vec![silent]), (Level::Degraded, wanted));
    let all = vec![path("wlan0", "dead", 0.0, 0.0), path("usb0", "dead", 0.0, 0.0)];
    let wanted = "wlan0: not connected, usb0: not connected".to_owned();
    assert_eq!(said("client", vec![all]), (Level::Down, wanted));
}

#[test]
fn many_paths_are_counted_and_not_named() {
    let names: Vec<String> = (0..64).map(|number| format!("p{number}")).collect();
    let all = |health, down| names.iter().map(|name| path(name, health, down, 0.0)).collect();
    let wanted = "640 Mbit/s down over 64 paths, all fine".to_owned();
    assert_eq!(said("client", vec![all("active", 10.0)]), (Level::Good, wanted));
    let wanted = "64 of 64 paths do not work".to_owned();
    assert_eq!(said("client", vec![all("dead", 0.0)]), (Level::Down, wanted));
    let mut paused: Vec<_> = names.iter().map(|name| paused(name)).collect();
    paused.push(path("wlan0", "active", 3.0, 0.0));
    let wanted = "3.0 Mbit/s down over wlan0, 64 paths paused, wlan0 fine".to_owned();
    assert_eq!(said("client", vec![paused]), (Level::Good, wanted));
}

#[test]
fn a_spent_quota_is_a_pause_and_no_fault() {
    let paths = vec![path("wlan0", "active", 57.0, 0.0), paused("usb0")];
    let wanted = "57 Mbit/s down over wlan0, usb0 paused (quota), wlan0 fine".to_owned();
    assert_eq!(said("client", vec![paths]), (Level::Good, wanted));
    let words = "paused (quota, until 2026-12-01)".to_owned();
    assert_eq!(state(&paused("usb0")), StateReport { level: Level::Idle, words });
}

#[test]
fn a_server_counts_its_clients() {
    assert_eq!(said("server", vec![]), (Level::Idle, "no client is connected".to_owned()));
    let one = vec![path("wlan0", "active", 0.2, 57.0), path("usb0", "active", 0.0, 28.0)];
    let wanted = "1 client, sending 85 Mbit/s over wlan0 and usb0, both fine".to_owned();
    assert_eq!(said("server", vec![one.clone()]), (Level::Good, wanted));
    let ill = vec![path("wlan0", "dead", 0.0, 0.0), path("usb0", "active", 0.0, 0.0)];
    let wanted = "2 clients, sending 85 Mbit/s, 1 with a path that does not work".to_owned();
    assert_eq!(said("server", vec![one, ill]), (Level::Degraded, wanted));
}

#[test]
fn a_client_without_its_server_says_so() {
    assert_eq!(said("client", vec![]).0, Level::Down);
    let outage = OutageReport {
        since_s: 12.0,
        last_error: "connection refused".to_owned(),
        next_attempt_s: Some(3.0),
        quotas_spent: false,
    };
    let mut report = StatusReport { outage: Some(outage), ..report("client", vec![]) };
    annotate(&mut report);
    let headline = report.headline.unwrap();
    assert_eq!(headline.level, Level::Down);
    assert!(headline.sentence.ends_with("connection refused; next attempt in 3 s"), "{headline:?}");
}

#[test]
fn states_describe_the_busier_direction() {
    let words = |path: PathReport| state(&path).words;
    assert_eq!(words(path("a", "active", 57.0, 1.0)), "receiving 57 Mbit/s");
    assert_eq!(words(path("a", "active", 1.0, 12.4)), "sending 12 Mbit/s");
    assert_eq!(words(path("a", "active", 0.01, 0.0)), "idle");
    let standby = PathReport { why: "standby".to_owned(), ..path("a", "active", 0.0, 0.0) };
    assert_eq!(words(standby), "standby");
    let error = PathErrorReport { interface_gone: true, ..PathErrorReport::default() };
    let gone = PathReport { last_error: Some(error), ..path("a", "dead", 0.0, 0.0) };
    assert_eq!(words(gone), "interface gone");
}

#[test]
fn rates_have_two_or_three_digits() {
    let words = [0.0001, 0.004, 0.57, 5.71, 57.4, 999.7, 1234.0].map(rate_words);
    let wanted =
        ["0", "4 kbit/s", "570 kbit/s", "5.7 Mbit/s", "57 Mbit/s", "1.00 Gbit/s", "1.23 Gbit/s"];
    assert_eq!(words, wanted);
    assert_eq!(list(&["a", "b", "c"]), "a, b and c");
}
