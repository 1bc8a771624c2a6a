//! `set`, `trigger` and `stats`.

use std::process::ExitCode;

use super::{ControlArgs, Failure, SetArgs, StatsArgs, print};
use crate::config::parameters::WrittenUpdate;
use crate::control::client::ask;
use crate::control::protocol::Request;

pub(super) fn set(arguments: &SetArgs) -> Result<ExitCode, Failure> {
    let parameters = Box::new(parse(&arguments.parameters).map_err(Failure::usage)?);
    let request =
        Request::Set { link: arguments.link.clone(), direction: arguments.direction, parameters };
    send(&arguments.control, &request, arguments.control.json)
}

pub(super) fn trigger(arguments: &ControlArgs) -> Result<ExitCode, Failure> {
    send(arguments, &Request::Trigger, arguments.json)
}

pub(super) fn stats(arguments: &StatsArgs) -> Result<ExitCode, Failure> {
    let request = Request::Stats { reset: arguments.reset };
    send(&arguments.control, &request, true)
}

fn send(control: &ControlArgs, request: &Request, show: bool) -> Result<ExitCode, Failure> {
    let result = ask(&control.control, request).map_err(Failure::usage)?;
    if show {
        print(&serde_json::to_string_pretty(&result).map_err(Failure::usage)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads `key=value` words: numbers, true and false as such, anything else as text.
fn parse(words: &[String]) -> Result<WrittenUpdate, String> {
    let mut object = serde_json::Map::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            return Err(format!("expected KEY=VALUE, found {word:?}"));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        if object.insert(key.to_owned(), value).is_some() {
            return Err(format!("{key} is given twice"));
        }
    }
    serde_json::from_value(object.into()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parameters::WrittenRate;

    fn words(text: &str) -> Result<WrittenUpdate, String> {
        parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn keys_and_values() {
        let update =
            words("rate_mbps=unlimited loss=0.05 queue_packets=100 blackout=true").unwrap();
        assert_eq!(update.rate_mbps, Some(WrittenRate::Word("unlimited".into())));
        assert_eq!(
            (update.loss, update.queue_packets, update.blackout),
            (Some(0.05), Some(100), Some(true))
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert!(words("rate").unwrap_err().contains("KEY=VALUE"));
        assert!(words("speed=1").unwrap_err().contains("speed"));
        assert!(words("loss=1 loss=0").unwrap_err().contains("twice"));
    }
}
