//! Data that a metered path has used this month.

use serde::{Deserialize, Serialize};

use crate::policy::Month;

/// What a metered path has used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaReport {
    /// Bytes per calendar month, if there is a limit.
    pub limit_bytes: Option<u64>,
    /// Bytes that TCP carried on it this month, both directions together.
    pub used_bytes: u64,
    /// The month, in UTC, as in 2026-11.
    pub month: String,
}

impl QuotaReport {
    /// When a path whose quota is used up is used again.
    pub(crate) fn until(&self) -> String {
        match Month::parse(&self.month) {
            Some(month) => format!("{} (UTC)", month.end()),
            None => format!("the end of {}", self.month),
        }
    }

    /// The first day on which a path whose quota is used up is used again.
    pub(super) fn first_day(&self) -> Option<String> {
        Month::parse(&self.month).map(Month::end)
    }

    /// That it is used up.
    pub(crate) fn reached(&self) -> String {
        format!("quota reached until {}", self.until())
    }
}
