//! Destinations that were refused: each is logged once in ten minutes, and all are counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::output::counted;

/// Destinations that are remembered at a time.
const DESTINATIONS_MAX: usize = 256;
/// Destinations in a report.
const REPORTED_MAX: usize = 10;
/// A refusal that goes on is logged again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(600);
/// Lines in one minute; a scan of a network fills no log.
const LINES_MAX: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// Longest explanation that is kept.
const WORDS_MAX: usize = 400;

/// What was refused since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalsReport {
    /// Refused connections and datagrams by reason.
    pub reasons: BTreeMap<String, u64>,
    /// The latest destinations, newest first.
    pub latest: Vec<RefusedReport>,
}

/// A destination that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedReport {
    /// Host and port, as they were asked for.
    pub destination: String,
    /// The reason in one word.
    pub reason: String,
    /// What happened and what to do.
    pub words: String,
    /// How often.
    pub count: u64,
    /// Whole seconds since the last time.
    pub ago_s: u64,
}

/// Remembers refusals of one process, within bounds.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    reasons: BTreeMap<&'static str, u64>,
    destinations: HashMap<(String, &'static str), Refused>,
    /// Begin of the present minute, and lines in it.
    minute: Option<(Instant, u32)>,
}

#[derive(Debug)]
struct Refused {
    words: String,
    count: u64,
    last: Instant,
    logged: Option<Instant>,
    /// Count when it was logged last.
    logged_count: u64,
}

impl Refusals {
    /// Counts a refusal, and logs it unless that was done lately.
    pub fn note(&self, destination: &str, reason: &'static str, words: &str) {
        if let Some(line) = self.line(Instant::now(), destination, reason, words) {
            tracing::warn!("{line}");
        }
    }

    /// Counts a refusal without naming its destination.
    pub fn count(&self, reason: &'static str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept.reasons.entry(reason).or_default() += 1;
    }

    fn line(
        &self,
        now: Instant,
        destination: &str,
        reason: &'static str,
        words: &str,
    ) -> Option<String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept.reasons.entry(reason).or_default() += 1;
        let key = (destination.to_owned(), reason);
        if !kept.destinations.contains_key(&key) {
            kept.make_room();
        }
        let entry = kept.destinations.entry(key.clone()).or_insert_with(|| Refused::new(now));
        entry.words = words.chars().take(WORDS_MAX).collect();
        entry.count += 1;
        entry.last = now;
        if entry.logged.is_some_and(|at| now.saturating_duration_since(at) < AGAIN_AFTER) {
            return None;
        }
        let place = kept.place(now)?;
        let entry = kept.destinations.get_mut(&key)?;
        let more = entry.count - entry.logged_count - 1;
        let is_again = entry.logged.replace(now).is_some();
        entry.logged_count = entry.count;
        let mut line = entry.words.clone();
        if is_again && more > 0 {
            let times = counted(more, "refusal", "refusals");
            line += &format!(" ({times} more since it was logged last)");
        }
        if place == LINES_MAX {
            line += "; further refusals of this minute are only counted: `sumrate status`";
        }
        Some(line)
    }

    /// What was refused; nothing before the first refusal.
    pub fn report(&self) -> Option<RefusalsReport> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.reasons.is_empty() {
            return None;
        }
        let mut latest: Vec<_> = kept.destinations.iter().collect();
        latest.sort_by_key(|(key, entry)| (std::cmp::Reverse(entry.last), key.0.clone()));
        let report = |((destination, reason), entry): (&(String, &str), &Refused)| RefusedReport {
            destination: destination.clone(),
            reason: (*reason).to_owned(),
            words: entry.words.clone(),
            count: entry.count,
            ago_s: entry.last.elapsed().as_secs(),
        };
        Some(RefusalsReport {
            reasons: kept.reasons.iter().map(|(why, n)| ((*why).to_owned(), *n)).collect(),
            latest: latest.into_iter().take(REPORTED_MAX).map(report).collect(),
        })
    }
}

impl Kept {
    /// Forgets the destination that was refused longest ago, if there are as many as may be.
    fn make_room(&mut self) {
        if self.destinations.len() < DESTINATIONS_MAX {
            return;
        }
        let oldest = self.destinations.iter().min_by_key(|(_, entry)| entry.last);
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
            self.destinations.remove(&oldest);
        }
    }

    /// Takes one of this minute's lines and returns its number.
    fn place(&mut self, now: Instant) -> Option<u32> {
        let is_now = |at: Instant| now.saturating_duration_since(at) < MINUTE;
        let (begin, lines) = self.minute.filter(|(at, _)| is_now(*at)).unwrap_or((now, 0));
        self.minute = Some((begin, lines.saturating_add(1)));
        (lines < LINES_MAX).then_some(lines + 1)
    }
}

impl Refused {
    fn new(now: Instant) -> Self {
        Self { words: String::new(), count: 0, last: now, logged: None, logged_count: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_logged_once_and_again_with_its_number() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let note = |after: u64, reason| {
            refusals.line(start + Duration::from_secs(after), "10.0.0.1:80", reason, "no")
        };
        assert_eq!(note(0, "private").as_deref(), Some("no"));
        assert_eq!((note(1, "private"), note(599, "private")), (None, None));
        assert_eq!(note(2, "port").as_deref(), Some("no"), "another reason is another line");
        let again = note(601, "private").unwrap();
        assert_eq!(again, "no (2 refusals more since it was logged last)");
        let report = refusals.report().unwrap();
        assert_eq!(report.reasons, [("port".to_owned(), 1), ("private".to_owned(), 4)].into());
        assert_eq!((report.latest[0].reason.as_str(), report.latest[0].count), ("private", 4));
    }

    #[test]
    fn a_scan_fills_neither_the_log_nor_the_memory() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let lines: Vec<String> = (0..5000)
            .filter_map(|n| refusals.line(start, &format!("10.0.0.1:{n}"), "private", "no"))
            .collect();
        assert_eq!(lines.len(), LINES_MAX as usize);
        assert!(lines.last().unwrap().contains("only counted"), "{lines:?}");
        let kept = refusals.0.lock().unwrap().destinations.len();
        assert_eq!(kept, DESTINATIONS_MAX);
        let report = refusals.report().unwrap();
        assert_eq!((report.reasons["private"], report.latest.len()), (5000, REPORTED_MAX));
        let later = start + MINUTE;
        assert!(refusals.line(later, "10.0.0.2:1", "private", "no").is_some());
    }
}
