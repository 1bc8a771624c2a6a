//! Paths that carry nothing: paused, over their quota, or never connected.

use fbdt_proto::{Direction, Health, Priority, WhyIdle};

use super::{PathReport, QuotaReport};

impl PathReport {
    /// The path is not used because its quota is used up.
    pub(crate) fn idle_for_quota(&mut self, quota: &QuotaReport) {
        "quota".clone_into(&mut self.why);
        let (used, limit) = (quota.used_bytes, quota.limit_bytes.unwrap_or(0));
        let (used, limit) = (super::bytes(used), super::bytes(limit));
        self.why_idle = format!("{}: {used} of {limit}", quota.reached());
        self.last_error = None;
    }

    /// The path is not used because the user has paused it.
    pub(crate) fn idle_for_pause(&mut self) {
        "paused".clone_into(&mut self.why);
        "paused by the user".clone_into(&mut self.why_idle);
        self.last_error = None;
    }

    /// A path of a client that has no session.
    pub(crate) fn idle(name: &str, priority: Priority) -> Self {
        let idle = Self::never_up(name.to_owned(), Direction::JustInTime.name());
        Self { priority: priority.name().to_owned(), ..idle }
    }

    /// A path that has had no connection yet.
    pub(super) fn never_up(name: String, direction: &str) -> Self {
        Self {
            name,
            health: Health::Dead.name().to_owned(),
            priority: Priority::PRIMARY.name().to_owned(),
            direction: direction.to_owned(),
            why_idle: WhyIdle::NoSubflow.describe().to_owned(),
            why: WhyIdle::NoSubflow.name().to_owned(),
            ..Self::default()
        }
    }
}
