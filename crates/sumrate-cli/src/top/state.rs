//! What is shown, and how keys change it.

use crate::explain::explain;
use crate::history::HistoryReport;
use crate::status::StatusReport;

/// What a user can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Leave.
    Quit,
    /// Select the link above.
    Up,
    /// Select the link below.
    Down,
    /// Stop or go on changing.
    Pause,
    /// Show why the selected link carries what it carries, or the events again.
    Explain,
    /// Show windows, streams and what each link holds, or the events again.
    Internals,
}

/// What the lower part shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// The last events.
    #[default]
    Events,
    /// Why the selected link carries what it carries.
    Why,
    /// Windows, streams and what each link holds.
    Internals,
}

/// Everything that is drawn.
#[derive(Debug, Default)]
pub struct TopState {
    /// The newest report.
    pub report: Option<StatusReport>,
    /// The last five minutes; processes of earlier versions have none.
    pub history: Option<HistoryReport>,
    /// Sentences for each path, in order.
    pub explained: Vec<Vec<String>>,
    /// Index of the selected path, over all sessions.
    pub selected: usize,
    /// Nothing changes.
    pub paused: bool,
    /// What the lower part shows.
    pub part: Part,
    /// Why there is no newer report.
    pub error: Option<String>,
}

impl TopState {
    /// Takes a new report, and the history of the same moment.
    pub fn update(&mut self, report: StatusReport, history: Option<HistoryReport>) {
        self.error = None;
        if self.paused {
            return;
        }
        let before = self.report.as_ref().unwrap_or(&report);
        let explained = explain(before, &report);
        self.explained = explained.paths.into_iter().map(|path| path.sentences).collect();
        self.selected = self.selected.min(self.explained.len().saturating_sub(1));
        self.report = Some(report);
        self.history = history;
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
            Key::Explain => self.turn_to(Part::Why),
            Key::Internals => self.turn_to(Part::Internals),
        }
        true
    }

    /// Shows a part, or the events where it is shown already.
    fn turn_to(&mut self, part: Part) {
        self.part = if self.part == part { Part::Events } else { part };
    }
}
