//! What the terminal shows, as reviewed snapshots.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::draw;
use crate::status::{FarPathReport, PathErrorReport, StatusReport};
use crate::top::{Key, TopState};

fn report(second: u64) -> StatusReport {
    let path = |name: &str, mbps: u64, change: serde_json::Value| {
        let mut path = serde_json::json!({
            "name": name, "local": null, "remote": null, "health": "active", "priority": "primary",
            "direction": "just-in-time", "why_idle": "", "why": "commit-limit",
            "waited_s": {"commit-limit": second}, "rate_mbps": mbps * 2, "rtt_ms": 4.25,
            "min_rtt_ms": 4.0, "commit_bytes": 150_000, "commit_limit_bytes": 200_000,
            "sent_bytes": second * mbps * 125_000, "redundant_bytes": 0,
            "redundant": {"lost": 0, "suspect": 0, "overdue": 0, "idle": 0, "scheduled": 0},
            "received_bytes": second * 1000, "duplicate_bytes": 0, "retransmitted_share": 0.0,
            "subflows": 1, "suspected": 0
        });
        path.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        path
    };
    let standby = serde_json::json!({
        "priority": "backup", "why": "standby", "sent_bytes": 0, "received_bytes": 0,
        "commit_bytes": 0, "metered": true
    });
    let paths = [
        path("wifi", 60 + second % 7, serde_json::json!({})),
        path("wigig", 180, serde_json::json!({"health": "suspect", "why": "suspect"})),
        path("lte", 0, standby),
    ];
    let delays = serde_json::json!({"p50": 0.6, "p99": 4.0, "max": 9.0});
    serde_json::from_value(serde_json::json!({
        "schema": "sumrate.status.v1", "version": "0.1.0", "role": "client", "pid": 4242,
        "uptime_s": second as f64, "proxies": {"socks": "127.0.0.1:1080", "http": null},
        "outage": null,
        "sessions": [{
            "id": "0123456789abcdef0123456789abcdef", "scheduler": "two-ended",
            "sent_bytes": 2_000_000_000u64, "redundant_bytes": 1_000_000, "received_bytes": 50_000,
            "duplicate_bytes": 0, "receive_memory_bytes": 0, "receive_buffer_peak_bytes": 0,
            "streams_opened": [3, 0], "paths": paths,
            "streams": [{
                "id": 5, "class": "interactive", "written_bytes": 2_000_000_000u64,
                "acknowledged_bytes": 1_990_000_000u64, "received_bytes": 50_000,
                "receive_memory_bytes": 0, "receive_buffer_peak_bytes": 0,
                "in_order_delay_ms": delays, "longest_stall_ms": 21.0, "open_windows": 2
            }],
            "windows": [{
                "stream": 5, "sending": true, "from": 1_990_000_000u64, "to": 1_994_000_000u64,
                "cells": "AA=AAAAAAAA...........................................BBBB==BBBB"
            }, {
                "stream": 7, "sending": false, "from": 0, "to": 64, "cells": "--==--=="
            }]
        }]
    }))
    .unwrap()
}

fn shown(state: &TopState, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal.backend().to_string()
}

fn state() -> TopState {
    let mut state = TopState::default();
    (1..=60).for_each(|second| state.update(report(second)));
    state
}

#[test]
fn paths_rates_and_windows() {
    insta::assert_snapshot!(shown(&state(), 120, 30));
}

#[test]
fn a_narrow_terminal_shows_what_matters() {
    insta::assert_snapshot!(shown(&state(), 64, 22));
}

#[test]
fn paths_of_several_sessions_are_told_apart() {
    let mut state = TopState::default();
    for second in 1..=3 {
        let mut report = report(second);
        let mut other = report.sessions[0].clone();
        other.id = "fedcba9876543210fedcba9876543210".to_owned();
        other.credential = Some("laptop".to_owned());
        report.sessions.push(other);
        state.update(report);
    }
    let shown = shown(&state, 120, 30);
    for expected in ["path  session         health", "wifi  01234567 ", "wifi  fedcba98 laptop"] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
}

#[test]
fn a_download_shows_what_the_other_end_says() {
    let mut report = report(1);
    let path = &mut report.sessions[0].paths[0];
    path.why = "nothing-to-send".to_owned();
    path.far = Some(FarPathReport {
        why: "rate-cap".to_owned(),
        rate_mbps: Some(77.0),
        ..FarPathReport::default()
    });
    let mut state = TopState::default();
    state.update(report);
    let shown = shown(&state, 120, 30);
    let row = shown.lines().find(|line| line.contains("A wifi")).unwrap();
    assert!(row.contains(" 77 ") && row.contains("in rate-cap"), "{row}");
}

