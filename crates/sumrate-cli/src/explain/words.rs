//! The sentences.

use fbdt_proto::Priority;

use super::report::Interval;
use crate::status::{PathReport, StatusReport, bytes, lasting};

/// Below this a path carries nothing worth a word: acknowledgements and probes only.
const NOTHING_MBPS: f64 = 0.001;
/// Below this a path's share is not worth a number: what whoever looks makes of traffic is less.
const LITTLE_MBPS: f64 = 0.02;
/// Reasons that hold at both ends, for as long as they last.
pub(super) const AT_BOTH_ENDS: [&str; 5] = ["quota", "paused", "no-subflow", "suspect", "standby"];
/// What the other end says of a path that brings nothing, where this end sends nothing either.
const STALLS: [&str; 3] = ["flow-control", "kept-off", "rate-cap"];
/// Share of a link's rate above which it is called nearly full.
const NEARLY_FULL: f64 = 0.8;
/// Share of retransmitted bytes from which on a path is called lossy.
const LOSSY: f64 = 0.01;
/// Of less than this, one or two segments that were sent again would make a path lossy.
const ENOUGH_TO_TELL_LOSS_BYTES: u64 = 250_000;

/// What holds for the whole process.
pub(super) fn of_process(report: &StatusReport) -> Vec<String> {
    let stopping = report.stopping.map(|stopping| capital(&stopping.words()) + ".");
    let sessions = match &report.outage {
        Some(outage) => Some(capital(&outage.words()) + "."),
        None if report.sessions.is_empty() && report.role == "server" => {
            Some("No client is connected.".to_owned())
        }
        None if report.sessions.is_empty() => Some("Not connected to the server.".to_owned()),
        None => None,
    };
    stopping.into_iter().chain(sessions).collect()
}

