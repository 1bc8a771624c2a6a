//! Each reason has its words, and they name the others and the numbers.

use std::collections::BTreeMap;

use crate::explain::explain;
use crate::status::{
    FarPathReport, OutageReport, PathErrorReport, PathReport, QuotaReport, StatusReport,
    StoppingReport,
};
use fbdt_proto::Priority;

/// A client with two paths that sent for a second, as JSON says.
fn report(uptime_s: f64, paths: serde_json::Value) -> StatusReport {
    let session = serde_json::json!({
        "id": "0123456789abcdef0123456789abcdef", "scheduler": "just-in-time",
        "sent_bytes": 0, "redundant_bytes": 0, "received_bytes": 0, "duplicate_bytes": 0,
        "receive_memory_bytes": 0, "receive_buffer_peak_bytes": 0, "streams_opened": [1, 0],
        "paths": paths, "streams": []
    });
    let report = serde_json::json!({
        "schema": "sumrate.status.v1", "version": "0", "role": "client", "pid": 1,
        "uptime_s": uptime_s, "proxies": {"socks": null, "http": null}, "outage": null,
        "sessions": [session]
    });
    serde_json::from_value(report).unwrap()
}

fn path(name: &str, sent: u64) -> serde_json::Value {
    serde_json::json!({
        "name": name, "local": null, "remote": null, "health": "active", "direction": "just-in-time",
        "why_idle": "link is full", "why": "commit-limit", "rate_mbps": 100.0,
        "rtt_ms": 10.0, "min_rtt_ms": 9.0, "commit_bytes": 200_000, "commit_limit_bytes": 250_000,
        "sent_bytes": sent, "redundant_bytes": 0,
        "redundant": {"lost": 0, "suspect": 0, "overdue": 0, "idle": 0, "scheduled": 0},
        "received_bytes": 0, "duplicate_bytes": 0, "retransmitted_share": 0.0, "subflows": 1,
        "suspected": 0
    })
}

/// The words for the second of two paths, after a second in which both sent.
fn words(change: impl FnOnce(&mut PathReport)) -> String {
    let before = report(10.0, serde_json::json!([path("wifi", 0), path("lte", 0)]));
    let mut after =
        report(11.0, serde_json::json!([path("wifi", 7_500_000), path("lte", 2_500_000)]));
    change(&mut after.sessions[0].paths[1]);
    let explained = explain(&before, &after);
    assert_eq!(explained.paths[0].name, "wifi");
    explained.paths[1].sentences.join(" ")
}

fn waited(why: &str, seconds: f64) -> BTreeMap<String, f64> {
    [(why.to_owned(), seconds)].into()
}

#[test]
fn shares_and_a_full_link() {
    let words = words(|path| path.waited_s = waited("commit-limit", 1.0));
    let expected =
        "lte sends 20.0 of 80.0 Mbit/s (25 %). Link full: 200.0 kB of 250.0 kB in flight.";
    assert!(words.starts_with(expected), "{words}");
}

#[test]
fn who_stands_by_names_whom_for() {
    let words = words(|path| {
        path.sent_bytes = 0;
        path.priority = "backup".to_owned();
        path.why = "standby".to_owned();
    });
    assert!(words.starts_with("lte is idle. On standby (backup) while wifi (primary) is active"));
}

#[test]
fn policies_are_named_with_their_numbers() {
    let capped = words(|path| {
        path.rate_cap_mbps = Some(20.0);
        path.waited_s = [("rate-cap".to_owned(), 0.9), ("commit-limit".to_owned(), 0.1)].into();
    });
    assert!(
        capped.contains("Its limit of 20.0 Mbit/s (`--rate`) is reached 90 % of the time"),
        "{capped}"
    );
    let weighted = words(|path| {
        path.weight = Some(1);
        path.waited_s = waited("weight", 0.5);
    });
    assert!(weighted.contains("its share by weight is reached"), "{weighted}");
    let spent = words(|path| {
        path.sent_bytes = 0;
        path.metered = true;
        let (limit_bytes, month) = (Some(10_000_000_000), "2026-11".to_owned());
        let quota = QuotaReport { limit_bytes, used_bytes: 10_000_000_001, month };
        path.idle_for_quota(&quota);
        path.quota = Some(quota);
    });
    assert!(spent.contains("its quota for 2026-11 is used up (10.0 GB of 10.0 GB)"), "{spent}");
    assert!(spent.contains("sumrate path set lte --quota") && spent.contains("Metered"), "{spent}");
}

