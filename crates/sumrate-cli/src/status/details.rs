//! The internals of a status, for `sumrate status --all`.

use std::io::{self, Write};

use super::units::{bytes, write_columns};
use super::{ClassReport, PathReport, SessionReport, StreamReport};

/// Writes what the transport knows of a session.
pub(super) fn write(out: &mut impl Write, session: &SessionReport) -> io::Result<()> {
    writeln!(
        out,
        "session {}: scheduler {}, coupling {}; sent {}, copies {}, received {}, received twice {}",
        session.id.get(..8).unwrap_or(&session.id),
        session.scheduler,
        if session.coupling.is_empty() { "off" } else { &session.coupling },
        bytes(session.sent_bytes),
        bytes(session.redundant_bytes),
        bytes(session.received_bytes),
        bytes(session.duplicate_bytes)
    )?;
    write_paths(out, &session.paths)?;
    if !session.classes.is_empty() {
        let head = ["class", "streams", "sent", "copies", "deliberate copies", "received"];
        let rows: Vec<_> = session.classes.iter().map(class_row).collect();
        write_columns(out, &head, &rows)?;
    }
    let messages = session.messages;
    if messages.sent + messages.received > 0 {
        writeln!(
            out,
            "messages: {} sent, {} dropped, {} received",
            messages.sent, messages.dropped, messages.received
        )?;
    }
    if !session.streams.is_empty() {
        let is_known = session.streams.iter().any(|stream| stream.far_class.is_some());
        let mut head = vec!["stream", "class"];
        head.extend(is_known.then_some("incoming class"));
        head.extend(["written", "received", "in-order delay p50/p99/max", "longest stall"]);
        let rows: Vec<_> =
            session.streams.iter().map(|stream| stream_row(stream, is_known)).collect();
        write_columns(out, &head, &rows)?;
    }
    Ok(())
}

fn write_paths(out: &mut impl Write, paths: &[PathReport]) -> io::Result<()> {
    let head = ["path", "health", "priority", "direction", "in flight", "in flight at most"];
    let head =
        [&head[..], &["sent", "copies", "received", "resent by TCP", "connections"]].concat();
    let row = |path: &PathReport| {
        vec![
            path.name.clone(),
            path.health.clone(),
            path.priority.clone(),
            path.direction.clone(),
            bytes(path.commit_bytes),
            bytes(path.commit_limit_bytes),
            bytes(path.sent_bytes),
            bytes(path.redundant_bytes),
            bytes(path.received_bytes),
            format!("{:.1} %", 100.0 * path.retransmitted_share),
            path.subflows.to_string(),
        ]
    };
    let rows: Vec<_> = paths.iter().map(row).collect();
    write_columns(out, &head, &rows)?;
    for path in paths {
        if let (Some(local), Some(remote)) = (&path.local, &path.remote) {
            writeln!(out, "  {}: {local} -> {remote}", path.name)?;
        }
        let mut said = Vec::new();
        said.extend((!path.why_idle.is_empty()).then(|| format!("this end: {}", path.why_idle)));
        said.extend(path.far.as_ref().map(|far| format!("the other end: {}", far.words())));
        if !said.is_empty() {
            writeln!(out, "  {}: {}", path.name, said.join("; "))?;
        }
    }
    Ok(())
}

fn class_row(class: &ClassReport) -> Vec<String> {
    let share = class.redundant_bytes as f64 * 100.0 / class.sent_bytes.max(1) as f64;
    vec![
        class.class.clone(),
        class.streams.to_string(),
        bytes(class.sent_bytes),
        format!("{} ({share:.1} %)", bytes(class.redundant_bytes)),
        bytes(class.chosen_bytes),
        bytes(class.received_bytes),
    ]
}

/// `is_known` says whether there is a column for the class at the other end.
fn stream_row(stream: &StreamReport, is_known: bool) -> Vec<String> {
    let delay = stream.in_order_delay_ms;
    let mut row = vec![stream.id.to_string(), stream.class_words()];
    row.extend(is_known.then(|| stream.far_class.clone().unwrap_or_else(|| "-".to_owned())));
    row.extend([
        bytes(stream.written_bytes),
        bytes(stream.received_bytes),
        format!("{:.1} / {:.1} / {:.1} ms", delay.p50, delay.p99, delay.max),
        format!("{:.0} ms", stream.longest_stall_ms),
    ]);
    row
}
