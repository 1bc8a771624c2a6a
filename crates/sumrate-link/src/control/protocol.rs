//! One JSON object a line, each way.

use serde::{Deserialize, Serialize};

use crate::config::Directions;
use crate::config::parameters::WrittenUpdate;

/// Longest line.
pub const MAX_LINE: usize = 64 * 1024;

/// What a client asks, as `{"command": "set", ...}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Change parameters now.
    Set {
        /// Name of the link.
        link: String,
        /// Where.
        #[serde(default)]
        direction: Directions,
        /// What.
        parameters: Box<WrittenUpdate>,
    },
    /// Begin the schedules that wait for a trigger.
    Trigger,
    /// The counters.
    Stats {
        /// Forget the recent lateness afterwards.
        #[serde(default)]
        reset: bool,
    },
}

/// What the emulator answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// Done.
    Done {
        /// Depends on the command.
        result: serde_json::Value,
    },
    /// Not done.
    Refused {
        /// Why, and what to do.
        error: String,
    },
}

impl Answer {
    /// An answer that carries `value`.
    pub fn result(value: &impl Serialize) -> Answer {
        match serde_json::to_value(value) {
            Ok(result) => Answer::Done { result },
            Err(error) => Answer::Refused { error: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_plain_json() {
        let line = r#"{"command":"set","link":"wifi","direction":"a_to_b","parameters":{"rate_mbps":5,"blackout":true}}"#;
        let Request::Set { link, direction, parameters } = serde_json::from_str(line).unwrap()
        else {
            panic!("another command");
        };
        assert_eq!((link.as_str(), direction), ("wifi", Directions::AToB));
        assert_eq!(parameters.blackout, Some(true));
        assert_eq!(
            serde_json::from_str::<Request>(r#"{"command":"trigger"}"#).unwrap(),
            Request::Trigger
        );
        assert_eq!(
            serde_json::from_str::<Request>(r#"{"command":"stats"}"#).unwrap(),
            Request::Stats { reset: false }
        );
    }

    #[test]
    fn unknown_parameters_are_refused() {
        let line = r#"{"command":"set","link":"wifi","parameters":{"rate":5}}"#;
        assert!(serde_json::from_str::<Request>(line).unwrap_err().to_string().contains("rate"));
    }
}
