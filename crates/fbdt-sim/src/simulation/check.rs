//! The invariants, after every event.

use std::time::Duration;

use fbdt_proto::{CloseReason, StreamId, StreamStats};

use super::{CLIENT, SERVER, Simulation};
use crate::violation::Violation;

/// A session with a path that works delivers something within this time.
const SILENCE: Duration = Duration::from_secs(10);
/// Held beside the window: the control stream, and each piece's own cost.
const BESIDE_WINDOW: u64 = 1 << 20;
/// A copy may be as long as a frame when the budget is just not used up.
const FRAME: u64 = 64 << 10;

impl Simulation {
    pub(super) fn check(&mut self) -> Result<(), Violation> {
        for end in [CLIENT, SERVER] {
            self.check_close(end)?;
            let config = self.ends[end].config();
            let allowed = config.limits.session_window + BESIDE_WINDOW;
            let held = self.ends[end].receive_memory();
            if held > allowed {
                return Err(Violation::Memory { held, allowed });
            }
            let (noted, counted) = (self.ends[end].memory(), self.ends[end].counted_memory());
            if noted != counted {
                return Err(Violation::Account { noted, counted });
            }
            self.check_classes(end)?;
        }
        self.check_progress()
    }

    fn check_classes(&self, end: usize) -> Result<(), Violation> {
        let budgets = self.ends[end].config().class_budgets;
        for (class, budget) in self.ends[end].class_stats().iter().zip(budgets) {
            let allowed = (class.new_bytes as f64 * budget.share) as u64 + budget.allowance + FRAME;
            if class.chosen_bytes > allowed {
                let (copied, class) = (class.chosen_bytes, class.class.name());
                return Err(Violation::ClassBudget { class, copied, allowed });
            }
        }
        Ok(())
    }

    /// A session ends only if somebody ended it, or all paths were down for
    /// the whole linger time.
    fn check_close(&mut self, end: usize) -> Result<(), Violation> {
        let Some(reason) = self.ends[end].close_reason() else { return Ok(()) };
        let lingered = |time: Duration| {
            self.down_since[end]
                .is_some_and(|since| self.local(end).saturating_since(since) >= time)
        };
        match reason {
            CloseReason::Local { .. } | CloseReason::Peer { .. } if self.over_expected => Ok(()),
            CloseReason::Linger(time) if lingered(*time) && self.lingering_allowed => {
                self.over_expected = true;
                Ok(())
            }
            _ => Err(Violation::Refused(reason.to_string())),
        }
    }

    /// With a path that works and a reader that reads, bytes move.
    fn check_progress(&mut self) -> Result<(), Violation> {
        let delivered = self.applications.iter().map(|a| a.delivered).sum();
        let idle = delivered != self.last_progress.1 || !self.should_progress() || self.is_done();
        if idle {
            self.last_progress = (self.now, delivered);
        }
        let silent = self.now.saturating_since(self.last_progress.0);
        if silent > SILENCE {
            return Err(Violation::Stuck { silent_ms: silent.as_millis() as u64 });
        }
        Ok(())
    }

    fn should_progress(&self) -> bool {
        let works = |path: &super::SimulatedPath| {
            let links = path.links.iter().all(|l| {
                let p = &l.parameters;
                !p.blackout && !p.held && p.loss < 0.2 && !l.is_stalled(self.now)
            });
            links && path.connections.iter().any(super::Connection::is_up)
        };
        self.applications.iter().all(|a| a.reading)
            && self.asleep.iter().all(Option::is_none)
            && !self.ends.iter().any(fbdt_proto::Session::is_closed)
            && self.paths.iter().any(works)
            && self.all_may_flow(works)
    }

    /// Whether everything that waits may use a path that works and carries bytes: a stream that is
    /// kept off all of those waits, however long, and may hold what others wait for (F15).
    fn all_may_flow(&self, works: impl Fn(&super::SimulatedPath) -> bool) -> bool {
        let policy = |path: usize| self.policies.get(path).copied().unwrap_or_default();
        if self.policies.iter().all(|policy| policy.never.is_empty()) {
            return true;
        }
        let here = || self.paths.iter().enumerate().filter(|(_, path)| !path.removed);
        let serving = here().map(|(index, _)| policy(index).priority).min();
        let carrying = |index: usize| Some(policy(index).priority) == serving;
        let open: Vec<_> = here()
            .filter(|(index, path)| carrying(*index) && works(path))
            .map(|(index, _)| policy(index).never)
            .collect();
        let waits = |stream: &StreamStats| {
            stream.acknowledged < stream.written
                && open.iter().all(|never| never.contains(stream.class))
        };
        !self.ends.iter().any(|end| end.stats().streams.iter().any(waits))
    }

    /// Streams that an end still holds although everybody has done with them.
    ///
    /// # Errors
    /// [`Violation::Leak`] if there are any.
    pub fn check_leaks(&self) -> Result<(), Violation> {
        for (end, name) in [(CLIENT, "client"), (SERVER, "server")] {
            let streams = self.ends[end].stats().streams.len();
            if streams > 0 {
                return Err(Violation::Leak { end: name, streams });
            }
        }
        Ok(())
    }

    /// What has not arrived yet, in words.
    #[must_use]
    pub fn missing(&self) -> String {
        let mut words = Vec::new();
        for (from, to, name) in [(CLIENT, SERVER, "client"), (SERVER, CLIENT, "server")] {
            let late = self.applications[from].not_reached(&self.applications[to]);
            words.extend(late.iter().map(|StreamId(id)| format!("{name}'s part of stream {id}")));
        }
        let closed = self.ends.iter().filter(|session| session.is_closed()).count();
        if closed == 1 {
            words.push("the close at one end".to_owned());
        }
        words.join(", ")
    }
}
