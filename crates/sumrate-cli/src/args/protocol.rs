//! Flags of the protocol, common to `serve`, `up` and `bench`.

use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use fbdt_proto::{CouplingMode, Limits, SchedulerKind};

use super::RESEARCH;
use crate::coupling::CouplingState;
use crate::units::bytes;

/// How this end sends. Each end's flags govern what that end sends.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = RESEARCH)]
pub struct ProtocolArgs {
    /// Congestion control of TCP: cubic, bbr, auto (by measured loss), another algorithm of this kernel,
    /// or lia, olia or balia, which couple the paths of a session [default: cubic]
    #[arg(long = "cc", value_name = "ALGORITHM")]
    pub congestion_control: Option<CongestionArg>,
    /// Paths that share a bottleneck: together they send no faster than the fastest of them alone would.
    /// Where --cc lia, olia or balia cannot be loaded, they do this for all paths unless this names them
    #[arg(long, value_name = "PATHNAME,PATHNAME", value_delimiter = ',', num_args = 1)]
    pub shared_bottleneck: Vec<String>,
    /// Scheduler: which bytes a path sends next. All but just-in-time and two-ended are published
    /// schedulers for comparison: they fill the TCP window and send no early copies (--redundancy
    /// suspect) [default: just-in-time]
    #[arg(long, value_enum, value_name = "NAME", alias = "placement")]
    pub scheduler: Option<SchedulerArg>,
    /// Windows overlap, or one fixed window at a time as in the thesis
    #[arg(long, value_enum)]
    pub window_mode: Option<WindowModeArg>,
    /// Fixed size of overlapping windows, at least 16Ki [default: from rate and RTT]
    #[arg(long, value_name = "BYTES", value_parser = bytes, allow_hyphen_values = true)]
    pub window: Option<u64>,
    /// Window size with --window-mode thesis, at least 4Ki [default: 64Ki]
    #[arg(long, value_name = "BYTES", value_parser = bytes, allow_hyphen_values = true)]
    pub thesis_window: Option<u64>,
    /// Receive buffer of a stream, at least 8Ki; less than sum of rates x largest RTT costs speed
    /// [default: 128Mi]
    #[arg(long, value_name = "BYTES", value_parser = stream_buffer, allow_hyphen_values = true)]
    pub stream_buffer: Option<u64>,
    /// When unacknowledged bytes of one path are resent on another
    #[arg(long, value_enum)]
    pub redundancy: Option<RedundancyArg>,
    /// Limit paths that are measured to share a bottleneck [default: off]
    #[arg(long = "coupling", value_enum, value_name = "COUPLING")]
    pub coupling_mode: Option<CouplingArg>,
    /// Forward path [default: the most reliable one]
    #[arg(long, value_name = "PATHNAME")]
    pub forward: Option<String>,
    /// How long open connections survive the loss of all paths, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub linger: Option<Duration>,
    /// No encryption and no authentication of data: for a laboratory only, on both ends
    #[arg(long)]
    pub insecure_plaintext: bool,
    /// What was made of --cc before privileges were given up.
    #[arg(skip)]
    pub coupling: CouplingState,
}

/// Which bytes a path sends next (rule F3b).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerArg(pub SchedulerKind);

impl ValueEnum for SchedulerArg {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: [SchedulerArg; SchedulerKind::ALL.len()] = {
            let mut all = [SchedulerArg(SchedulerKind::JustInTime); SchedulerKind::ALL.len()];
            let mut index = 0;
            while index < all.len() {
                all[index] = SchedulerArg(SchedulerKind::ALL[index]);
                index += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.describe()))
    }
}

/// Window mode (rule F5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WindowModeArg {
    /// A path without unsent bytes continues in the next window
    Pipelined,
    /// One window of fixed size at a time
    Thesis,
}

/// Redundancy rule (rule F6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RedundancyArg {
    /// Resend bytes that would arrive earlier over the other path
    ExpectedArrival,
    /// Resend after one RTT of the other path
    RttWait,
    /// Resend unacknowledged bytes of paths that do not answer
    Suspect,
    /// Never
    Off,
}

/// Coupling of paths that share a bottleneck (rule F17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CouplingArg {
    /// Each path as fast as its own TCP
    Off,
    /// All together as fast as one TCP
    Fair,
}

impl From<CouplingArg> for CouplingMode {
    fn from(arg: CouplingArg) -> Self {
        match arg {
            CouplingArg::Off => Self::Off,
            CouplingArg::Fair => Self::Fair,
        }
    }
}

/// Congestion control as given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CongestionArg(pub String);

impl FromStr for CongestionArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_ascii_lowercase()))
    }
}

/// Why a number of seconds was refused.
#[derive(Debug, thiserror::Error)]
pub enum SecondsError {
    /// Not a number.
    #[error("`{0}` is not a number of seconds; write for example 10 or 0.5")]
    NotANumber(String),
    /// Not within 0..=86400.
    #[error("{0} seconds is out of range; give 0 to 86400")]
    OutOfRange(f64),
}

/// Parses seconds with a fraction, 0 to 86400.
pub fn seconds(text: &str) -> Result<Duration, SecondsError> {
    let value: f64 = text.trim().parse().map_err(|_| SecondsError::NotANumber(text.to_owned()))?;
    if !(0.0..=86_400.0).contains(&value) {
        return Err(SecondsError::OutOfRange(value));
    }
    Ok(Duration::from_secs_f64(value))
}

/// Parses the size of a stream's buffer: two of the smallest frames at least.
fn stream_buffer(text: &str) -> Result<u64, String> {
    let least = 2 * u64::from(Limits::MIN_FRAME);
    match bytes(text)? {
        size if size < least => Err(format!("{size} bytes are too few; give {least} or more")),
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_buffer_holds_two_frames() {
        assert_eq!(stream_buffer("8Ki").unwrap(), 8192);
        assert!(stream_buffer("8191").unwrap_err().contains("give 8192 or more"));
    }

    #[test]
    fn seconds_accepts_fractions_and_refuses_the_rest() {
        assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
        for bad in ["", "x", "-1", "NaN", "inf", "90000"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
