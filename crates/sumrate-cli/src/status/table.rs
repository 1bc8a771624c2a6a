//! The status for people.

use std::io::{self, Write};

use crate::output::counted;

use super::{
    CaptureReport, ClassReport, OutageReport, PathErrorReport, PathReport, SessionReport,
    StatusReport, StreamReport, UdpReport,
};

/// Writes the report as text.
///
/// # Errors
/// What the writer says.
pub fn write_table(out: &mut impl Write, report: &StatusReport) -> io::Result<()> {
    writeln!(
        out,
        "{} {}, process {}, up for {:.0} s",
        report.role, report.version, report.pid, report.uptime_s
    )?;
    if let Some(stopping) = &report.stopping {
        writeln!(out, "{}", stopping.words())?;
    }
    if let Some(socks) = &report.proxies.socks {
        writeln!(out, "SOCKS5 proxy on {socks}")?;
    }
    if let Some(http) = &report.proxies.http {
        writeln!(out, "HTTP CONNECT proxy on {http}")?;
    }
    if let Some(capture) = &report.capture {
        writeln!(out, "{}", taken(capture))?;
    }
    if let Some(udp) = &report.udp {
        writeln!(out, "UDP: {}", datagrams(udp))?;
    }
    if !report.unrouted_interfaces.is_empty() {
        let names = report.unrouted_interfaces.join(", ");
        writeln!(out, "no paths, as no route to the server leads through them: {names}")?;
    }
    match &report.outage {
        Some(outage) => write_outage(out, outage)?,
        None if report.sessions.is_empty() => writeln!(out, "no session")?,
        None => {}
    }
    if !report.idle_paths.is_empty() {
        write_paths(out, &report.idle_paths)?;
    }
    for session in &report.sessions {
        write_session(out, session)?;
    }
    Ok(())
}

fn taken(capture: &CaptureReport) -> String {
    let connections = counted(capture.connections, "connection", "connections");
    let mut line = format!("{}: {connections} taken", capture.method);
    let only = [
        ("of the users", &capture.only_user),
        ("in the cgroups", &capture.only_cgroup),
        ("to", &capture.only_to),
        ("not to", &capture.direct),
    ];
    for (what, names) in only.into_iter().filter(|(_, names)| !names.is_empty()) {
        line += &format!(", {what} {}", names.join(" "));
    }
    if capture.gateway {
        line += ", also of machines behind this one";
    }
    if let Some(dns) = &capture.dns {
        line += &format!("; questions to name servers go to {dns}");
    }
    line
}

fn datagrams(udp: &UdpReport) -> String {
    format!(
        "{} open, {} so far; sent {} ({}), received {} ({})",
        counted(udp.flows, "flow", "flows"),
        udp.opened,
        counted(udp.sent_datagrams, "datagram", "datagrams"),
        bytes(udp.sent_bytes),
        udp.received_datagrams,
        bytes(udp.received_bytes)
    )
}

fn write_outage(out: &mut impl Write, outage: &OutageReport) -> io::Result<()> {
    if outage.quotas_spent {
        return writeln!(out, "{}", outage.words());
    }
    let next = match outage.next_attempt_s {
        Some(seconds) => format!("next attempt in {seconds:.1} s"),
        None => "trying now".to_owned(),
    };
    writeln!(out, "{}; {next}", outage.words())
}

fn write_session(out: &mut impl Write, session: &SessionReport) -> io::Result<()> {
    writeln!(
        out,
        "\nsession {}{}, {}: sent {}, redundant {}, received {}, {}",
        session.id.get(..8).unwrap_or(&session.id),
        session.credential.as_ref().map_or_else(String::new, |name| format!(" of {name}")),
        session.scheduler,
        bytes(session.sent_bytes),
        bytes(session.redundant_bytes),
        bytes(session.received_bytes),
        counted(session.streams.len() as u64, "open stream", "open streams")
    )?;
    write_paths(out, &session.paths)?;
    if !session.classes.is_empty() {
        let head = ["class", "streams", "sent", "redundant", "of that by choice", "received"];
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
        let is_told = session.streams.iter().any(|stream| stream.far_class.is_some());
        let mut head = vec!["stream", "class"];
        head.extend(is_told.then_some("of what comes"));
        head.extend(["written", "received", "in-order delay p50/p99/max", "longest stall"]);
        let rows: Vec<_> =
            session.streams.iter().map(|stream| stream_row(stream, is_told)).collect();
        write_columns(out, &head, &rows)?;
    }
    Ok(())
}