#[test]
fn other_reasons_have_words_too() {
    for (why, expected) in [
        ("too-late", "Too slow for the present data (300 ms RTT; wifi has 10 ms)"),
        ("nothing-to-send", "Idle: no upload is waiting."),
        ("flow-control", "at the other end reads too slowly"),
        ("windows-full", "All pending data is in flight"),
        ("left-to-another", "The scheduler just-in-time gives"),
        ("suspect", "does not answer"),
        ("no-subflow", "Not connected"),
        ("unmeasured", "just connected"),
    ] {
        let words = words(|path| {
            path.rtt_ms = 300.0;
            path.why = why.to_owned();
        });
        assert!(words.contains(expected), "{why}: {words}");
    }
    let kept_off = words(|path| {
        path.never = vec!["streaming".to_owned(), "background".to_owned()];
        path.why = "kept-off".to_owned();
    });
    let expected = "All pending data is streaming or background, which this path never carries. It \
                    never carries streaming or background (`sumrate path set lte --never none` changes \
                    that).";
    assert!(kept_off.contains(expected), "{kept_off}");
    let lossy = words(|path| path.retransmitted_share = 0.05);
    assert!(lossy.contains("TCP resent 5.0 % of its bytes"), "{lossy}");
    let a_segment_again = words(|path| {
        path.sent_bytes = 20_000;
        path.retransmitted_share = 0.06;
    });
    assert!(!a_segment_again.contains("Lossy"), "{a_segment_again}");
}

#[test]
fn a_path_that_sends_freely_is_not_called_full() {
    let words = words(|path| {
        path.commit_bytes = 12_000;
        path.commit_limit_bytes = 331_000;
        path.waited_s = waited("sending", 1.0);
    });
    let expected = "Not limited: there is nothing more to send.";
    assert!(words.ends_with(expected) && !words.contains("full"), "{words}");
}

#[test]
fn a_path_that_sends_near_the_rate_of_its_link_is_called_nearly_full() {
    let words = words(|path| {
        path.rate_mbps = Some(21.0);
        path.waited_s = waited("sending", 1.0);
    });
    assert!(words.ends_with("Link nearly full: 20.0 of about 21.0 Mbit/s."), "{words}");
}

/// The words for both paths in a download, all of which comes by the first.
fn words_in_a_download(change: impl FnOnce(&mut PathReport)) -> [String; 2] {
    let before = report(10.0, serde_json::json!([path("wifi", 0), path("lte", 0)]));
    let mut after = report(11.0, serde_json::json!([path("wifi", 10_000), path("lte", 0)]));
    let [wifi, lte] = after.sessions[0].paths.as_mut_slice() else { unreachable!() };
    wifi.received_bytes = 7_500_000;
    for path in [&mut *wifi, &mut *lte] {
        path.waited_s = waited("nothing-to-send", 1.0);
    }
    change(lte);
    let explained = explain(&before, &after).paths;
    [explained[0].sentences.join(" "), explained[1].sentences.join(" ")]
}

#[test]
fn who_downloads_is_sent_to_the_other_end() {
    let [wifi, idle] = words_in_a_download(|_| {});
    assert_eq!(
        idle,
        "lte is idle. Idle: no upload is waiting. The other end decides what it sends over which path: \
         run `sumrate explain` there to see why it sends nothing over lte."
    );
    let pointer = "The other end decides what it sends on this path: run `sumrate explain` there.";
    assert!(wifi.ends_with(pointer), "{wifi}");
    let [_, standby] = words_in_a_download(|path| {
        path.priority = "backup".to_owned();
        path.why = "standby".to_owned();
    });
    assert!(!standby.contains("`sumrate explain`"), "both ends know who stands by: {standby}");
    let uploading = words(|path| path.waited_s = waited("nothing-to-send", 1.0));
    assert!(!uploading.contains("`sumrate explain`"), "{uploading}");
}

#[test]
fn who_downloads_is_told_what_the_other_end_says() {
    let far = |why: &str| FarPathReport {
        why: why.to_owned(),
        waited_s: waited(why, 0.9),
        commit_bytes: 240_000,
        commit_limit_bytes: 250_000,
        retransmitted_share: 0.02,
        ..FarPathReport::default()
    };
    let [_, idle] = words_in_a_download(|path| {
        path.far = Some(far("too-late"));
        path.duplicate_bytes = 300_000;
    });
    assert_eq!(
        idle,
        "lte is idle. The other end reports: too slow for the present data (10 ms RTT; wifi has 10 ms): \
         the other paths deliver all of it earlier. The other end reports: lossy: TCP resent 2.0 % of \
         its bytes."
    );
    for (why, expected) in [
        ("commit-limit", "The other end reports: link full: 240.0 kB of 250.0 kB in flight."),
        ("flow-control", "the receiving program here reads too slowly"),
        ("nothing-to-send", "The other end reports: idle: no download is waiting."),
    ] {
        let [_, words] = words_in_a_download(|path| path.far = Some(far(why)));
        assert!(words.contains(expected), "{why}: {words}");
        assert!(!words.contains("`sumrate explain`"), "nobody is sent there: {words}");
    }
    // A program that has stopped reading: nothing comes, and that is why.
    let stalled = |why: &str| {
        let before = report(10.0, serde_json::json!([path("wifi", 0), path("lte", 0)]));
        let mut after = report(11.0, serde_json::json!([path("wifi", 0), path("lte", 0)]));
        after.sessions[0].paths[1].waited_s = waited("nothing-to-send", 1.0);
        after.sessions[0].paths[1].far = Some(far(why));
        explain(&before, &after).paths[1].sentences.join(" ")
    };
    let unread = stalled("flow-control");
    assert!(
        unread.ends_with("the receiving program here reads too slowly: its buffer is full."),
        "{unread}"
    );
    let idle = stalled("nothing-to-send");
    assert!(!idle.contains("The other end"), "{idle}");
    // What this end sends counts where it sends more, and what holds at both ends is said once.
    let uploading = words(|path| path.far = Some(far("commit-limit")));
    assert!(!uploading.contains("The other end"), "{uploading}");
    let [_, standby] = words_in_a_download(|path| {
        path.why = "standby".to_owned();
        path.far = Some(far("standby"));
    });
    assert!(!standby.contains("The other end") && standby.contains("On standby"), "{standby}");
}

