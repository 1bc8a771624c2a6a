//! What is shown, and how keys change it.

use std::collections::{BTreeMap, VecDeque};

use crate::explain::explain;
use crate::status::StatusReport;

/// Rates kept for each path: two minutes at one a second.
const HISTORY: usize = 120;

/// What a user can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Leave.
    Quit,
    /// Select the path above.
    Up,
    /// Select the path below.
    Down,
    /// Stop or go on changing.
    Pause,
    /// Show why the selected path carries what it carries, or the windows again.
    Explain,
}

/// Rates of one path, newest last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// What this end sent, in Mbit/s.
    pub sent: VecDeque<f64>,
    /// What this end received, in Mbit/s.
    pub received: VecDeque<f64>,
}

/// Everything that is drawn.
#[derive(Debug, Default)]
pub struct TopState {
    /// The newest report.
    pub report: Option<StatusReport>,
    /// Sentences for each path, in order.
    pub explained: Vec<Vec<String>>,
    /// Index of the selected path, over all sessions.
    pub selected: usize,
    /// Nothing changes.
    pub paused: bool,
    /// The explanation is shown.
    pub explaining: bool,
    /// Why there is no newer report.
    pub error: Option<String>,
    history: BTreeMap<(String, String), History>,
}

impl TopState {
    /// Takes a new report.
    pub fn update(&mut self, report: StatusReport) {
        self.error = None;
        if self.paused {
            return;
        }
        let before = self.report.as_ref().unwrap_or(&report);
        let explained = explain(before, &report);
        let first = self.report.is_none();
        let alive: Vec<(String, String)> =
            explained.paths.iter().map(|path| (path.session.clone(), path.name.clone())).collect();
        self.history.retain(|key, _| alive.contains(key));
        for path in explained.paths.iter().filter(|_| !first) {
            let key = (path.session.clone(), path.name.clone());
            let history = self.history.entry(key).or_default();
            for (rates, rate) in
                [(&mut history.sent, path.sent_mbps), (&mut history.received, path.received_mbps)]
            {
                rates.push_back(rate);
                if rates.len() > HISTORY {
                    rates.pop_front();
                }
            }
        }
        self.explained = explained.paths.into_iter().map(|path| path.sentences).collect();
        self.selected = self.selected.min(self.explained.len().saturating_sub(1));
        self.report = Some(report);
    }

    /// Rates of a path.
    pub fn history(&self, session: &str, path: &str) -> Option<&History> {
        self.history.get(&(session.to_owned(), path.to_owned()))
    }

    /// Does what a key is for; says whether to go on.
    pub fn press(&mut self, key: Key) -> bool {
        match key {
            Key::Quit => return false,
            Key::Up => self.selected = self.selected.saturating_sub(1),
            Key::Down => {
                self.selected = (self.selected + 1).min(self.explained.len().saturating_sub(1));
            }
            Key::Pause => self.paused = !self.paused,
            Key::Explain => self.explaining = !self.explaining,
        }
        true
    }
}
