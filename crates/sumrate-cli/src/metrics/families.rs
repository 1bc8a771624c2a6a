//! Which metric says what of the status.

use std::collections::BTreeMap;

use fbdt_proto::Priority;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use crate::status::{PathReport, SessionReport, StatusReport, StreamReport, UdpReport};

/// Bytes per second in a Mbit/s.
const MEGABIT: f64 = 125_000.0;
/// Digits of a session's id in labels: enough to tell sessions apart.
const SESSION_DIGITS: usize = 8;

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Families in the order in which they were first mentioned; an empty one is left out.
#[derive(Default)]
struct Families {
    order: Vec<MetricFamily>,
    known: BTreeMap<&'static str, usize>,
}

impl Families {
    fn add(
        &mut self,
        kind: MetricType,
        name: &'static str,
        help: &str,
        labels: &Labels<'_>,
        value: f64,
    ) {
        let index = *self.known.entry(name).or_insert_with(|| {
            let mut family = MetricFamily::default();
            family.set_name(name.to_owned());
            family.set_help(help.to_owned());
            family.set_field_type(kind);
            self.order.push(family);
            self.order.len() - 1
        });
        let mut metric = Metric::from_label(labels.iter().map(label).collect());
        match kind {
            MetricType::COUNTER => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            _ => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
        }
        self.order[index].mut_metric().push(metric);
    }

    fn gauge(&mut self, name: &'static str, help: &str, labels: &Labels<'_>, value: f64) {
        self.add(MetricType::GAUGE, name, help, labels, value);
    }

    fn counter(&mut self, name: &'static str, help: &str, labels: &Labels<'_>, value: u64) {
        self.add(MetricType::COUNTER, name, help, labels, value as f64);
    }
}

