//! What can be asked, and what is answered.

use serde::{Deserialize, Serialize};

use crate::policy::PathChange;

/// Name and version of both.
pub const CONTROL_SCHEMA: &str = "sumrate.control.v1";

/// A change that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlRequest {
    /// [`CONTROL_SCHEMA`].
    pub schema: String,
    /// Name of the path.
    pub path: String,
    /// What to change.
    pub set: PathChange,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlAnswer {
    /// [`CONTROL_SCHEMA`].
    pub schema: String,
    /// Why nothing was changed; absent if it was.
    pub error: Option<String>,
}

impl ControlRequest {
    /// A change of one path.
    pub fn new(path: &str, set: PathChange) -> Self {
        Self { schema: CONTROL_SCHEMA.to_owned(), path: path.to_owned(), set }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// Words for whoever sent it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let request: Self =
            serde_json::from_slice(text).map_err(|error| format!("not a request: {error}"))?;
        if request.schema != CONTROL_SCHEMA {
            let other = &request.schema;
            return Err(format!("this process understands {CONTROL_SCHEMA}, not {other}"));
        }
        Ok(request)
    }
}

impl ControlAnswer {
    /// The answer to a request.
    pub fn new(error: Option<String>) -> Self {
        Self { schema: CONTROL_SCHEMA.to_owned(), error }
    }
}
