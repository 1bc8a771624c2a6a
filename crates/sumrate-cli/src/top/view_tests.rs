//! What the terminal shows, as reviewed snapshots.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::draw;
use crate::history::HistoryReport;
use crate::status::{PathReport, StatusReport};
use crate::top::{Key, TopState};

fn report(second: u64) -> StatusReport {
    let path = |name: &str, down_mbps: f64, change: serde_json::Value| {
        let mut path = serde_json::json!({
            "name": name, "local": null, "remote": null, "health": "active", "priority": "primary",
            "state": {"level": "good", "words": format!("receiving {down_mbps:.0} Mbit/s")},
            "direction": "just-in-time", "why_idle": "", "why": "commit-limit",
            "down_mbps": down_mbps, "up_mbps": 0.31, "carried_bytes": 1_240_000_000u64,
            "waited_s": {"commit-limit": second}, "rate_mbps": 60, "rtt_ms": 14.25,
            "min_rtt_ms": 4.0, "commit_bytes": 150_000, "commit_limit_bytes": 200_000,
            "sent_bytes": second * 125_000, "redundant_bytes": 0,
            "redundant": {"lost": 0, "suspect": 0, "overdue": 0, "idle": 0, "scheduled": 0},
            "received_bytes": second * 1000, "duplicate_bytes": 0, "retransmitted_share": 0.0,
            "subflows": 1, "suspected": 0
        });
        path.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        path
    };
    let silent = serde_json::json!({
        "health": "suspect", "why": "suspect", "rtt_ms": 310.0,
        "state": {"level": "degraded", "words": "no answer, probing"}
    });
    let standby = serde_json::json!({
        "priority": "backup", "why": "standby", "commit_bytes": 0, "metered": true,
        "up_mbps": 0.0, "carried_bytes": 51_000, "sent_bytes": 0, "received_bytes": 0,
        "state": {"level": "idle", "words": "standby"}
    });
    let paths = [
        path("wlan0", 57.2, serde_json::json!({})),
        path("usb0", 0.0, silent),
        path("wwan0", 0.0, standby),
    ];
    let delays = serde_json::json!({"p50": 0.6, "p99": 4.0, "max": 9.0});
    serde_json::from_value(serde_json::json!({
        "schema": "sumrate.status.v1", "version": "0.1.0", "role": "client", "pid": 4242,
        "uptime_s": second as f64, "proxies": {"socks": "127.0.0.1:1080", "http": null},
        "headline": {
            "level": "degraded",
            "sentence": "57 Mbit/s down over wlan0, usb0: no answer, probing"
        },
        "rates": {"down_mbps": 57.2, "up_mbps": 0.62},
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

/// A download over two links, of which one has fallen silent 60 s ago.
fn history() -> HistoryReport {
    let rates = |of: fn(u32) -> f64| (0..300).map(of).collect::<Vec<f64>>();
    let wlan0 = rates(|second| if second < 30 { 0.0 } else { 57.0 });
    let usb0 = rates(|second| if (60..240).contains(&second) { 28.0 } else { 0.0 });
    let wwan0 = rates(|_| 0.0);
    let total: Vec<f64> = wlan0.iter().zip(&usb0).map(|(a, b)| a + b).collect();
    let path = |name: &str, down: &Vec<f64>| {
        let up: Vec<f64> = down.iter().map(|down| down / 100.0).collect();
        let rtt = vec![14.0; 300];
        serde_json::json!({"name": name, "down_mbps": down, "up_mbps": up, "rtt_ms": rtt})
    };
    let up: Vec<f64> = total.iter().map(|down| down / 100.0).collect();
    serde_json::from_value(serde_json::json!({
        "schema": "sumrate.history.v1", "uptime_s": 360.0, "step_s": 1.0,
        "total": {"down_mbps": total, "up_mbps": up},
        "paths": [path("usb0", &usb0), path("wlan0", &wlan0), path("wwan0", &wwan0)],
        "events": [
            {"ago_s": 270.0, "event": "path-up", "level": "good", "path": "wlan0",
             "words": "wlan0 is connected"},
            {"ago_s": 60.0, "event": "path-silent", "level": "notice", "path": "usb0",
             "words": "usb0 does not answer; probing it"}
        ]
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
    (1..=60).for_each(|second| state.update(report(second), Some(history())));
    state
}

#[test]
fn a_headline_both_directions_links_and_events() {
    insta::assert_snapshot!(shown(&state(), 120, 30));
}

#[test]
fn sixty_columns_and_twenty_rows_show_what_matters() {
    insta::assert_snapshot!(shown(&state(), 60, 20));
}

#[test]
fn the_internals_are_behind_a_key() {
    let mut state = state();
    assert!(state.press(Key::Internals));
    insta::assert_snapshot!(shown(&state, 100, 30));
    assert!(state.press(Key::Internals));
    assert!(shown(&state, 100, 30).contains(" events "), "the same key leads back");
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
fn paths_of_several_sessions_are_told_apart() {
    let mut state = TopState::default();
    let mut report = report(3);
    let mut other = report.sessions[0].clone();
    other.id = "fedcba9876543210fedcba9876543210".to_owned();
    other.credential = Some("laptop".to_owned());
    report.sessions.push(other);
    state.update(report, Some(history()));
    let shown = shown(&state, 120, 30);
    for expected in ["link  session         down", "wlan0 01234567 ", "wlan0 fedcba98 laptop"] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
}

#[test]
fn the_selected_path_of_many_is_in_view() {
    let (mut state, mut report) = (TopState::default(), report(3));
    let one = report.sessions[0].paths[0].clone();
    let named = |number: usize| PathReport { name: format!("path{number}"), ..one.clone() };
    report.sessions[0].paths = (0..64).map(named).collect();
    state.update(report, Some(history()));
    assert!(!shown(&state, 100, 30).contains("path63"));
    for _ in 0..64 {
        state.press(Key::Down);
    }
    assert!(shown(&state, 100, 30).contains("path63"));
}

#[test]
fn an_upload_is_shown_first() {
    let mut history = history();
    let total = &mut history.total;
    std::mem::swap(&mut total.down_mbps, &mut total.up_mbps);
    let mut state = TopState::default();
    state.update(report(1), Some(history));
    let shown = shown(&state, 80, 24);
    assert!(shown.contains("┌ up, Mbit/s, last 5 minutes: 57.0 now, peak 85.0 "), "{shown}");
}

#[test]
fn a_process_of_an_earlier_version_is_shown_without_its_history() {
    let mut old = report(1);
    old.headline = None;
    old.sessions[0].paths.iter_mut().for_each(|path| path.state = None);
    let mut state = TopState::default();
    state.update(old, None);
    let shown = shown(&state, 80, 24);
    for expected in ["of an earlier version", "keeps no history", "active", "suspect"] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
}

#[test]
fn a_pause_keeps_the_picture_and_an_error_is_shown() {
    let mut state = state();
    let before = shown(&state, 120, 30);
    state.press(Key::Pause);
    state.update(report(99), None);
    assert_eq!(shown(&state, 120, 30).replace("   PAUSED", "         "), before);
    state.error = Some("nothing answers".to_owned());
    assert!(shown(&state, 120, 30).contains("✗ nothing answers"));
}

#[test]
fn any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (10, 3), (300, 100), (40, 8)] {
        shown(&state(), width, height);
        shown(&TopState::default(), width, height);
    }
}

#[test]
fn what_went_wrong_with_a_path_is_shown_beside_its_state() {
    let mut dead = report(61);
    let path = &mut dead.sessions[0].paths[0];
    path.last_error = Some(crate::status::PathErrorReport {
        reason: "Connection refused".to_owned(),
        ago_s: 1.0,
        ..Default::default()
    });
    let mut state = state();
    state.update(dead, Some(history()));
    let text = shown(&state, 140, 30);
    assert!(text.contains("receiving 57 Mbit/s: Connection refused"), "{text}");
}

/// Words of the first line that begins with this one, without borders.
fn line_with(picture: &str, word: &str) -> String {
    let is_frame = |c: char| "\"│".contains(c);
    let lines = picture.lines().map(|line| line.trim_matches(is_frame));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = lines.map(words).filter(|line| line.starts_with(word));
    found.next().unwrap_or_else(|| panic!("no line has {word}:\n{picture}"))
}

#[test]
fn a_terminal_without_room_leaves_the_least_important_columns_out() {
    for (width, heads, path) in [
        (
            100,
            "link down up RTT data use state",
            "A wlan0 57 0.3 14 ms 1.2 GB primary receiving 57 Mbit/s",
        ),
        (67, "link down up RTT data state", "A wlan0 57 0.3 14 ms 1.2 GB receiving 57 Mbit/s"),
        (60, "link down up RTT state", "A wlan0 57 0.3 14 ms receiving 57 Mbit/s"),
        (50, "link down up state", "A wlan0 57 0.3 receiving 57 Mbit/s"),
        (30, "link down up", "A wlan0 57 0.3"),
        (20, "link down", "A wlan0 57"),
    ] {
        let picture = shown(&state(), width, 24);
        assert_eq!(line_with(&picture, "link"), heads, "{width}:\n{picture}");
        assert_eq!(line_with(&picture, "A "), path, "{width}:\n{picture}");
    }
}

#[test]
fn nothing_that_is_shown_is_cut() {
    let mut longest = report(1);
    for path in &mut longest.sessions[0].paths {
        path.name = format!("enp0s31f6u1-{}", path.name);
        path.rtt_ms = 12345.6;
    }
    let mut state = TopState::default();
    state.update(longest, Some(history()));
    for (width, cells) in [
        (60, "B enp0s31f6u1-usb0 0.0 0.3 no answer, probing"),
        (80, "B enp0s31f6u1-usb0 0.0 0.3 12346 ms 1.2 GB no answer, probing"),
        (120, "B enp0s31f6u1-usb0 0.0 0.3 12346 ms 1.2 GB primary no answer, probing"),
    ] {
        let picture = shown(&state, width, 24);
        assert_eq!(line_with(&picture, "B "), cells, "{width}:\n{picture}");
        assert!(picture.contains("p pause"), "{width}:\n{picture}");
    }
}

#[tokio::test]
async fn hostile_words_leave_the_terminal_alone() {
    use fbdt_proto::plain_text::is_hidden;
    use tokio::io::AsyncWriteExt;
    fn tainted(value: serde_json::Value) -> serde_json::Value {
        use serde_json::Value;
        let hostile = "\u{1b}[2J\u{9b}31m\u{202e}\u{200f}\u{200b}\u{2066}\u{e0041}";
        match value {
            // A level is one of a few words, or the answer is none.
            Value::String(text) if ["good", "degraded", "idle", "notice"].contains(&&*text) => {
                text.into()
            }
            Value::String(text) => format!("{hostile}{text}").into(),
            Value::Array(items) => items.into_iter().map(tainted).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, field)| (name, tainted(field))).collect()
            }
            other => other,
        }
    }
    async fn answer(path: &std::path::Path, said: String) {
        let listener = tokio::net::UnixListener::bind(path).unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let status = directory.path().join("up.sock");
    let past = crate::history::history_path(&status);
    let said = |value: serde_json::Value| tainted(value).to_string();
    let (asked, ()) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            crate::status::ask(&status).await
        },
        answer(&status, said(serde_json::to_value(report(1)).unwrap()))
    );
    let (past, ()) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            crate::history::ask_history(&status).await
        },
        answer(&past, said(serde_json::to_value(history()).unwrap()))
    );
    let mut state = TopState::default();
    state.update(asked.unwrap(), Some(past.unwrap()));
    for key in [None, Some(Key::Explain), Some(Key::Internals)] {
        assert!(key.is_none_or(|key| state.press(key)));
        let screen = shown(&state, 200, 40);
        assert!(screen.contains("client") && screen.contains("wlan0"), "{screen}");
        assert!(!screen.contains(|c| c != '\n' && is_hidden(c)), "{screen:?}");
    }
}
