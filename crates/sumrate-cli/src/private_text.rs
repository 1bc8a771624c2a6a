//! Text that holds a secret, such as a join link: what shows a value for debugging does not show it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text that no log, panic or error may show. Who needs it says so.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PrivateText(String);

impl PrivateText {
    /// The text itself: to use it, or to print it where it was asked for.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for PrivateText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for PrivateText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for PrivateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}