fn write_paths(out: &mut impl Write, paths: &[PathReport]) -> io::Result<()> {
    let is_told = paths.iter().any(|path| path.far.is_some());
    let mut head = vec!["path", "health", "priority", "direction", "can send"];
    head.extend(is_told.then_some("can receive"));
    head.extend(["rtt", "commit"]);
    let rows: Vec<_> = paths.iter().map(|path| path_row(path, is_told)).collect();
    write_columns(out, &head, &rows)?;
    for path in paths {
        if let (Some(local), Some(remote)) = (&path.local, &path.remote) {
            writeln!(out, "  {}: {local} -> {remote}", path.name)?;
        }
        let mut said = vec![format!(
            "sent {} (redundant {}), received {}",
            bytes(path.sent_bytes),
            bytes(path.redundant_bytes),
            bytes(path.received_bytes)
        )];
        if !path.why_idle.is_empty() {
            said.push(path.why_idle.clone());
        }
        let far = path.far.as_ref().filter(|far| far.why != path.why);
        said.extend(far.map(|far| format!("the other end: {}", far.words())));
        said.extend(path.last_error.as_ref().map(PathErrorReport::words));
        said.extend(uses(path));
        if !path.shares_with.is_empty() {
            said.push(format!("shares a bottleneck with {}", path.shares_with.join(", ")));
        }
        writeln!(out, "  {}: {}", path.name, said.join("; "))?;
    }
    Ok(())
}

/// How the path is to be used, where that is not as usual.
fn uses(path: &PathReport) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(path.rate_cap_mbps.map(|cap| format!("at most {cap} Mbit/s each way")));
    said.extend(path.weight.map(|weight| format!("weight {weight}")));
    if !path.never.is_empty() {
        said.push(format!("never {}", path.never.join(", ")));
    }
    if let Some(quota) = path.quota.as_ref().filter(|_| path.why != "quota") {
        let limit = quota.limit_bytes.map_or_else(String::new, |l| format!(" of {}", bytes(l)));
        said.push(format!("{}{limit} used in {}", bytes(quota.used_bytes), quota.month));
    }
    if path.metered {
        said.push("metered".to_owned());
    }
    said
}

/// `is_told` says whether there is a column for what the other end says.
fn path_row(path: &PathReport, is_told: bool) -> Vec<String> {
    let is_up = path.rtt_ms > 0.0;
    let none = || "-".to_owned();
    let rate = |rate: Option<f64>| rate.map_or_else(none, |rate| format!("{rate:.1} Mbit/s"));
    let mut row = vec![
        path.name.clone(),
        path.health.clone(),
        path.priority.clone(),
        path.direction.clone(),
        rate(path.rate_mbps),
    ];
    row.extend(is_told.then(|| rate(path.far.as_ref().and_then(|far| far.rate_mbps))));
    row.push(if is_up { format!("{:.1} ms", path.rtt_ms) } else { none() });
    row.push(bytes(path.commit_bytes));
    row
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

/// `is_told` says whether there is a column for what the other end says.
fn stream_row(stream: &StreamReport, is_told: bool) -> Vec<String> {
    let delay = stream.in_order_delay_ms;
    let mut row = vec![stream.id.to_string(), stream.class_words()];
    row.extend(is_told.then(|| stream.far_class.clone().unwrap_or_else(|| "-".to_owned())));
    row.extend([
        bytes(stream.written_bytes),
        bytes(stream.received_bytes),
        format!("{:.1} / {:.1} / {:.1} ms", delay.p50, delay.p99, delay.max),
        format!("{:.0} ms", stream.longest_stall_ms),
    ]);
    row
}

pub(crate) fn write_columns(
    out: &mut impl Write,
    head: &[&str],
    rows: &[Vec<String>],
) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|cell| cell.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    writeln!(out, "{}", line(&head))?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
}

/// What tells a session from others: its number, and the credential's name where that is known.
pub(crate) fn label(session: &str, credential: Option<&str>) -> String {
    let id = session.get(..8).unwrap_or(session);
    credential.map_or_else(|| id.to_owned(), |name| format!("{id} {name}"))
}

