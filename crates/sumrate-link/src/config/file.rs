//! The file as written, and its checks.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;

use serde::Deserialize;

use super::parameters::{ParameterError, Parameters, WrittenUpdate, check_together};
use super::{
    Backend, Config, ConfigError, Directions, Endpoint, LinkConfig, MAX_INTERFACE, Schedule,
    ScheduleEntry, ScheduleStart, Sleep,
};
use crate::time::{SECOND, from_millis};

const MTU: std::ops::RangeInclusive<u32> = 68..=65_535;
const MTU_V6: u32 = 1280;
const MAX_NAME: usize = 32;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    schedule_start: ScheduleStart,
    #[serde(default)]
    link: Vec<Link>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    name: String,
    #[serde(default)]
    backend: Backend,
    mtu: Option<u32>,
    #[serde(default)]
    static_neighbours: bool,
    schedule_start: Option<ScheduleStart>,
    schedule_every_s: Option<f64>,
    sleep_after_ms: Option<f64>,
    wake_ms: Option<f64>,
    a: Endpoint,
    b: Endpoint,
    #[serde(default)]
    both: WrittenUpdate,
    #[serde(default)]
    a_to_b: WrittenUpdate,
    #[serde(default)]
    b_to_a: WrittenUpdate,
    #[serde(default)]
    schedule: Vec<toml::Table>,
}

/// Names the file and the link in errors.
struct Place<'a> {
    path: &'a Path,
    directory: &'a Path,
    link: &'a str,
}

impl Place<'_> {
    fn refuse<T>(&self, key: &str, problem: impl Into<String>) -> Result<T, ConfigError> {
        Err(ConfigError::Value {
            path: self.path.to_owned(),
            key: format!("link {:?} {key}", self.link),
            problem: problem.into(),
        })
    }

    fn parameter<T>(
        &self,
        table: &str,
        result: Result<T, ParameterError>,
    ) -> Result<T, ConfigError> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => self.refuse(&format!("{table}.{}", error.key), error.problem),
        }
    }
}

/// Reads and checks a whole file.
pub(super) fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
    let file: File = toml::from_str(text).map_err(|source| ConfigError::Syntax {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let refuse = |key: &str, problem: String| {
        Err(ConfigError::Value { path: path.to_owned(), key: key.to_owned(), problem })
    };
    if file.version != 1 {
        return refuse("version", format!("must be 1, not {}", file.version));
    }
    if file.link.is_empty() {
        return refuse("link", "the file has no [[link]]".into());
    }
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut names = HashSet::new();
    let mut links = Vec::new();
    for link in file.link {
        if !names.insert(link.name.clone()) {
            return refuse("link", format!("two links are named {:?}", link.name));
        }
        let name = link.name.clone();
        let place = Place { path, directory: &directory, link: &name };
        links.push(check_link(&place, link, file.schedule_start)?);
    }
    Ok(Config { seed: file.seed, links, directory })
}

fn check_link(
    place: &Place<'_>,
    link: Link,
    start: ScheduleStart,
) -> Result<LinkConfig, ConfigError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if link.name.is_empty() || link.name.len() > MAX_NAME || !link.name.chars().all(plain) {
        return place.refuse("name", "must be 1 to 32 letters, digits, '-' or '_'");
    }
    let mtu = link.mtu.unwrap_or(1500);
    if !MTU.contains(&mtu) {
        return place.refuse("mtu", format!("must be 68 to 65535, not {mtu}"));
    }
    for (side, end) in [("a", &link.a), ("b", &link.b)] {
        check_endpoint(place, side, end, mtu)?;
    }
    if (&link.a.netns, &link.a.interface) == (&link.b.netns, &link.b.interface) {
        return place
            .refuse("b.interface", "both ends have the same interface in the same namespace");
    }
    let mut parameters = [Parameters::default(), Parameters::default()];
    for (index, (table, written)) in
        [("a_to_b", &link.a_to_b), ("b_to_a", &link.b_to_a)].into_iter().enumerate()
    {
        let merged = link.both.overlaid(written);
        let update = place.parameter(table, merged.check(place.directory))?;
        parameters[index].apply(&update);
        place.parameter(table, check_together(&parameters[index], mtu))?;
    }
    let schedule = check_schedule(place, &link, start)?;
    let sleep = check_sleep(place, &link)?;
    Ok(LinkConfig {
        name: link.name,
        backend: link.backend,
        mtu,
        static_neighbours: link.static_neighbours,
        ends: [link.a, link.b],
        parameters,
        sleep,
        schedule,
    })
}

