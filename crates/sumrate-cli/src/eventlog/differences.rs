//! What happened between two reports.

use std::collections::BTreeMap;

use super::event::{EventLine, LogEvent};
use crate::status::{PathReport, SessionReport, StatusReport};

/// Finds events in successive reports of one process.
#[derive(Debug, Default)]
pub struct Differences {
    before: Option<StatusReport>,
}

impl Differences {
    /// The events since the report before.
    pub fn take(&mut self, report: StatusReport) -> Vec<EventLine> {
        let mut events = Vec::new();
        let empty = Vec::new();
        let before = self.before.as_ref();
        let sessions = before.map_or(&empty, |before| &before.sessions);
        let elapsed = report.uptime_s - before.map_or(0.0, |before| before.uptime_s);
        of_server(&mut events, before, &report);
        for session in sessions.iter().filter(|old| !report.sessions.iter().any(|s| s.id == old.id))
        {
            events.push(LogEvent::SessionClosed { session: session.id.clone() });
        }
        for session in &report.sessions {
            let known = sessions.iter().find(|old| old.id == session.id);
            of_session(&mut events, known, session, elapsed);
        }
        let time_s = report.uptime_s;
        self.before = Some(report);
        events.into_iter().map(|event| EventLine { time_s, event }).collect()
    }
}

fn of_server(events: &mut Vec<LogEvent>, before: Option<&StatusReport>, report: &StatusReport) {
    let was_lost = before.is_some_and(|before| before.outage.is_some());
    match &report.outage {
        Some(outage) if !was_lost => {
            events.push(LogEvent::ServerLost { error: outage.last_error.clone() });
        }
        None if was_lost => events.push(LogEvent::ServerFound {}),
        _ => {}
    }
}

fn of_session(
    events: &mut Vec<LogEvent>,
    before: Option<&SessionReport>,
    session: &SessionReport,
    elapsed: f64,
) {
    let id = &session.id;
    if before.is_none() {
        let (session, scheduler) = (id.clone(), session.scheduler.clone());
        events.push(LogEvent::SessionOpened { session, scheduler });
    }
    for path in &session.paths {
        let known = before.and_then(|old| old.paths.iter().find(|p| p.name == path.name));
        of_path(events, id, known, path, elapsed);
    }
    let empty = Vec::new();
    let streams = before.map_or(&empty, |before| &before.streams);
    let old: BTreeMap<u32, _> = streams.iter().map(|stream| (stream.id, stream)).collect();
    let new: BTreeMap<u32, _> = session.streams.iter().map(|stream| (stream.id, stream)).collect();
    for stream in new.values().filter(|stream| !old.contains_key(&stream.id)) {
        let (session, class) = (id.clone(), stream.class.clone());
        events.push(LogEvent::StreamOpened { session, stream: stream.id, class });
    }
    for stream in old.keys().filter(|stream| !new.contains_key(stream)) {
        events.push(LogEvent::StreamClosed { session: id.clone(), stream: *stream });
    }
}