fn label((name, value): &(&'static str, &str)) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name((*name).to_owned());
    pair.set_value((*value).to_owned());
    pair
}

/// Every metric of a process.
pub(super) fn families(report: &StatusReport) -> Vec<MetricFamily> {
    let mut families = Families::default();
    let build = vec![("version", report.version.as_str()), ("role", report.role.as_str())];
    families.gauge("sumrate_build_info", "Always 1; version and role are labels.", &build, 1.0);
    let none = Labels::new();
    families.gauge("sumrate_uptime_seconds", "Time since the start.", &none, report.uptime_s);
    let outage = report.outage.as_ref().map_or(0.0, |outage| outage.since_s);
    families.gauge(
        "sumrate_outage_seconds",
        "How long a client has not reached its server; 0 while it does.",
        &none,
        outage,
    );
    families.gauge("sumrate_sessions", "Open sessions.", &none, report.sessions.len() as f64);
    if let Some(udp) = &report.udp {
        of_datagrams(&mut families, udp);
    }
    if let Some(attempts) = &report.attempts {
        let help = "Connections that a server is making for clients.";
        families.gauge("sumrate_attempts", help, &none, attempts.connecting as f64);
        let help = "Attempts to connect that gave way, as too many others were under way.";
        families.counter("sumrate_attempts_gave_way_total", help, &none, attempts.gave_way);
    }
    for (reason, count) in report.refusals.iter().flat_map(|refusals| &refusals.reasons) {
        let labels = vec![("reason", reason.as_str())];
        let help = "Connections and datagrams to destinations that were refused, by reason.";
        families.counter("sumrate_refused_destinations_total", help, &labels, *count);
    }
    for session in &report.sessions {
        let id = session.id.get(..SESSION_DIGITS).unwrap_or(&session.id);
        of_session(&mut families, id, session);
        for path in &session.paths {
            of_path(&mut families, &vec![("session", id), ("path", path.name.as_str())], path);
        }
        of_streams(&mut families, id, &session.streams);
    }
    for path in &report.idle_paths {
        of_path(&mut families, &vec![("session", ""), ("path", path.name.as_str())], path);
    }
    families.order
}

/// UDP flows; none before the first one.
fn of_datagrams(families: &mut Families, udp: &UdpReport) {
    let none = Labels::new();
    families.gauge("sumrate_udp_flows", "Open UDP flows.", &none, udp.flows as f64);
    families.counter("sumrate_udp_flows_total", "UDP flows since the start.", &none, udp.opened);
    for (direction, datagrams, bytes) in [
        ("sent", udp.sent_datagrams, udp.sent_bytes),
        ("received", udp.received_datagrams, udp.received_bytes),
        ("dropped", udp.dropped_datagrams, udp.dropped_bytes),
    ] {
        let labels = vec![("direction", direction)];
        let help = "Datagrams of UDP flows.";
        families.counter("sumrate_udp_datagrams_total", help, &labels, datagrams);
        let help = "Bytes of UDP flows, without headers.";
        families.counter("sumrate_udp_bytes_total", help, &labels, bytes);
    }
}

fn of_session(families: &mut Families, id: &str, session: &SessionReport) {
    let labels = vec![("session", id)];
    let counters: [(&'static str, &str, u64); 4] = [
        (
            "sumrate_session_sent_bytes_total",
            "Stream bytes sent for the first time.",
            session.sent_bytes,
        ),
        (
            "sumrate_session_redundant_bytes_total",
            "Stream bytes sent a second time.",
            session.redundant_bytes,
        ),
        (
            "sumrate_session_received_bytes_total",
            "Stream bytes received, each once.",
            session.received_bytes,
        ),
        (
            "sumrate_session_duplicate_bytes_total",
            "Stream bytes received a second time.",
            session.duplicate_bytes,
        ),
    ];
    for (name, help, value) in counters {
        families.counter(name, help, &labels, value);
    }
    families.gauge(
        "sumrate_session_receive_memory_bytes",
        "Memory held for receiving.",
        &labels,
        session.receive_memory_bytes as f64,
    );
    families.gauge(
        "sumrate_session_receive_buffer_peak_bytes",
        "Most bytes that ever waited for earlier ones.",
        &labels,
        session.receive_buffer_peak_bytes as f64,
    );
    for (by, opened) in [("here", session.streams_opened.0), ("peer", session.streams_opened.1)] {
        let labels = vec![("session", id), ("opened_by", by)];
        families.counter("sumrate_session_streams_total", "Streams opened.", &labels, opened);
    }
}

fn of_path(families: &mut Families, labels: &Labels<'_>, path: &PathReport) {
    let with = |name, value| labels.iter().copied().chain([(name, value)]).collect::<Labels<'_>>();
    for health in ["active", "suspect", "dead"] {
        let is = if path.health == health { 1.0 } else { 0.0 };
        let help = "1 for the path's current health, 0 for the others.";
        families.gauge("sumrate_path_health", help, &with("health", health), is);
    }
    let priority = Priority::NAMES.iter().position(|name| *name == path.priority).unwrap_or(0);
    let gauges: [(&'static str, &str, f64); 4] = [
        (
            "sumrate_path_priority",
            "0: primary; 1 to 9: backup, used while no path of a lower number works.",
            priority as f64,
        ),
        ("sumrate_path_commit_bytes", "Unacknowledged bytes.", path.commit_bytes as f64),
        (
            "sumrate_path_commit_limit_bytes",
            "Limit of unacknowledged bytes now.",
            path.commit_limit_bytes as f64,
        ),
        (
            "sumrate_path_retransmitted_ratio",
            "Share of TCP's bytes that TCP sent again, over all its connections.",
            path.retransmitted_share,
        ),
    ];
    for (name, help, value) in gauges {
        families.gauge(name, help, labels, value);
    }
    // A path without a connection has none.
    for (name, help, milliseconds) in [
        ("sumrate_path_rtt_seconds", "Smoothed RTT; none without a connection.", path.rtt_ms),
        (
            "sumrate_path_min_rtt_seconds",
            "Smallest RTT; none without a connection.",
            path.min_rtt_ms,
        ),
    ] {
        if milliseconds > 0.0 {
            families.gauge(name, help, labels, milliseconds / 1e3);
        }
    }
    if let Some(rate) = path.rate_mbps {
        let help = "Estimated rate of the link towards the peer; none until it was measured.";
        families.gauge("sumrate_path_rate_bytes_per_second", help, labels, rate * MEGABIT);
    }
    path_counters(families, labels, path);
    path_policy(families, labels, path);
    let causes = path.redundant;
    for (cause, bytes) in [
        ("lost", causes.lost),
        ("suspect", causes.suspect),
        ("overdue", causes.overdue),
        ("idle", causes.idle),
        ("scheduled", causes.scheduled),
    ] {
        let help = "Stream bytes sent a second time on the path, by cause.";
        let name = "sumrate_path_redundant_bytes_total";
        families.counter(name, help, &with("cause", cause), bytes);
    }
}

/// How it is used, and what that comes to; a wish that there is none has no sample.
fn path_policy(families: &mut Families, labels: &Labels<'_>, path: &PathReport) {
    let metered = if path.metered { 1.0 } else { 0.0 };
    families.gauge("sumrate_path_metered", "1 if the path is metered.", labels, metered);
    let quota = path.quota.as_ref();
    let wishes: [(&'static str, &str, Option<f64>); 4] = [
        (
            "sumrate_path_weight",
            "Share compared with other paths that have a weight.",
            path.weight.map(f64::from),
        ),
        (
            "sumrate_path_rate_cap_bytes_per_second",
            "Rate cap of this end.",
            path.rate_cap_mbps.map(|rate| rate * MEGABIT),
        ),
        (
            "sumrate_path_quota_bytes",
            "Quota of a calendar month (UTC), in bytes.",
            quota.and_then(|quota| quota.limit_bytes).map(|bytes| bytes as f64),
        ),
        (
            "sumrate_path_quota_used_bytes",
            "Bytes of this month, both directions together.",
            quota.map(|quota| quota.used_bytes as f64),
        ),
    ];
    for (name, help, value) in wishes {
        if let Some(value) = value {
            families.gauge(name, help, labels, value);
        }
    }
    for (why, seconds) in &path.waited_s {
        let labels = labels.iter().copied().chain([("why", why.as_str())]).collect();
        let help = "Time for which it sent nothing, by reason, up to the last change.";
        let name = "sumrate_path_waited_seconds_total";
        families.add(MetricType::COUNTER, name, help, &labels, *seconds);
    }
}

fn path_counters(families: &mut Families, labels: &Labels<'_>, path: &PathReport) {
    let counters: [(&'static str, &str, u64); 5] = [
        (
            "sumrate_path_sent_bytes_total",
            "Stream bytes sent for the first time on the path.",
            path.sent_bytes,
        ),
        (
            "sumrate_path_received_bytes_total",
            "Stream bytes received on the path, each once.",
            path.received_bytes,
        ),
        (
            "sumrate_path_duplicate_bytes_total",
            "Stream bytes received on the path that had been received before.",
            path.duplicate_bytes,
        ),
        ("sumrate_path_subflows_total", "Connections that the path has had.", path.subflows),
        ("sumrate_path_suspected_total", "Times that the path became suspect.", path.suspected),
    ];
    for (name, help, value) in counters {
        families.counter(name, help, labels, value);
    }
}

/// What the open streams of one class come to.
#[derive(Default)]
struct ClassSums {
    open: u64,
    memory: u64,
    unacknowledged: u64,
    windows: u64,
    delay_ms: [f64; 2],
    stall_ms: f64,
}

fn of_streams(families: &mut Families, id: &str, streams: &[StreamReport]) {
    let mut classes: BTreeMap<&str, ClassSums> = BTreeMap::new();
    for stream in streams {
        let sums = classes.entry(&stream.class).or_default();
        sums.open += 1;
        sums.memory += stream.receive_memory_bytes;
        sums.unacknowledged += stream.written_bytes.saturating_sub(stream.acknowledged_bytes);
        sums.windows += stream.open_windows;
        let delay = stream.in_order_delay_ms;
        sums.delay_ms[0] = sums.delay_ms[0].max(delay.p50);
        sums.delay_ms[1] = sums.delay_ms[1].max(delay.p99);
        sums.stall_ms = sums.stall_ms.max(stream.longest_stall_ms);
    }
    for (class, sums) in classes {
        let labels = vec![("session", id), ("class", class)];
        let gauges: [(&'static str, &str, f64); 5] = [
            ("sumrate_stream_open", "Open streams of the class.", sums.open as f64),
            (
                "sumrate_stream_receive_memory_bytes",
                "Memory that they hold for receiving.",
                sums.memory as f64,
            ),
            (
                "sumrate_stream_unacknowledged_bytes",
                "Bytes that applications wrote and the peer does not have in order yet.",
                sums.unacknowledged as f64,
            ),
            ("sumrate_stream_windows", "Open transmission windows.", sums.windows as f64),
            (
                "sumrate_stream_longest_stall_seconds",
                "Longest time between two deliveries, of the worst of them.",
                sums.stall_ms / 1e3,
            ),
        ];
        for (name, help, value) in gauges {
            families.gauge(name, help, &labels, value);
        }
        for (quantile, delay) in ["0.5", "0.99"].into_iter().zip(sums.delay_ms) {
            let labels = vec![("session", id), ("class", class), ("percentile", quantile)];
            let help = "Time from a byte's arrival to its delivery, of the worst of them.";
            families.gauge("sumrate_stream_in_order_delay_seconds", help, &labels, delay / 1e3);
        }
    }
}
