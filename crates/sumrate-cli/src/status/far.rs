//! What the other end says of a session: why each path brings what it brings, and of which class a
//! stream is that it sends, is decided there.

use std::collections::BTreeMap;

use fbdt_proto::plain_text::is_hidden;
use fbdt_proto::{Class, PathStats, StreamId, WhyIdle};
use serde::{Deserialize, Serialize};

use super::rate;
use super::{PathReport, Seen};

/// All paths of a session, by name, as the end that tells it sends on them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FarReport {
    /// The paths.
    pub paths: BTreeMap<String, FarPathReport>,
    /// The traffic classes of its open streams, of the newest where there are many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<u32, String>,
    /// The address families in which the server reaches the Internet, `ipv4` and `ipv6`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<String>,
}

/// Of so many streams the classes are reported, and at most accepted.
pub const STREAMS_REPORTED: usize = 100;
/// The address families that there are.
pub(crate) const FAMILIES: [&str; 2] = ["ipv4", "ipv6"];
/// Most paths that are accepted: as many as a session has.
const PATHS_MAX: usize = 16;

/// How the other end sends on a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FarPathReport {
    /// Why it sends nothing on it now, in one word, or `sending`.
    pub why: String,
    /// `why` in words, written by the end that receives the report.
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
        self.paths.retain(|name, _| !name.contains(is_hidden));
        let said = std::mem::take(&mut self.families);
        let families = FAMILIES.iter().filter(|family| said.iter().any(|said| said == **family));
        self.families = families.map(|family| (*family).to_owned()).collect();
        while self.classes.len() > STREAMS_REPORTED {
            self.classes.pop_first();
        }
        while self.paths.len() > PATHS_MAX {
            self.paths.pop_last();
        }
        self
    }
}

impl FarPathReport {
    /// The reason for people.
    pub(crate) fn words(&self) -> &'static str {
        reason(&self.why).map_or("for a reason that this version does not know", WhyIdle::describe)
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

impl FarReport {
    /// These paths, and the classes of these streams.
    pub fn new(paths: Vec<PathStats>, classes: Vec<(StreamId, Class)>) -> Self {
        let paths = paths.into_iter().map(|path| {
            let report = PathReport::new(path, Seen::default(), Vec::new());
            (report.name.clone(), FarPathReport::from(&report))
        });
        let classes = classes.into_iter().map(|(id, class)| (id.0, class.name().to_owned()));
        Self { paths: paths.collect(), classes: classes.collect(), families: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use fbdt_proto::{Config, Instant, Limits, PathId, Role, Session};

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
        assert_eq!(lte.words(), "for a reason that this version does not know");
        assert_eq!(report.classes, BTreeMap::from([(5, "background".to_owned())]));
    }

    #[test]
    fn a_report_of_too_much_is_cut() {
        let paths = (0..1000).map(|path| (format!("path{path}"), FarPathReport::default()));
        let classes = (0..5000).map(|stream| (stream, "background".to_owned()));
        let mut said = FarReport {
            paths: paths.collect(),
            classes: classes.collect(),
            families: ["ipv6", "\u{1b}[2J", "ipv6"].map(str::to_owned).to_vec(),
        };
        for hidden in ["\u{1b}[2J", "a\u{202e}ifiw", "a\u{200b}"] {
            said.paths.insert(hidden.to_owned(), FarPathReport::default());
        }
        let report = said.plain();
        assert_eq!((report.paths.len(), report.classes.len()), (PATHS_MAX, STREAMS_REPORTED));
        let is_shown = |name: &String| name.starts_with("path") && !name.contains(is_hidden);
        assert!(report.paths.keys().all(is_shown));
        assert!(report.classes.contains_key(&4999), "the newest stay");
        assert_eq!(report.families, ["ipv6"]);
    }

    #[test]
    fn the_newest_streams_are_reported() {
        let (now, limits) = (Instant::from_nanos(1), Limits::default());
        let mut session = Session::new(now, Role::Client, Config::default(), limits).unwrap();
        session.subflow_up(now, PathId(0), "wifi");
        let classes = [Class::Streaming, Class::Background, Class::Interactive];
        let ids = classes.map(|class| session.open_stream(now, class).unwrap());
        let report = FarReport::new(session.path_stats(), session.newest_classes(2));
        let newest = ids.iter().zip(classes).skip(1);
        let newest = newest.map(|(id, class)| (id.0, class.name().to_owned()));
        assert_eq!(report.classes, newest.collect());
        assert_eq!(report.paths.keys().collect::<Vec<_>>(), ["wifi"]);
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
