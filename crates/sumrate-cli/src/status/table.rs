//! The status for people: a sentence, then a row for each path and their total.

use std::io::{self, Write};

use super::details;
use super::headline::{Level, rate_words};
use super::units::{bytes, label, lasting, write_columns};
use super::{
    AttemptsReport, CaptureReport, LeftOutReport, OutageReport, PathErrorReport, PathReport,
    RatesReport, ServerReport, SessionReport, StatusReport, UdpReport,
};
use crate::output::counted;
use crate::refusals::RefusalsReport;

/// Below this rate nothing is said of a link's capacity: too little data shows it.
const LEAST_LOAD_MBPS: f64 = 0.1;
/// Refused destinations of this time are listed, in seconds; earlier ones are only counted.
const LATELY_S: u64 = 600;
/// An estimate above this multiple of a full link's present rate is one of earlier times, or wrong.
const PLAUSIBLE_FULL: f64 = 2.0;
/// So is one above this multiple of another link's present rate: too little data supports it.
const PLAUSIBLE: f64 = 4.0;

/// Writes the report as text, with the transport's internals if `all`.
///
/// # Errors
/// What the writer says.
pub fn write_table(out: &mut impl Write, report: &StatusReport, all: bool) -> io::Result<()> {
    writeln!(out, "{}: {}", identity(report), sentence(report))?;
    let is_short = report.role == "server" && report.sessions.len() > 1 && !all;
    if is_short {
        writeln!(out)?;
        write_clients(out, &report.sessions)?;
        writeln!(out, "`sumrate status --all` shows the paths of each client")?;
    }
    for session in report.sessions.iter().filter(|_| !is_short) {
        writeln!(out)?;
        if report.role == "server" {
            let client = session.credential.as_deref().unwrap_or("unknown");
            writeln!(out, "client {client} (session {})", label(&session.id, None))?;
        }
        write_paths(out, &session.paths)?;
        if all {
            writeln!(out)?;
            details::write(out, session)?;
        }
    }
    if !report.idle_paths.is_empty() {
        writeln!(out)?;
        write_paths(out, &report.idle_paths)?;
    }
    let facts = facts(report);
    if !facts.is_empty() {
        writeln!(out)?;
    }
    facts.iter().try_for_each(|fact| writeln!(out, "{fact}"))
}

/// Role, process and address, which tell one process from another.
pub(crate) fn identity(report: &StatusReport) -> String {
    let role = match report.role.as_str() {
        "server" => "Server",
        _ => "Client",
    };
    let proxies = [("SOCKS5", &report.proxies.socks), ("HTTP", &report.proxies.http)];
    let proxies = proxies.iter().filter_map(|(kind, address)| {
        address.as_ref().map(|address| format!(", {kind} proxy {address}"))
    });
    let listens = report.listen.iter().map(|address| format!(", listens on {address}"));
    let places: String = proxies.chain(listens).collect();
    format!("{role} (process {}{places})", report.pid)
}

/// The headline; of an earlier version's process, what its report amounts to.
fn sentence(report: &StatusReport) -> String {
    match &report.headline {
        Some(headline) => headline.sentence.clone(),
        None => {
            let mut judged = report.clone();
            super::annotate_headline(&mut judged);
            judged.headline.map(|headline| headline.sentence).unwrap_or_default()
        }
    }
}

/// What there is to know beside paths.
fn facts(report: &StatusReport) -> Vec<String> {
    let streams: usize = report.sessions.iter().map(|session| session.streams.len()).sum();
    let mut facts = vec![format!(
        "{}; running for {}; sumrate {}",
        counted(streams as u64, "open connection", "open connections"),
        lasting(report.uptime_s),
        report.version
    )];
    facts.extend(report.capture.as_ref().map(captured));
    facts.extend(report.udp.as_ref().map(|udp| format!("UDP: {}", datagrams(udp))));
    facts.extend(servers(&report.servers));
    facts.extend(missing_family(report.sessions.first()));
    facts.extend(LeftOutReport::words_of_all(&report.left_out));
    let busy = report.attempts.filter(|attempts| *attempts != AttemptsReport::default());
    facts.extend(busy.map(|attempts| attempts.words()));
    if report.left_out.is_empty() && !report.unrouted_interfaces.is_empty() {
        let names = report.unrouted_interfaces.join(", ");
        facts.push(format!("not used: {names} (no route to the server leads through it)"));
    }
    facts.extend(report.refusals.iter().flat_map(refused));
    facts
}

/// The address family in which the exit reaches nothing, if it says so.
pub(crate) fn missing_family(session: Option<&SessionReport>) -> Option<String> {
    let has = |family: &str| {
        session.is_some_and(|session| session.exit_families.iter().any(|known| known == family))
    };
    let (missing, other) = match (has("ipv4"), has("ipv6")) {
        (true, false) => ("IPv6", "IPv4"),
        (false, true) => ("IPv4", "IPv6"),
        _ => return None,
    };
    Some(format!(
        "the server has no {missing}: connections to {missing} addresses fail, those to {other} work"
    ))
}