/// A time in the unit that suits it.
pub(crate) fn lasting(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

/// Bytes with a decimal unit.
pub(crate) fn bytes(count: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let count = count as f64;
    match units.iter().find(|(size, _)| count >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", count / size),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::QuotaReport;
    use fbdt_proto::Priority;

    #[test]
    fn what_is_taken_is_said() {
        let all = CaptureReport { method: "tun".to_owned(), connections: 3, ..Default::default() };
        assert_eq!(taken(&all), "tun: 3 connections taken");
        let some = CaptureReport {
            gateway: true,
            dns: Some("9.9.9.9:53".to_owned()),
            only_user: vec!["me".to_owned(), "1001".to_owned()],
            direct: vec!["10.0.0.0/8".to_owned()],
            ..all
        };
        let wanted = "tun: 3 connections taken, of the users me 1001, not to 10.0.0.0/8, also of \
                      machines behind this one; questions to name servers go to 9.9.9.9:53";
        assert_eq!(taken(&some), wanted);
    }

    #[test]
    fn paths_without_a_session_are_listed_with_the_day_on_which_they_are_used_again() {
        let mut lte = PathReport::idle("lte", Priority::PRIMARY);
        let (limit_bytes, month) = (Some(1_000_000_000), "2026-12".to_owned());
        lte.idle_for_quota(&QuotaReport { limit_bytes, used_bytes: 1_200_000_000, month });
        let last_error = "every path has used up its quota (lte)".to_owned();
        let outage =
            OutageReport { since_s: 3.0, last_error, next_attempt_s: None, quotas_spent: true };
        let report =
            StatusReport { outage: Some(outage), idle_paths: vec![lte], ..StatusReport::default() };
        let mut out = Vec::new();
        write_table(&mut out, &report).unwrap();
        let said = String::from_utf8(out).unwrap();
        for wanted in [
            "\nevery path has used up its quota (lte)\n",
            "\nlte   dead    primary",
            "; quota reached until 2027-01-01 (UTC): 1.2 GB of 1.0 GB\n",
        ] {
            assert!(said.contains(wanted), "{wanted} in {said}");
        }
        assert!(!said.contains("not reached") && !said.contains("trying"), "{said}");
    }

    #[test]
    fn what_the_other_end_says_has_a_column_where_it_says_something() {
        let path = |name: &str, far| PathReport {
            name: name.to_owned(),
            why: "nothing-to-send".to_owned(),
            why_idle: "nothing to send".to_owned(),
            far,
            ..PathReport::default()
        };
        let far = |why: &str| crate::status::FarPathReport {
            why: why.to_owned(),
            rate_mbps: Some(80.25),
            ..Default::default()
        };
        let written = |paths: &[PathReport]| {
            let mut out = Vec::new();
            write_paths(&mut out, paths).unwrap();
            String::from_utf8(out).unwrap()
        };
        let said = written(&[path("wifi", Some(far("rate-cap"))), path("lte", None)]);
        for wanted in [
            "can send  can receive  rtt",
            "-         80.2 Mbit/s  -",
            "nothing to send; the other end: has sent as fast as its rate cap allows\n",
        ] {
            assert!(said.contains(wanted), "{wanted} in {said}");
        }
        let idle = written(&[path("wifi", Some(far("nothing-to-send")))]);
        assert!(idle.ends_with("nothing to send\n"), "the same is said once: {idle}");
        assert!(!written(&[path("wifi", None)]).contains("receive "), "nobody said anything");
    }

    #[test]
    fn how_a_path_is_to_be_used_is_said_where_it_is_not_as_usual() {
        assert!(uses(&PathReport::default()).is_empty());
        let quota = QuotaReport {
            limit_bytes: Some(10_000_000_000),
            used_bytes: 1_100_000_000,
            month: "2026-11".to_owned(),
        };
        let path = PathReport {
            rate_cap_mbps: Some(20.0),
            weight: Some(3),
            never: vec!["background".to_owned()],
            metered: true,
            quota: Some(quota),
            ..PathReport::default()
        };
        let wanted = "at most 20 Mbit/s each way; weight 3; never background; 1.1 GB of 10.0 GB used in \
                      2026-11; metered";
        assert_eq!(uses(&path).join("; "), wanted);
        let metered = PathReport { metered: true, ..PathReport::default() };
        assert_eq!(uses(&metered), ["metered"]);
    }

    #[test]
    fn datagrams_are_said_beside_streams() {
        let udp = UdpReport {
            flows: 1,
            opened: 4,
            sent_datagrams: 1,
            sent_bytes: 1_400,
            received_datagrams: 20,
            received_bytes: 24_000,
        };
        let mut out = Vec::new();
        let report = StatusReport { udp: Some(udp), ..StatusReport::default() };
        write_table(&mut out, &report).unwrap();
        let wanted =
            "UDP: 1 flow open, 4 so far; sent 1 datagram (1.4 kB), received 20 (24.0 kB)\n";
        let said = String::from_utf8(out).unwrap();
        assert!(said.contains(wanted), "{said}");
    }

    #[test]
    fn units_and_columns() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1_500), "1.5 kB");
        assert_eq!(bytes(2_400_000_000), "2.4 GB");
        assert_eq!([3.4, 119.0, 600.0, 10_000.0].map(lasting), ["3 s", "119 s", "10 min", "3 h"]);
        let mut out = Vec::new();
        let rows =
            [vec!["wifi".to_owned(), "active".to_owned()], vec!["é".to_owned(), "x".to_owned()]];
        write_columns(&mut out, &["path", "health"], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "path  health\nwifi  active\né     x\n");
    }
}