#[test]
fn the_selected_path_is_explained() {
    let mut state = state();
    assert!(state.press(Key::Down) && state.press(Key::Down) && state.press(Key::Explain));
    assert!(state.press(Key::Down), "there is none below the last");
    insta::assert_snapshot!(shown(&state, 100, 24));
    assert!(!state.press(Key::Quit));
}

#[test]
fn a_pause_keeps_the_picture_and_an_error_is_shown() {
    let mut state = state();
    let before = shown(&state, 120, 30);
    state.press(Key::Pause);
    state.update(report(99));
    assert_eq!(shown(&state, 120, 30).replace("   PAUSED", "         "), before);
    state.error = Some("nothing answers".to_owned());
    assert!(shown(&state, 120, 30).contains("nothing answers"));
}

#[test]
fn any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (10, 3), (300, 100), (40, 8)] {
        shown(&state(), width, height);
        shown(&TopState::default(), width, height);
    }
}

#[test]
fn what_went_wrong_with_a_path_is_shown_beside_why() {
    let mut dead = report(61);
    let path = &mut dead.sessions[0].paths[0];
    path.why = "no-subflow".to_owned();
    path.last_error = Some(PathErrorReport {
        reason: "Connection refused".to_owned(),
        ago_s: 1.0,
        ..Default::default()
    });
    let mut state = state();
    state.update(dead);
    let text = shown(&state, 140, 30);
    assert!(text.contains("no-subflow: Connection refused"), "{text}");
}

/// Words of the first line that has this one, without borders.
fn line_with(picture: &str, word: &str) -> Vec<String> {
    let is_frame = |c: char| "\"│".contains(c);
    let mut lines = picture.lines().map(|line| line.trim_matches(is_frame));
    let line = lines.find(|line| line.split_whitespace().any(|found| found == word));
    let line = line.unwrap_or_else(|| panic!("no line has {word}:\n{picture}"));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_terminal_without_room_leaves_the_least_important_columns_out() {
    let all = "path health priority direction out in link-out RTT commit now";
    let at_80 = "path health priority out in link-out RTT now";
    let at_67 = "path health priority out in RTT now";
    let cells = "A wifi active primary just-in-time 123.0 0.0 128 4.2 ms 75 % commit-limit";
    let cells_at_80 = "A wifi active primary 123.0 0.0 128 4.2 ms commit-limit";
    let cells_at_67 = "A wifi active primary 123.0 0.0 4.2 ms commit-limit";
    for (width, heads, path) in [
        (100, all, cells),
        (80, at_80, cells_at_80),
        (60, "path health out in RTT now", "A wifi active 123.0 0.0 4.2 ms commit-limit"),
        (67, at_67, cells_at_67),
        (50, "path health out in now", "A wifi active 123.0 0.0 commit-limit"),
        (40, "path health out in", "A wifi active 123.0 0.0"),
        (26, "path out in", "A wifi 123.0 0.0"),
    ] {
        let picture = shown(&state(), width, 24);
        assert_eq!(line_with(&picture, "path").join(" "), heads, "{width}:\n{picture}");
        assert_eq!(line_with(&picture, "A").join(" "), path, "{width}:\n{picture}");
    }
}

#[test]
fn nothing_that_is_shown_is_cut() {
    let mut state = TopState::default();
    let mut longest = report(1);
    for path in &mut longest.sessions[0].paths {
        path.name = format!("enp0s31f6u1-{}", path.name);
        path.why = "left-to-another".to_owned();
        path.rtt_ms = 12345.6;
    }
    state.update(longest);
    for width in [60, 80, 100, 120] {
        let picture = shown(&state, width, 24);
        let heads = line_with(&picture, "path");
        let path = line_with(&picture, "B");
        let mut wanted = vec!["B", "enp0s31f6u1-wigig"];
        let all: [(&str, &[&str]); 9] = [
            ("health", &["suspect"]),
            ("priority", &["primary"]),
            ("direction", &["just-in-time"]),
            ("out", &["-"]),
            ("in", &["-"]),
            ("link-out", &["360"]),
            ("RTT", &["12345.6", "ms"]),
            ("commit", &["75", "%"]),
            ("now", &["left-to-another"]),
        ];
        for (head, cells) in all {
            if heads.iter().any(|shown| shown == head) {
                wanted.extend(cells);
            }
        }
        assert_eq!(path, wanted, "{width}:\n{picture}");
        for words in ["received 50.0 kB", "- missing ", "q quit"] {
            assert!(picture.contains(words), "{width}: {words}\n{picture}");
        }
        let stream = line_with(&picture, "written").join(" ");
        let whole = ["received 50.0 kB", "longest stall 21 ms"].map(|end| stream.ends_with(end));
        assert!(whole.contains(&true), "{width}: {stream}");
    }
}
