use super::*;
use crate::refusals::RefusedReport;
use crate::status::{
    FarPathReport, ProxyReport, QuotaReport, SessionReport, StreamReport, annotate_headline,
};
use fbdt_proto::Priority;

fn path(name: &str, down_mbps: f64, up_mbps: f64) -> PathReport {
    PathReport {
        name: name.to_owned(),
        health: "active".to_owned(),
        priority: "primary".to_owned(),
        why: "nothing-to-send".to_owned(),
        rtt_ms: 12.6,
        down_mbps,
        up_mbps,
        received_bytes: 1_000_000_000,
        ..PathReport::default()
    }
}

fn written(mut report: StatusReport, all: bool) -> String {
    annotate_headline(&mut report);
    let mut out = Vec::new();
    write_table(&mut out, &report, all).unwrap();
    String::from_utf8(out).unwrap()
}

fn client(paths: Vec<PathReport>) -> StatusReport {
    let rates = RatesReport {
        down_mbps: paths.iter().map(|path| path.down_mbps).sum(),
        up_mbps: paths.iter().map(|path| path.up_mbps).sum(),
    };
    let proxies = ProxyReport { socks: Some("127.0.0.1:1080".to_owned()), http: None };
    let sessions = vec![SessionReport { paths, ..SessionReport::default() }];
    let role = "client".to_owned();
    let version = "1.2.3".to_owned();
    StatusReport { role, version, pid: 7, rates, proxies, sessions, ..StatusReport::default() }
}

#[test]
fn a_download_is_a_sentence_a_row_for_each_path_and_a_total() {
    let said = written(client(vec![path("wlan0", 57.0, 0.4), path("usb0", 28.0, 0.2)]), false);
    let wanted = "\
Client (process 7, SOCKS5 proxy 127.0.0.1:1080): 85 Mbit/s down over wlan0 and usb0, both fine

path   state      down       up          RTT    data used
wlan0  receiving  57 Mbit/s  400 kbit/s  13 ms  1.0 GB
usb0   receiving  28 Mbit/s  200 kbit/s  13 ms  1.0 GB
Total             85 Mbit/s  600 kbit/s         2.0 GB

0 open connections; running for 0 s; sumrate 1.2.3
";
    assert_eq!(said, wanted);
}

#[test]
fn a_server_with_several_clients_shows_a_row_for_each() {
    let lost = PathReport { health: "dead".to_owned(), ..path("usb0", 0.0, 0.0) };
    let session = |id: &str, client: &str, paths| SessionReport {
        id: id.to_owned(),
        credential: Some(client.to_owned()),
        paths,
        ..SessionReport::default()
    };
    let mut report = client(Vec::new());
    report.role = "server".to_owned();
    report.sessions = vec![
        session("0123456789abcdef", "anna", vec![path("wlan0", 1.0, 57.0), lost]),
        session("fedcba9876543210", "ben", vec![path("eth0", 0.0, 28.0)]),
    ];
    let said = written(report.clone(), false);
    let wanted = "\
client  session   paths      down        up         data used
anna    01234567  1 of 2 up  1.0 Mbit/s  57 Mbit/s  2.0 GB
ben     fedcba98  1 of 1 up  0           28 Mbit/s  1.0 GB
Total             2 of 3 up  1.0 Mbit/s  85 Mbit/s  3.0 GB
`sumrate status --all` shows the paths of each client
";
    assert!(said.contains(wanted), "{said}");
    assert!(!said.contains("wlan0 "), "{said}");
    let all = written(report.clone(), true);
    assert!(all.contains("client anna (session 01234567)") && all.contains("wlan0"), "{all}");
    report.sessions.pop();
    assert!(written(report, false).contains("wlan0"), "the paths of an only client are shown");
}

#[test]
fn capacities_are_shown_where_present_traffic_supports_them() {
    let far = |rate, why: &str| {
        let why = why.to_owned();
        Some(FarPathReport { rate_mbps: Some(rate), why, ..FarPathReport::default() })
    };
    let busy = PathReport { far: far(80.25, "sending"), ..path("wifi", 57.0, 0.0) };
    let said = written(client(vec![busy.clone(), path("lte", 0.0, 0.0)]), false);
    assert!(said.contains("capacity down") && said.contains("80 Mbit/s"), "{said}");
    let idle = PathReport { down_mbps: 0.0, ..busy.clone() };
    let stale = PathReport { far: far(1139.4, "commit-limit"), ..busy.clone() };
    let wrong = PathReport { far: far(1139.4, "sending"), ..busy.clone() };
    let dead = PathReport { health: "dead".to_owned(), ..busy };
    for path in [&stale, &wrong] {
        let said = written(client(vec![path.clone()]), false);
        assert!(said.contains("at least 57 Mbit/s"), "{said}");
    }
    for path in [idle, stale, wrong, dead] {
        let said = written(client(vec![path]), false);
        assert!(!said.contains("80 Mbit/s") && !said.contains("1.14"), "{said}");
    }
}

#[test]
fn a_short_round_trip_is_not_none() {
    assert_eq!([0.01, 0.05, 9.94, 12.6].map(rtt_words), ["<0.1 ms", "0.1 ms", "9.9 ms", "13 ms"]);
}

#[test]
fn internals_are_shown_on_request_alone() {
    let mut report = client(vec![path("wlan0", 57.0, 0.4)]);
    report.sessions[0].paths[0].commit_limit_bytes = 47_300;
    let (short, long) = (written(report.clone(), false), written(report, true));
    assert!(!short.contains("in flight") && !short.contains("47.3 kB"), "{short}");
    assert!(long.contains("in flight at most") && long.contains("47.3 kB"), "{long}");
}

