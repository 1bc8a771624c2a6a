//! What the other end says of a session: why each path brings what it brings, and of which class a
//! stream is that it sends, is decided there.

use std::collections::BTreeMap;

use fbdt_proto::Class;
use fbdt_proto::stats::WhyIdle;
use serde::{Deserialize, Serialize};

use super::rate;
use super::{PathReport, SessionReport};

/// All paths of a session, by name, as the end that tells it sends on them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FarReport {
    /// The paths.
    pub paths: BTreeMap<String, FarPathReport>,
    /// The traffic classes of its open streams, of the newest where there are many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<u32, String>,
}

/// Of so many streams the classes are told.
const STREAMS_TOLD: usize = 100;

/// How the other end sends on a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FarPathReport {
    /// Why it sends nothing on it now, in one word, or `sending`.
    pub why: String,
    /// The same in words, by the end that is told it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why_idle: String,
    /// For how long it was so, in seconds by reason, up to the last change.
    #[serde(default)]
    pub waited_s: BTreeMap<String, f64>,
    /// Estimated rate of the link towards this end; 0 until it was measured.
    #[serde(default, with = "rate")]
    pub rate_mbps: Option<f64>,
    /// Bytes that the path holds there.
    pub commit_bytes: u64,
    /// Most bytes that it may hold.
    pub commit_limit_bytes: u64,
    /// Share of TCP's bytes that TCP sent again.
    pub retransmitted_share: f64,
}

/// What stands for a reason that this version does not know.
const UNKNOWN: &str = "unknown";

/// The reason of this name.
fn reason(name: &str) -> Option<WhyIdle> {
    WhyIdle::ALL.into_iter().find(|why| why.name() == name)
}

impl FarReport {
    /// As it may be shown: the other end's own words reach no terminal, nor do numbers that cannot be.
    #[must_use]
    pub fn plain(mut self) -> Self {
        let amount = |value: f64| if value.is_finite() { value.max(0.0) } else { 0.0 };
        for path in self.paths.values_mut() {
            if reason(&path.why).is_none() {
                UNKNOWN.clone_into(&mut path.why);
            }
            path.words().clone_into(&mut path.why_idle);
            path.waited_s.retain(|why, _| reason(why).is_some());
            path.waited_s.values_mut().for_each(|time| *time = amount(*time));
            path.rate_mbps = path.rate_mbps.map(amount);
            path.retransmitted_share = amount(path.retransmitted_share).min(1.0);
        }
        self.classes.retain(|_, class| Class::from_name(class).is_some());
        self
    }
}

impl FarPathReport {
    /// The reason for people.
    pub(crate) fn words(&self) -> &'static str {
        reason(&self.why)
            .map_or("it has a reason that this version does not know", WhyIdle::describe)
    }
}

impl From<&PathReport> for FarPathReport {
    fn from(path: &PathReport) -> Self {
        // To the millisecond: digits are bytes on somebody's path.
        let thousandths = |value: &f64| (value * 1e3).round() / 1e3;
        Self {
            why: path.why.clone(),
            why_idle: String::new(),
            waited_s: path.waited_s.iter().map(|(why, s)| (why.clone(), thousandths(s))).collect(),
            rate_mbps: path.rate_mbps.as_ref().map(thousandths),
            commit_bytes: path.commit_bytes,
            commit_limit_bytes: path.commit_limit_bytes,
            retransmitted_share: thousandths(&path.retransmitted_share),
        }
    }
}

impl From<&SessionReport> for FarReport {
    fn from(session: &SessionReport) -> Self {
        let paths = session.paths.iter().map(|path| (path.name.clone(), path.into()));
        let mut classes: BTreeMap<u32, String> =
            session.streams.iter().map(|stream| (stream.id, stream.class.clone())).collect();
        while classes.len() > STREAMS_TOLD {
            classes.pop_first();
        }
        Self { paths: paths.collect(), classes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_other_end_says_of_paths_is_shown_in_this_ends_words() {
        let said = r#"{"paths": {"wifi": {"why": "rate-cap", "waited_s": {"rate-cap": 2.5},
            "rate_mbps": 80.0, "commit_bytes": 1, "commit_limit_bytes": 2,
            "retransmitted_share": 0.01, "of_a_later_version": 1},
            "lte": {"why": "\u001b[2Jgone", "why_idle": "\u001b[2J",
            "waited_s": {"\u001b[2J": 1.0, "standby": -3.0},
            "rate_mbps": -1.0, "commit_bytes": 0, "commit_limit_bytes": 0,
            "retransmitted_share": 7.0}}, "classes": {"5": "background", "7": "\u001b[2J"}}"#;
        let report = serde_json::from_str::<FarReport>(said).unwrap().plain();
        let wifi = &report.paths["wifi"];
        assert_eq!(wifi.words(), WhyIdle::RateCap.describe());
        assert_eq!(wifi.why_idle, wifi.words());
        assert_eq!((wifi.rate_mbps, wifi.waited_s["rate-cap"]), (Some(80.0), 2.5));
        let lte = &report.paths["lte"];
        assert_eq!((lte.why.as_str(), lte.retransmitted_share), (UNKNOWN, 1.0));
        assert_eq!(lte.waited_s, BTreeMap::from([("standby".to_owned(), 0.0)]));
        assert_eq!(lte.words(), lte.why_idle);
        assert_eq!(lte.words(), "it has a reason that this version does not know");
        assert_eq!(report.classes, BTreeMap::from([(5, "background".to_owned())]));
    }

    #[test]
    fn what_is_told_is_short() {
        let path = PathReport {
            why: "sending".to_owned(),
            waited_s: BTreeMap::from([("sending".to_owned(), 1.234_567_891)]),
            ..PathReport::default()
        };
        let told = serde_json::to_string(&FarPathReport::from(&path)).unwrap();
        assert!(told.contains("1.235") && told.len() < 160, "{told}");
    }
}