/// Which of several servers is in use, and what is wrong with others.
fn servers(servers: &[ServerReport]) -> Vec<String> {
    let line = |(index, server): (usize, &ServerReport)| {
        let mut said = vec![format!("server {}: {}", index + 1, server.server)];
        said.extend(
            server
                .in_use
                .then(|| format!("in use for {}", lasting(server.since_s.unwrap_or_default()))),
        );
        said.extend(server.last_error.as_ref().map(|error| {
            format!("not reached {} ago: {error}", lasting(server.error_ago_s.unwrap_or_default()))
        }));
        said.join(", ")
    };
    servers.iter().enumerate().map(line).collect()
}

/// How many destinations were refused, and the latest with the reason.
fn refused(refusals: &RefusalsReport) -> Vec<String> {
    let count: u64 = refusals.reasons.values().sum();
    let reasons: Vec<String> =
        refusals.reasons.iter().map(|(why, count)| format!("{why} {count}")).collect();
    let all = counted(count, "refused connection", "refused connections");
    let mut said = vec![format!("{all} ({})", reasons.join(", "))];
    let latest = refusals.latest.iter().filter(|refused| refused.ago_s < LATELY_S).take(3);
    said.extend(latest.map(|refused| {
        let times = counted(refused.count, "time", "times");
        format!("  {times}, last {} ago: {}", lasting(refused.ago_s as f64), refused.words)
    }));
    said
}

fn captured(capture: &CaptureReport) -> String {
    let connections = counted(capture.connections, "connection", "connections");
    let mut line = format!("--{}: {connections} captured", capture.method);
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
        line += &format!("; DNS questions go to {dns}");
    }
    if capture.waits {
        line += "; connections go DIRECTLY until the server is reached (--when-down direct)";
    }
    if capture.ipv6_refused {
        line += "; IPv6 is refused, as the server has no way to it";
    }
    if capture.restored > 0 {
        let times = counted(capture.restored, "time", "times");
        line += &format!("; somebody removed rules or routes, which were restored {times}");
    }
    if let Some(broken) = &capture.broken {
        line += &format!("; REFUSED now, as somebody removed what cannot be restored: {broken}");
    }
    line
}

fn datagrams(udp: &UdpReport) -> String {
    let dropped = match udp.dropped_datagrams {
        0 => String::new(),
        count => format!(", dropped {count} ({})", bytes(udp.dropped_bytes)),
    };
    format!(
        "{} open, {} so far; sent {} ({}), received {} ({}){dropped}",
        counted(udp.flows, "flow", "flows"),
        udp.opened,
        counted(udp.sent_datagrams, "datagram", "datagrams"),
        bytes(udp.sent_bytes),
        udp.received_datagrams,
        bytes(udp.received_bytes)
    )
}

impl OutageReport {
    /// The outage for people, without the next attempt.
    pub(crate) fn words(&self) -> String {
        let Self { since_s, last_error, .. } = self;
        if self.quotas_spent {
            return last_error.clone();
        }
        format!("the server is unreachable for {}: {last_error}", lasting(*since_s))
    }
}

/// A row for each client of a server, and their total.
fn write_clients(out: &mut impl Write, sessions: &[SessionReport]) -> io::Result<()> {
    let row = |client: &str, session: String, paths: &[PathReport]| {
        let total = Row::total(paths);
        let up = paths.iter().filter(|path| path.health != "dead").count();
        let up = format!("{up} of {} up", paths.len());
        vec![client.to_owned(), session, up, total.down, total.up, total.used]
    };
    let mut lines: Vec<_> = sessions
        .iter()
        .map(|session| {
            let client = session.credential.as_deref().unwrap_or("unknown");
            row(client, label(&session.id, None), &session.paths)
        })
        .collect();
    let paths: Vec<PathReport> =
        sessions.iter().flat_map(|session| session.paths.iter().cloned()).collect();
    lines.push(row("Total", String::new(), &paths));
    write_columns(out, &["client", "session", "paths", "down", "up", "data used"], &lines)
}

/// A row for each path and, of several, their total. Columns that would be empty are left out.
fn write_paths(out: &mut impl Write, paths: &[PathReport]) -> io::Result<()> {
    let rows: Vec<Row> = paths.iter().map(Row::of).collect();
    let of = |cell: fn(&Row) -> &String| rows.iter().any(|row| !cell(row).is_empty());
    let (has_down, has_up) = (of(|row| &row.capacity_down), of(|row| &row.capacity_up));
    let has_notes = of(|row| &row.notes);
    let mut head = vec!["path", "state", "down", "up", "RTT"];
    head.extend(has_down.then_some("capacity down"));
    head.extend(has_up.then_some("capacity up"));
    head.push("data used");
    head.extend(has_notes.then_some("notes"));
    let cells = |row: Row| {
        let mut cells = vec![row.name, row.state, row.down, row.up, row.rtt];
        cells.extend(has_down.then_some(row.capacity_down));
        cells.extend(has_up.then_some(row.capacity_up));
        cells.push(row.used);
        cells.extend(has_notes.then_some(row.notes));
        cells
    };
    let total = (paths.len() > 1).then(|| Row::total(paths));
    let lines: Vec<_> = rows.iter().cloned().chain(total).map(cells).collect();
    write_columns(out, &head, &lines)
}

