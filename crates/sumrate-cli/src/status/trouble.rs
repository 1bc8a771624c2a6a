//! What went wrong with a path.

use serde::{Deserialize, Serialize};

/// Why a path is not active.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathErrorReport {
    /// Its kind in one word, or empty in earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trouble: String,
    /// What the last attempt failed with, or what ended the last connection.
    pub reason: String,
    /// Seconds since then.
    pub ago_s: f64,
    /// Its interface or address is gone: it is dialled again when that is back, and not before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interface_gone: bool,
}

impl PathErrorReport {
    /// The same for people.
    pub(crate) fn words(&self) -> String {
        format!("last error, {} ago: {}", super::lasting(self.ago_s), self.reason)
    }
}
