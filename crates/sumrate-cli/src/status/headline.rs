//! One sentence about a process, and a few words about each of its paths.

use serde::{Deserialize, Serialize};

use super::{OutageReport, PathReport, SessionReport, StatusReport, lasting};
use crate::output::counted;

/// Slower traffic counts as idle: the questions of a program that watches cause as much.
const IDLE_MBPS: f64 = 0.03;
/// A path that carries less than this share of the busiest one's traffic is not named in the headline.
const LEAST_SHARE: f64 = 0.02;
/// More paths than these are counted instead of named.
const MOST_NAMED: usize = 4;

/// How well a process or a path works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Data flows and nothing is wrong.
    Good,
    /// It works, with less than it should have.
    Degraded,
    /// It does not work.
    Down,
    /// Nothing is wrong and there is nothing to do.
    #[default]
    Idle,
}

/// The headline of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadlineReport {
    /// How well the process works.
    pub level: Level,
    /// A sentence for people, without a full stop.
    pub sentence: String,
}

/// The state of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateReport {
    /// How well the path works.
    pub level: Level,
    /// A few words for people.
    pub words: String,
}

/// Enters the headline and the state of each path. The rates must be there.
pub(crate) fn annotate(report: &mut StatusReport) {
    let sessions = report.sessions.iter_mut().flat_map(|session| &mut session.paths);
    for path in sessions.chain(&mut report.idle_paths) {
        path.state = Some(state(path));
    }
    report.headline = Some(headline(report));
}

/// The state of a path, by its busier direction.
fn state(path: &PathReport) -> StateReport {
    let of = |level, words: &str| StateReport { level, words: words.to_owned() };
    let is_gone = path.last_error.as_ref().is_some_and(|error| error.interface_gone);
    match (path.why.as_str(), path.health.as_str()) {
        ("quota", _) => {
            let until = path.quota.as_ref().and_then(|quota| quota.first_day());
            let words = until.map_or_else(
                || "paused (quota)".to_owned(),
                |day| format!("paused (quota, until {day})"),
            );
            StateReport { level: Level::Idle, words }
        }
        ("paused", _) => of(Level::Idle, "paused"),
        (_, "dead") if is_gone => of(Level::Down, "interface gone"),
        (_, "dead") => of(Level::Down, "not connected"),
        (_, "suspect") => of(Level::Degraded, "no answer, probing"),
        _ => match activity(path.down_mbps, path.up_mbps, ("receiving", "sending")) {
            Some(words) => StateReport { level: Level::Good, words },
            None if path.why == "standby" => of(Level::Idle, "standby"),
            None => of(Level::Idle, "idle"),
        },
    }
}

/// The busier direction with its rate; nothing where both are idle.
fn activity(down: f64, up: f64, (receiving, sending): (&str, &str)) -> Option<String> {
    let (rate, verb) = if down >= up { (down, receiving) } else { (up, sending) };
    (rate >= IDLE_MBPS).then(|| format!("{verb} {}", rate_words(rate)))
}

fn headline(report: &StatusReport) -> HeadlineReport {
    let of = |level, sentence| HeadlineReport { level, sentence };
    if let Some(stopping) = &report.stopping {
        return of(Level::Idle, stopping.words());
    }
    if let Some(outage) = &report.outage {
        return of(Level::Down, of_outage(outage));
    }
    match (report.role.as_str(), &report.sessions[..]) {
        ("server", []) => of(Level::Idle, "no client is connected".to_owned()),
        (_, []) => of(Level::Down, "not connected to the server".to_owned()),
        ("server", sessions) => of_server(report, sessions),
        (_, [session, ..]) => of_client(report, session),
    }
}

fn of_outage(outage: &OutageReport) -> String {
    if outage.quotas_spent {
        return outage.words();
    }
    let next = match outage.next_attempt_s {
        Some(seconds) => format!("next attempt in {}", lasting(seconds)),
        None => "reconnecting now".to_owned(),
    };
    format!("{}; {next}", outage.words())
}

/// Rate and paths of a client, and which path is not well.
fn of_client(report: &StatusReport, session: &SessionReport) -> HeadlineReport {
    let rates = report.rates;
    let names = carrying(&session.paths);
    let rate = match rates.down_mbps >= rates.up_mbps {
        true => (rates.down_mbps, "down"),
        false => (rates.up_mbps, "up"),
    };
    let is_busy = rate.0 >= IDLE_MBPS && !names.is_empty();
    let (level, health) = health(&session.paths);
    let sentence = match (is_busy, level) {
        (true, _) => format!("{} {} over {}", rate_words(rate.0), rate.1, few(&names)),
        (false, Level::Down) => String::new(),
        (false, _) => "idle".to_owned(),
    };
    let parts: Vec<String> =
        [sentence, health].into_iter().filter(|part| !part.is_empty()).collect();
    let level = if is_busy || level != Level::Good { level } else { Level::Idle };
    HeadlineReport { level, sentence: parts.join(", ") }
}