fn check_endpoint(
    place: &Place<'_>,
    side: &str,
    end: &Endpoint,
    mtu: u32,
) -> Result<(), ConfigError> {
    let interface = &end.interface;
    let plain = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    if interface.is_empty() || interface.len() > MAX_INTERFACE || !interface.chars().all(plain) {
        return place.refuse(
            &format!("{side}.interface"),
            format!("must be 1 to 15 characters without '/' and ':', not {interface:?}"),
        );
    }
    if let Some(netns) = &end.netns
        && (netns.is_empty() || netns.contains('/') || netns.starts_with('-'))
    {
        return place.refuse(
            &format!("{side}.netns"),
            format!("must be a name as in `ip netns list`, not {netns:?}"),
        );
    }
    for address in &end.address {
        let key = format!("{side}.address");
        let Some((ip, prefix)) = address.split_once('/') else {
            return place.refuse(
                &key,
                format!("{address:?} has no prefix length; write for example \"10.1.1.1/24\""),
            );
        };
        let most = match ip.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) if mtu < MTU_V6 => {
                return place.refuse("mtu", format!("IPv6 needs at least {MTU_V6}, not {mtu}"));
            }
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => {
                return place
                    .refuse(&key, format!("{address:?} is not an IP address with prefix length"));
            }
        };
        if !prefix.parse::<u8>().is_ok_and(|prefix| prefix <= most) {
            return place.refuse(&key, format!("prefix length of {address:?} must be 0 to {most}"));
        }
    }
    Ok(())
}

fn check_sleep(place: &Place<'_>, link: &Link) -> Result<Option<Sleep>, ConfigError> {
    let (after, wake) = match (link.sleep_after_ms, link.wake_ms) {
        (None, None) => return Ok(None),
        (Some(after), Some(wake)) => (after, wake),
        _ => return place.refuse("wake_ms", "sleep_after_ms and wake_ms go together"),
    };
    for (key, value) in [("sleep_after_ms", after), ("wake_ms", wake)] {
        if !(0.001..=3.6e6).contains(&value) {
            return place.refuse(key, format!("must be 0.001 to 3600000, not {value}"));
        }
    }
    Ok(Some(Sleep { after: from_millis(after), wake: from_millis(wake) }))
}

fn check_schedule(
    place: &Place<'_>,
    link: &Link,
    start: ScheduleStart,
) -> Result<Schedule, ConfigError> {
    let mut entries = Vec::new();
    for (index, table) in link.schedule.iter().enumerate() {
        entries.push(check_entry(place, &format!("schedule[{index}]"), table.clone())?);
    }
    entries.sort_by_key(|entry| entry.at);
    let last = entries.last().map_or(0, |entry| entry.at);
    let every = match link.schedule_every_s {
        None => None,
        Some(seconds) if seconds.is_finite() && seconds >= 1e-3 => Some(from_millis(seconds * 1e3)),
        Some(seconds) => {
            return place
                .refuse("schedule_every_s", format!("must be at least 0.001, not {seconds}"));
        }
    };
    if every.is_some_and(|every| every <= last) {
        return place.refuse(
            "schedule_every_s",
            format!("must be later than the last entry at {} s", last as f64 / SECOND as f64),
        );
    }
    Ok(Schedule { start: link.schedule_start.unwrap_or(start), every, entries })
}

fn check_entry(
    place: &Place<'_>,
    key: &str,
    mut table: toml::Table,
) -> Result<ScheduleEntry, ConfigError> {
    let at = match table.remove("at_s") {
        Some(toml::Value::Float(at)) if (0.0..1e9).contains(&at) => at,
        Some(toml::Value::Integer(at)) if (0..1_000_000_000).contains(&at) => at as f64,
        other => {
            return place.refuse(
                &format!("{key}.at_s"),
                format!("must be seconds of at least 0, not {other:?}"),
            );
        }
    };
    let directions = match table.remove("direction") {
        None => Directions::default(),
        Some(value) => match value.as_str().unwrap_or_default().parse() {
            Ok(directions) => directions,
            Err(problem) => return place.refuse(&format!("{key}.direction"), problem),
        },
    };
    let written: WrittenUpdate = match table.try_into() {
        Ok(written) => written,
        Err(error) => return place.refuse(key, error.message()),
    };
    if written == WrittenUpdate::default() {
        return place.refuse(key, "changes nothing");
    }
    let update = place.parameter(key, written.check(place.directory))?;
    Ok(ScheduleEntry { at: from_millis(at * 1e3), directions, update })
}