/// The cells of a path.
#[derive(Debug, Clone, Default)]
struct Row {
    name: String,
    state: String,
    down: String,
    up: String,
    rtt: String,
    capacity_down: String,
    capacity_up: String,
    used: String,
    notes: String,
}

impl Row {
    fn of(path: &PathReport) -> Self {
        let is_up = path.health != "dead";
        let connected = |cell: String| if is_up { cell } else { String::new() };
        let rtt = if path.rtt_ms > 0.0 { rtt_words(path.rtt_ms) } else { String::new() };
        let is_full = |why: &str, held: u64, most: u64| why == "commit-limit" || held > most / 2;
        let up_full = is_full(&path.why, path.commit_bytes, path.commit_limit_bytes);
        let up = capacity(path.rate_mbps, path.up_mbps, up_full);
        let down = path.far.as_ref().and_then(|far| {
            let is_full = is_full(&far.why, far.commit_bytes, far.commit_limit_bytes);
            capacity(far.rate_mbps, path.down_mbps, is_full)
        });
        let of = |capacity: Option<String>| connected(capacity.unwrap_or_default());
        Self {
            name: path.name.clone(),
            state: state(path),
            down: connected(rate_words(path.down_mbps)),
            up: connected(rate_words(path.up_mbps)),
            rtt: connected(rtt),
            capacity_down: of(down),
            capacity_up: of(up),
            used: bytes(carried(path)),
            notes: notes(path).join("; "),
        }
    }

    fn total(paths: &[PathReport]) -> Self {
        let rates = paths.iter().fold(RatesReport::default(), |sum, path| RatesReport {
            down_mbps: sum.down_mbps + path.down_mbps,
            up_mbps: sum.up_mbps + path.up_mbps,
        });
        Self {
            name: "Total".to_owned(),
            down: rate_words(rates.down_mbps),
            up: rate_words(rates.up_mbps),
            used: bytes(paths.iter().map(carried).sum()),
            ..Self::default()
        }
    }
}

/// The state without the rate, which has columns of its own.
fn state(path: &PathReport) -> String {
    let Some(state) = &path.state else { return path.health.clone() };
    match (state.level, state.words.split_once(' ')) {
        (Level::Good, Some((verb @ ("receiving" | "sending"), _))) => verb.to_owned(),
        _ => state.words.clone(),
    }
}

/// A round-trip time, with a decimal where it is short.
pub(crate) fn rtt_words(milliseconds: f64) -> String {
    match milliseconds {
        rtt if rtt < 0.05 => "<0.1 ms".to_owned(),
        rtt if rtt < 9.95 => format!("{rtt:.1} ms"),
        rtt => format!("{rtt:.0} ms"),
    }
}

/// The estimated rate of a link in one direction, where present traffic supports it; what it carries now
/// is the least that it can.
fn capacity(estimate: Option<f64>, load: f64, is_full: bool) -> Option<String> {
    let most = load * if is_full { PLAUSIBLE_FULL } else { PLAUSIBLE };
    let estimate = estimate.filter(|_| load >= LEAST_LOAD_MBPS)?;
    Some(match estimate <= most {
        true => rate_words(estimate),
        false => format!("at least {}", rate_words(load)),
    })
}

/// Bytes in both directions; of an earlier version's process, those of streams and their copies.
fn carried(path: &PathReport) -> u64 {
    if path.carried_bytes > 0 {
        return path.carried_bytes;
    }
    let all = [path.sent_bytes, path.redundant_bytes, path.received_bytes, path.duplicate_bytes];
    all.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// How the path is to be used where that is not as usual, and what is wrong with it.
fn notes(path: &PathReport) -> Vec<String> {
    let mut said = Vec::new();
    said.extend((path.priority.starts_with("backup")).then(|| path.priority.clone()));
    said.extend(path.rate_cap_mbps.map(|cap| format!("limited to {cap} Mbit/s each way")));
    said.extend(path.weight.map(|weight| format!("weight {weight}")));
    if !path.never.is_empty() {
        said.push(format!("never {}", path.never.join(", ")));
    }
    if let Some(quota) = &path.quota {
        let limit = quota.limit_bytes.map_or_else(String::new, |l| format!(" of {}", bytes(l)));
        said.push(format!("{}{limit} used in {}", bytes(quota.used_bytes), quota.month));
    }
    if path.metered {
        said.push("metered".to_owned());
    }
    if !path.shares_with.is_empty() {
        said.push(format!("shares a bottleneck with {}", path.shares_with.join(", ")));
    }
    said.extend(path.last_error.as_ref().map(PathErrorReport::words));
    said
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