/// Clients and rates of a server; the paths where there is one client.
fn of_server(report: &StatusReport, sessions: &[SessionReport]) -> HeadlineReport {
    let clients = counted(sessions.len() as u64, "client", "clients");
    let rates = report.rates;
    let doing = activity(rates.down_mbps, rates.up_mbps, ("receiving", "sending"));
    let (level, paths) = match sessions {
        [session] => {
            let (level, health) = health(&session.paths);
            let names = carrying(&session.paths);
            match doing.is_some() && !names.is_empty() {
                true => (level, format!(" over {}, {health}", few(&names))),
                false => (level, format!(", {health}")),
            }
        }
        _ => {
            let ill = sessions.iter().filter(|session| health(&session.paths).0 != Level::Good);
            match ill.count() {
                0 => (Level::Good, ", all fine".to_owned()),
                ill => (Level::Degraded, format!(", {ill} with a path that does not work")),
            }
        }
    };
    let level = if doing.is_some() || level != Level::Good { level } else { Level::Idle };
    let doing = doing.unwrap_or_else(|| "idle".to_owned());
    HeadlineReport { level, sentence: format!("{clients}, {doing}{paths}") }
}

/// The paths that carry a share of the busier direction worth naming.
fn carrying(paths: &[PathReport]) -> Vec<&str> {
    let sum = |rate: fn(&PathReport) -> f64| paths.iter().map(rate).sum::<f64>();
    let (down, up) = (sum(|path| path.down_mbps), sum(|path| path.up_mbps));
    let of = |path: &PathReport| if down >= up { path.down_mbps } else { path.up_mbps };
    let least = LEAST_SHARE * paths.iter().map(of).fold(0.0, f64::max);
    let least = least.max(f64::MIN_POSITIVE);
    paths.iter().filter(|path| of(path) >= least).map(|path| path.name.as_str()).collect()
}

/// Whether all paths are well, and which are not.
fn health(paths: &[PathReport]) -> (Level, String) {
    let is_paused = |path: &&PathReport| ["quota", "paused"].contains(&path.why.as_str());
    let ill: Vec<&PathReport> =
        paths.iter().filter(|path| path.health != "active" && !is_paused(path)).collect();
    let active = paths.iter().filter(|path| path.health == "active" && !is_paused(path));
    let names: Vec<&str> = active.map(|path| path.name.as_str()).collect();
    let well = names.len();
    let mut said = match ill.len() {
        0..=MOST_NAMED => {
            ill.iter().map(|path| format!("{}: {}", path.name, state(path).words)).collect()
        }
        many => vec![format!("{many} of {} paths do not work", paths.len())],
    };
    let level = match (ill.is_empty(), well) {
        (true, _) => Level::Good,
        (false, 0) => Level::Down,
        (false, _) => Level::Degraded,
    };
    if ill.is_empty() {
        let fine = match (paths.len(), well) {
            (1, _) => "fine".to_owned(),
            (2, 2) => "both fine".to_owned(),
            (all, well) if all == well => "all fine".to_owned(),
            (_, 1) => format!("{} fine", list(&names)),
            _ => "the others fine".to_owned(),
        };
        let paused = paths.iter().filter(is_paused).map(|path| match path.why.as_str() {
            "quota" => format!("{} paused (quota)", path.name),
            _ => format!("{} paused", path.name),
        });
        let paused: Vec<String> = paused.collect();
        match paused.len() {
            0..=MOST_NAMED => said.extend(paused),
            many => said.push(format!("{many} paths paused")),
        }
        said.extend((well > 0).then_some(fine));
    }
    (level, said.join(", "))
}

/// The names of a few paths, or the number of many.
fn few(names: &[&str]) -> String {
    if names.len() > MOST_NAMED { format!("{} paths", names.len()) } else { list(names) }
}

/// Names with commas, and "and" before the last.
pub(crate) fn list<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// A rate in the unit that suits it.
pub(crate) fn rate_words(mbps: f64) -> String {
    match mbps {
        m if m >= 999.5 => format!("{:.2} Gbit/s", m / 1e3),
        m if m >= 9.95 => format!("{m:.0} Mbit/s"),
        m if m >= 0.9995 => format!("{m:.1} Mbit/s"),
        m if m >= 0.0005 => format!("{:.0} kbit/s", m * 1e3),
        _ => "0".to_owned(),
    }
}

#[cfg(test)]
#[path = "headline_tests.rs"]
mod tests;