#[test]
fn a_link_that_was_full_and_holds_little_just_now_is_not_said_to_hold_much() {
    let words = words(|path| {
        path.commit_bytes = 86;
        path.waited_s = [("commit-limit".to_owned(), 0.6), ("sending".to_owned(), 0.4)].into();
    });
    let expected = "Link full 60 % of the time (window of 250.0 kB).";
    assert!(words.contains(expected) && !words.contains("86"), "{words}");
}

#[test]
fn what_comes_next_is_said_once_and_by_whom_it_is_known() {
    let of = |reason: &str, interface_gone: bool| {
        words(|path| {
            path.why = "no-subflow".to_owned();
            let reason = reason.to_owned();
            path.last_error =
                Some(PathErrorReport { reason, ago_s: 2.0, interface_gone, ..Default::default() });
        })
    };
    let gone = of("its interface is gone; it reconnects when the interface is back", true);
    assert!(gone.ends_with("is gone; it reconnects when the interface is back."), "{gone}");
    let refused = of("refused", false);
    assert!(refused.contains("refused. It is tried again"), "{refused}");
    assert!(!refused.contains("The client retries"), "the client is this end: {refused}");
}

#[test]
fn a_trickle_is_no_share() {
    let words = words(|path| {
        path.sent_bytes = 600;
        path.received_bytes = 1_500;
    });
    assert!(words.starts_with("lte is idle (12 kbit/s down, 5 kbit/s up)."), "{words}");
}

#[test]
fn a_process_that_stops_says_what_is_left() {
    let before = report(10.0, serde_json::json!([path("wifi", 0)]));
    let mut after = report(11.0, serde_json::json!([path("wifi", 0)]));
    assert!(explain(&before, &after).sentences.is_empty());
    after.stopping = Some(StoppingReport { streams: 3, most_s: 11.6 });
    let wanted = "Stopping: 3 connections left to finish, at most 12 s.";
    assert_eq!(explain(&before, &after).sentences, [wanted]);
}

#[test]
fn a_dead_path_says_what_went_wrong_and_how_long_ago() {
    for (why, expected) in [("no-subflow", "Not connected."), ("suspect", "does not answer")] {
        let words = words(|path| {
            path.why = why.to_owned();
            let reason = "cannot connect to 192.0.2.1:7443: Connection refused".to_owned();
            path.last_error = Some(PathErrorReport { reason, ago_s: 2.6, ..Default::default() });
        });
        let error = "Last error, 3 s ago: cannot connect to 192.0.2.1:7443: Connection refused.";
        assert!(words.contains(expected) && words.contains(error), "{words}");
    }
}

#[test]
fn paths_that_wait_for_a_session_are_explained_too() {
    let before = report(10.0, serde_json::json!([path("wifi", 0)]));
    let mut after = report(11.0, serde_json::json!([]));
    after.sessions.clear();
    let mut lte = PathReport::idle("lte", Priority::PRIMARY);
    let (limit_bytes, month) = (Some(1_000_000_000), "2026-11".to_owned());
    let quota = QuotaReport { limit_bytes, used_bytes: 1_200_000_000, month };
    lte.idle_for_quota(&quota);
    lte.quota = Some(quota);
    let mut wifi = PathReport::idle("wifi", Priority::PRIMARY);
    wifi.last_error =
        Some(PathErrorReport { reason: "refused".to_owned(), ago_s: 1.0, ..Default::default() });
    after.idle_paths = vec![lte, wifi];
    let explained = explain(&before, &after).paths;
    assert_eq!((explained[0].session.as_str(), explained[0].why.as_str()), ("", "quota"));
    let words = explained[0].sentences.join(" ");
    let wanted = "lte is idle. Paused: its quota for 2026-11 is used up (1.2 GB of 1.0 GB). It is used \
                  again from 2026-12-01 (UTC), or when `sumrate path set lte";
    assert!(words.starts_with(wanted), "{words}");
    let words = explained[1].sentences.join(" ");
    assert!(words.contains("Not connected. Last error, 1 s ago: refused."), "{words}");
    after.outage = Some(OutageReport {
        since_s: 3.0,
        last_error: "every path has used up its quota (lte)".to_owned(),
        next_attempt_s: None,
        quotas_spent: true,
    });
    let sentences = explain(&before, &after).sentences;
    assert_eq!(sentences, ["Every path has used up its quota (lte)."]);
}