/// The same with a capital letter in front.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The same with a small letter in front.
fn small(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// A path of a client that has no session.
pub(super) fn of_idle_path(path: &PathReport) -> Vec<String> {
    let why = match path.why.as_str() {
        "quota" => of_quota(path),
        "paused" => of_pause(path),
        _ => of_no_connection(path, false),
    };
    vec![format!("{} is idle.", path.name), why]
}

/// One path: what it carries, why, and what would change that. `far` is the same path as the other end
/// sends on it, where that has said so.
pub(super) fn of_path(interval: &Interval<'_>, far: Option<&Interval<'_>>) -> Vec<String> {
    let is_receiving = interval.all_received_mbps > LITTLE_MBPS;
    let is_mostly_receiving = is_receiving && interval.all_received_mbps > interval.all_sent_mbps;
    let is_idle = !is_receiving && interval.all_sent_mbps <= LITTLE_MBPS;
    let far = far.filter(|far| {
        is_receiving && !AT_BOTH_ENDS.contains(&far.why) || is_idle && STALLS.contains(&far.why)
    });
    let far = far.filter(|far| is_mostly_receiving || far.why != "nothing-to-send");
    let is_far_enough = is_mostly_receiving && far.is_some() && interval.why == "nothing-to-send";
    let own = (!is_far_enough).then(|| reason(interval)).flatten();
    let mut sentences = vec![carries(interval)];
    sentences.extend(own);
    for words in far.into_iter().flat_map(|far| reason(far).into_iter().chain(losses(far))) {
        sentences.push(format!("The other end reports: {}", small(&words)));
    }
    sentences.extend(circumstances(interval));
    if far.is_none() {
        sentences.extend(pointer(interval));
    }
    sentences
}

fn carries(interval: &Interval<'_>) -> String {
    let part = |mbps: f64, all: f64, what: &str| {
        (mbps > LITTLE_MBPS).then(|| {
            let percent = 100.0 * mbps / all;
            format!("{what} {mbps:.1} of {all:.1} Mbit/s ({percent:.0} %)")
        })
    };
    let sent = part(interval.sent_mbps, interval.all_sent_mbps, "sends");
    let received = part(interval.received_mbps, interval.all_received_mbps, "receives");
    let name = &interval.path.name;
    match (sent, received) {
        (Some(sent), Some(received)) => format!("{name} {sent} and {received}."),
        (Some(one), None) | (None, Some(one)) => format!("{name} {one}."),
        (None, None) if interval.sent_mbps + interval.received_mbps > NOTHING_MBPS => {
            let (sent, received) = (1e3 * interval.sent_mbps, 1e3 * interval.received_mbps);
            format!("{name} is idle ({received:.0} kbit/s down, {sent:.0} kbit/s up).")
        }
        (None, None) => format!("{name} is idle."),
    }
}

/// Why this end sends no more on it.
fn reason(interval: &Interval<'_>) -> Option<String> {
    let path = interval.path;
    let words = match interval.why {
        "quota" => of_quota(path),
        "paused" => of_pause(path),
        "no-subflow" => of_no_connection(path, interval.session.credential.is_some()),
        "suspect" => format!(
            "It does not answer: its unacknowledged data is resent over the other paths, and it is \
             reconnected.{}",
            known_error(path)
        ),
        "standby" => of_standby(interval),
        "unmeasured" => "It has just connected and is not measured yet.".to_owned(),
        "sending" | "commit-limit" => of_commit(interval),
        "rate-cap" => of_rate_cap(interval),
        "weight" => of_weight(interval),
        "kept-off" if !path.never.is_empty() => {
            format!(
                "All pending data is {}, which this path never carries.",
                path.never.join(" or ")
            )
        }
        "nothing-to-send" => {
            let direction = if interval.is_far { "download" } else { "upload" };
            format!("Idle: no {direction} is waiting.")
        }
        "flow-control" => {
            let place = if interval.is_far { "here" } else { "at the other end" };
            format!("The receiving program {place} reads too slowly: its buffer is full.")
        }
        "too-late" => of_delay(interval),
        "windows-full" => {
            "All pending data is in flight: it waits for acknowledgements.".to_owned()
        }
        "left-to-another" => {
            format!("The scheduler {} gives the data to another path.", interval.session.scheduler)
        }
        _ => format!("It {}.", path.why_idle),
    };
    Some(words)
}

/// Only a server knows nothing of what its client does with a path.
fn of_no_connection(path: &PathReport, is_server: bool) -> String {
    let known = known_error(path);
    let why = match known.is_empty() {
        true => ": refused, lost, closed by the client or never answered.".to_owned(),
        false => format!(".{known}"),
    };
    let awaits_interface = path.last_error.as_ref().is_some_and(|error| error.interface_gone);
    let next = match (is_server, awaits_interface) {
        (true, _) => {
            " The client tries again ever more rarely unless the path is switched off there."
        }
        (false, false) => {
            " It is tried again ever more rarely, and at once when the interface changes."
        }
        (false, true) => "",
    };
    format!("Not connected{why}{next}")
}

/// What went wrong last, as a sentence to add.
fn known_error(path: &PathReport) -> String {
    path.last_error.as_ref().map_or_else(String::new, |error| {
        format!(" Last error, {} ago: {}.", lasting(error.ago_s), error.reason)
    })
}

fn of_rate_cap(interval: &Interval<'_>) -> String {
    let (cap, percent) = (interval.path.rate_cap_mbps.unwrap_or(0.0), 100.0 * interval.why_share);
    format!("Its limit of {cap:.1} Mbit/s (`--rate`) is reached {percent:.0} % of the time.")
}

/// How much of what it may hold it holds; full only when that is what it waited for. What it holds in
/// one moment is no measure where it was not full just then.
fn of_commit(interval: &Interval<'_>) -> String {
    let path = interval.path;
    let (held, limit) = (bytes(path.commit_bytes), bytes(path.commit_limit_bytes));
    if interval.why == "sending" {
        let load = if interval.is_far { interval.received_mbps } else { interval.sent_mbps };
        return match path.rate_mbps {
            Some(rate) if load > NEARLY_FULL * rate => {
                format!("Link nearly full: {load:.1} of about {rate:.1} Mbit/s.")
            }
            _ => "Not limited: there is nothing more to send.".to_owned(),
        };
    }
    if path.commit_bytes < path.commit_limit_bytes / 2 {
        return format!(
            "Link full {:.0} % of the time (window of {limit}).",
            100.0 * interval.why_share
        );
    }
    format!("Link full: {held} of {limit} in flight.")
}

fn of_quota(path: &PathReport) -> String {
    let Some(quota) = &path.quota else { return format!("It is idle: {}.", path.why_idle) };
    format!(
        "Paused: its quota for {} is used up ({} of {}). It is used again from {}, or when \
         `sumrate path set {} --quota BYTES` raises the quota.",
        quota.month,
        bytes(quota.used_bytes),
        bytes(quota.limit_bytes.unwrap_or(0)),
        quota.until(),
        path.name
    )
}

fn of_standby(interval: &Interval<'_>) -> String {
    let own = level(&interval.path.priority);
    let serving: Vec<String> = interval
        .session
        .paths
        .iter()
        .filter(|other| other.health == "active" && level(&other.priority) < own)
        .map(|other| format!("{} ({})", other.name, other.priority))
        .collect();
    format!(
        "On standby ({}) while {} {} active. It takes over when none of these answers.",
        interval.path.priority,
        if serving.is_empty() { "a better path".to_owned() } else { serving.join(", ") },
        if serving.len() > 1 { "are" } else { "is" }
    )
}

fn of_weight(interval: &Interval<'_>) -> String {
    let own = interval.path;
    let others: Vec<String> = interval
        .session
        .paths
        .iter()
        .filter(|other| other.name != own.name)
        .filter_map(|other| Some(format!("{} has {}", other.name, other.weight?)))
        .collect();
    format!(
        "It waits {:.0} % of the time, because its share by weight is reached: its weight is {}, {}.",
        100.0 * interval.why_share,
        own.weight.unwrap_or(0),
        others.join(", ")
    )
}

fn of_delay(interval: &Interval<'_>) -> String {
    let own = interval.path;
    let fastest = interval
        .session
        .paths
        .iter()
        .filter(|other| other.name != own.name && other.health == "active")
        .min_by(|a, b| a.rtt_ms.total_cmp(&b.rtt_ms));
    let compared = fastest.map_or_else(String::new, |other| {
        format!(" ({:.0} ms RTT; {} has {:.0} ms)", own.rtt_ms, other.name, other.rtt_ms)
    });
    format!("Too slow for the present data{compared}: the other paths deliver all of it earlier.")
}

fn losses(interval: &Interval<'_>) -> Option<String> {
    let path = interval.path;
    let percent = 100.0 * path.retransmitted_share;
    let has_sent = path.sent_bytes + path.redundant_bytes;
    (path.retransmitted_share > LOSSY && has_sent >= ENOUGH_TO_TELL_LOSS_BYTES)
        .then(|| format!("Lossy: TCP resent {percent:.1} % of its bytes."))
}

/// The user has taken it out of use.
fn of_pause(path: &PathReport) -> String {
    let name = &path.name;
    format!("It is paused: `sumrate path set {name} --paused=false` resumes it.")
}

/// What is worth knowing besides.
fn circumstances(interval: &Interval<'_>) -> Vec<String> {
    let path = interval.path;
    let mut sentences = Vec::new();
    sentences.extend(losses(interval));
    if path.metered {
        let quota = path.quota.as_ref().filter(|_| interval.why != "quota");
        let used = quota.map_or_else(String::new, |quota| {
            let limit = quota.limit_bytes.map_or_else(String::new, |l| format!(" of {}", bytes(l)));
            format!(" {}{limit} used in {}.", bytes(quota.used_bytes), quota.month)
        });
        sentences.push(format!("Metered: it carries no copies that only save time.{used}"));
    }
    if !path.never.is_empty() {
        sentences.push(format!(
            "It never carries {} (`sumrate path set {} --never none` changes that).",
            path.never.join(" or "),
            path.name
        ));
    }
    sentences
}

/// Where to look for the other direction, when it is the one that counts: which path carries what this
/// end receives is decided at the other end.
fn pointer(interval: &Interval<'_>) -> Option<String> {
    let all = interval.all_received_mbps;
    if all <= LITTLE_MBPS || all <= interval.all_sent_mbps {
        return None;
    }
    if interval.received_mbps > NOTHING_MBPS {
        let words =
            "The other end decides what it sends on this path: run `sumrate explain` there.";
        return Some(words.to_owned());
    }
    if AT_BOTH_ENDS.contains(&interval.why) {
        return None;
    }
    Some(format!(
        "The other end decides what it sends over which path: run `sumrate explain` there to see why \
         it sends nothing over {}.",
        interval.path.name
    ))
}

fn level(priority: &str) -> usize {
    Priority::NAMES.iter().position(|name| *name == priority).unwrap_or(0)
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