#[test]
fn what_is_captured_is_said() {
    let all = CaptureReport { method: "tun".to_owned(), connections: 3, ..Default::default() };
    assert_eq!(captured(&all), "--tun: 3 connections captured");
    let some = CaptureReport {
        gateway: true,
        dns: Some("9.9.9.9:53".to_owned()),
        only_user: vec!["me".to_owned(), "1001".to_owned()],
        direct: vec!["10.0.0.0/8".to_owned()],
        ..all
    };
    let wanted = "--tun: 3 connections captured, of the users me 1001, not to 10.0.0.0/8, also of \
                  machines behind this one; DNS questions go to 9.9.9.9:53";
    assert_eq!(captured(&some), wanted);
    let removed = CaptureReport { restored: 2, ..some.clone() };
    assert!(captured(&removed).ends_with("restored 2 times"), "{}", captured(&removed));
    let broken = CaptureReport { broken: Some("sumrate0".to_owned()), ..some };
    assert!(captured(&broken).contains("REFUSED now") && captured(&broken).contains("sumrate0"));
}

#[test]
fn paths_without_a_session_are_listed_with_the_day_on_which_they_are_used_again() {
    let mut lte = PathReport::idle("lte", Priority::PRIMARY);
    let (limit_bytes, month) = (Some(1_000_000_000), "2026-12".to_owned());
    let quota = QuotaReport { limit_bytes, used_bytes: 1_200_000_000, month };
    lte.idle_for_quota(&quota);
    lte.quota = Some(quota);
    let last_error = "every path has used up its quota (lte)".to_owned();
    let outage =
        OutageReport { since_s: 3.0, last_error, next_attempt_s: None, quotas_spent: true };
    let report =
        StatusReport { outage: Some(outage), idle_paths: vec![lte], ..StatusReport::default() };
    let said = written(report, false);
    for wanted in [
        ": every path has used up its quota (lte)\n",
        "\nlte   paused (quota, until 2027-01-01)",
        "1.2 GB of 1.0 GB used in 2026-12\n",
    ] {
        assert!(said.contains(wanted), "{wanted} in {said}");
    }
    assert!(!said.contains("unreachable") && !said.contains("dead"), "{said}");
}

#[test]
fn how_a_path_is_to_be_used_is_said_where_it_is_not_as_usual() {
    assert!(notes(&path("wlan0", 0.0, 0.0)).is_empty());
    let quota = QuotaReport {
        limit_bytes: Some(10_000_000_000),
        used_bytes: 1_100_000_000,
        month: "2026-11".to_owned(),
    };
    let path = PathReport {
        priority: "backup".to_owned(),
        rate_cap_mbps: Some(20.0),
        weight: Some(3),
        never: vec!["background".to_owned()],
        metered: true,
        quota: Some(quota),
        ..PathReport::default()
    };
    let wanted = "backup; limited to 20 Mbit/s each way; weight 3; never background; 1.1 GB of \
                  10.0 GB used in 2026-11; metered";
    assert_eq!(notes(&path).join("; "), wanted);
    let metered = PathReport { metered: true, ..PathReport::default() };
    assert_eq!(notes(&metered), ["metered"]);
}

#[test]
fn datagrams_and_refusals_are_said_beside_paths() {
    let udp = UdpReport {
        flows: 1,
        opened: 4,
        sent_datagrams: 1,
        sent_bytes: 1_400,
        received_datagrams: 20,
        received_bytes: 24_000,
        dropped_datagrams: 3,
        dropped_bytes: 999,
    };
    let attempts = Some(AttemptsReport { connecting: 2, resolving: 1, gave_way: 7 });
    let refused = RefusedReport {
        destination: "10.0.0.1:80".to_owned(),
        reason: "private".to_owned(),
        words: "refused a connection to 10.0.0.1:80".to_owned(),
        count: 12,
        ago_s: 3,
    };
    let reasons = [("port-closed".to_owned(), 2), ("private".to_owned(), 12)].into();
    let refusals = Some(RefusalsReport { reasons, latest: vec![refused] });
    let udp = Some(udp);
    let report = StatusReport { udp, attempts, refusals, ..StatusReport::default() };
    let said = written(report, false);
    for wanted in [
        "UDP: 1 flow open, 4 so far; sent 1 datagram (1.4 kB), received 20 (24.0 kB), dropped 3 (999 B)\n",
        "\n2 connections are being made, 1 name is looked up; 7 attempts gave way to others\n",
        "\n14 refused connections (port-closed 2, private 12)\n",
        "  12 times, last 3 s ago: refused a connection to 10.0.0.1:80\n",
    ] {
        assert!(said.contains(wanted), "{wanted} in {said}");
    }
}

#[test]
fn a_server_names_each_client() {
    let session = |name: &str| SessionReport {
        id: name.repeat(16),
        credential: Some(name.to_owned()),
        paths: vec![path("wlan0", 0.0, 57.0)],
        streams: Vec::<StreamReport>::new(),
        ..SessionReport::default()
    };
    let report = StatusReport {
        role: "server".to_owned(),
        listen: vec!["0.0.0.0:7443".to_owned()],
        sessions: vec![session("ab"), session("cd")],
        ..StatusReport::default()
    };
    let said = written(report, true);
    assert!(said.starts_with("Server (process 0, listens on 0.0.0.0:7443): 2 clients, "), "{said}");
    assert!(said.contains("\nclient ab (session abababab)\npath "), "{said}");
    assert!(!said.contains("Total"), "one path is its own total: {said}");
}