fn of_path(
    events: &mut Vec<LogEvent>,
    session: &str,
    before: Option<&PathReport>,
    path: &PathReport,
    elapsed: f64,
) {
    let name = || (session.to_owned(), path.name.clone());
    if before.is_none_or(|before| before.health != path.health) {
        let ((session, path), health) = (name(), path.health.clone());
        let before = before.map(|before| before.health.clone());
        events.push(LogEvent::PathHealth { session, path, health, before });
    }
    if before.is_none_or(|before| before.direction != path.direction) {
        let ((session, path), direction) = (name(), path.direction.clone());
        events.push(LogEvent::PathDirection { session, path, direction });
    }
    let policy = |path: &PathReport| {
        let words = (path.priority.clone(), path.never.clone());
        (words, path.weight, path.rate_cap_mbps, path.metered)
    };
    if before.is_none_or(|before| policy(before) != policy(path)) {
        let ((priority, never), weight, rate_cap_mbps, metered) = policy(path);
        let (session, path) = name();
        events.push(LogEvent::PathPolicy {
            session,
            path,
            priority,
            weight,
            rate_cap_mbps,
            metered,
            never,
        });
    }
    // A path that is new has moved everything since the report before.
    let then = |counter: fn(&PathReport) -> u64| before.map_or(0, counter);
    let sent = |path: &PathReport| path.sent_bytes + path.redundant_bytes;
    let moved = sent(path) != then(sent) || path.received_bytes != then(|path| path.received_bytes);
    // The line behind the last one that moved says that it is still.
    if elapsed <= 0.0 || (!moved && path.commit_bytes == then(|path| path.commit_bytes)) {
        return;
    }
    let mbps = |counter: fn(&PathReport) -> u64| {
        counter(path).saturating_sub(then(counter)) as f64 * 8e-6 / elapsed
    };
    let (session, name) = name();
    events.push(LogEvent::PathMetrics {
        session,
        path: name,
        sent_mbps: mbps(sent),
        received_mbps: mbps(|path| path.received_bytes),
        redundant_mbps: mbps(|path| path.redundant_bytes),
        rate_mbps: path.rate_mbps.unwrap_or(0.0),
        rtt_ms: path.rtt_ms,
        commit_bytes: path.commit_bytes,
        commit_limit_bytes: path.commit_limit_bytes,
        why: path.why.clone(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(uptime_s: f64, change: impl FnOnce(&mut serde_json::Value)) -> StatusReport {
        let mut path = serde_json::json!({
            "name": "wifi", "local": null, "remote": null, "health": "active",
            "direction": "just-in-time", "why_idle": "", "why": "commit-limit", "rate_mbps": 100.0,
            "rtt_ms": 10.0, "min_rtt_ms": 9.0, "commit_bytes": 0, "commit_limit_bytes": 250_000,
            "sent_bytes": 0, "redundant_bytes": 0,
            "redundant": {"lost": 0, "suspect": 0, "overdue": 0, "idle": 0, "scheduled": 0},
            "received_bytes": 0, "duplicate_bytes": 0, "retransmitted_share": 0.0, "subflows": 1,
            "suspected": 0
        });
        change(&mut path);
        serde_json::from_value(serde_json::json!({
            "schema": "sumrate.status.v1", "version": "0", "role": "client", "pid": 1,
            "uptime_s": uptime_s, "proxies": {"socks": null, "http": null}, "outage": null,
            "sessions": [{
                "id": "01", "scheduler": "just-in-time",
                "sent_bytes": 0, "redundant_bytes": 0, "received_bytes": 0, "duplicate_bytes": 0,
                "receive_memory_bytes": 0, "receive_buffer_peak_bytes": 0, "streams_opened": [0, 0],
                "paths": [path], "streams": []
            }]
        }))
        .unwrap()
    }

    fn names(lines: &[EventLine]) -> Vec<String> {
        let name = |line: &EventLine| {
            serde_json::to_value(line).unwrap()["name"].as_str().unwrap().to_owned()
        };
        lines.iter().map(name).collect()
    }

    #[test]
    fn events_are_what_changed_and_nothing_else() {
        let mut log = Differences::default();
        let first = log.take(report(1.0, |_| {}));
        let new = ["session:opened", "path:health", "path:direction", "path:policy"];
        assert_eq!(names(&first), new);
        assert!(log.take(report(2.0, |_| {})).is_empty(), "an idle process writes nothing");
        let moved = log.take(report(2.5, |path| path["sent_bytes"] = 1_250_000.into()));
        assert_eq!(names(&moved), ["path:metrics"]);
        let LogEvent::PathMetrics { sent_mbps, .. } = moved[0].event else { unreachable!() };
        assert!((sent_mbps - 20.0).abs() < 1e-9 && (moved[0].time_s - 2.5).abs() < 1e-9);
        let worse = log.take(report(3.0, |path| {
            path["sent_bytes"] = 1_250_000.into();
            path["health"] = "suspect".into();
            path["direction"] = "backward".into();
            path["weight"] = 3.into();
        }));
        assert_eq!(names(&worse), ["path:health", "path:direction", "path:policy"]);
        let mut last = report(4.0, |_| {});
        last.sessions.clear();
        assert_eq!(names(&log.take(last)), ["session:closed"]);
    }

    #[test]
    fn what_moved_before_a_path_was_first_seen_counts() {
        let mut log = Differences::default();
        let mut none = report(1.0, |_| {});
        none.sessions.clear();
        assert!(log.take(none).is_empty());
        let seen = log.take(report(1.5, |path| path["received_bytes"] = 50_000_000.into()));
        let new =
            ["session:opened", "path:health", "path:direction", "path:policy", "path:metrics"];
        assert_eq!(names(&seen), new);
        let LogEvent::PathMetrics { received_mbps, .. } = seen[4].event else { unreachable!() };
        assert!((received_mbps - 800.0).abs() < 1e-9);
    }
}
