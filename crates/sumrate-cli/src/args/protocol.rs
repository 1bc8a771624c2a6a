//! Flags of the protocol, common to `serve`, `up` and `bench`.

use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use fbdt_proto::{CouplingMode, Limits, SchedulerKind};

use crate::coupling::CouplingState;

/// How this end sends. Each end's flags govern what that end sends.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Protocol")]
pub struct ProtocolArgs {
    /// Congestion control of every TCP connection: cubic, bbr, auto (by measured loss), another
    /// algorithm of this kernel, or lia, olia or balia, which couple the paths of a session
    /// [default: cubic]
    #[arg(long = "cc", value_name = "ALGORITHM")]
    pub congestion_control: Option<CongestionArg>,
    /// Paths that share a bottleneck: of their TCP windows only so much is used that together they
    /// take what the fastest would. Without it, --cc lia, olia and balia do this for all paths where
    /// they cannot be loaded
    #[arg(long, value_name = "PATHNAME,PATHNAME", value_delimiter = ',', num_args = 1)]
    pub shared_bottleneck: Vec<String>,
    /// Which bytes a path sends next. Others than just-in-time and two-ended are published schedulers
    /// for comparison: they fill the TCP window and make no early copies (--redundancy suspect)
    /// [default: just-in-time]
    #[arg(long, value_enum, value_name = "NAME", alias = "placement")]
    pub scheduler: Option<SchedulerArg>,
    /// Windows overlap, or one fixed window at a time as in the thesis
    #[arg(long, value_enum)]
    pub window_mode: Option<WindowModeArg>,
    /// Pin the size of overlapping windows instead of taking it from rate and RTT (at least 16K;
    /// suffixes K, M, G, T mean powers of 1024)
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub window: Option<u64>,
    /// Size of the one window of --window-mode thesis (at least 4K; suffixes as of --window) [default:
    /// 64K]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub thesis_window: Option<u64>,
    /// The most that this end holds of what it receives of a stream, and lets the other end have on the
    /// way: less memory for each, and less than sum of rates x largest RTT costs speed (at least 8K;
    /// suffixes as of --window) [default: 128M]
    #[arg(long, value_name = "BYTES", value_parser = stream_buffer)]
    pub stream_buffer: Option<u64>,
    /// When bytes that one path has not had acknowledged are sent on another
    #[arg(long, value_enum)]
    pub redundancy: Option<RedundancyArg>,
    /// What paths that are found to share a bottleneck take of it together [default: off]
    #[arg(long = "coupling", value_enum, value_name = "COUPLING")]
    pub coupling_mode: Option<CouplingArg>,
    /// Pin the forward path instead of taking the most reliable one
    #[arg(long, value_name = "PATHNAME")]
    pub forward: Option<String>,
    /// How long a session outlives the loss of all its paths, in seconds
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
    /// A path that finds nothing unsent goes on into the next window
    Pipelined,
    /// One window of fixed size at a time
    Thesis,
}

/// Redundancy rule (rule F6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RedundancyArg {
    /// Resend only what would arrive earlier by the other path
    ExpectedArrival,
    /// Resend after one RTT of the other side
    RttWait,
    /// Resend what paths owe that have fallen silent
    Suspect,
    /// Never
    Off,
}

/// Coupling of paths that share a bottleneck (rule F17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CouplingArg {
    /// Each path what its own TCP takes
    Off,
    /// All together as much as one TCP
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

/// Parses a number of bytes; the suffixes K, M, G and T are powers of 1024.
pub(super) fn byte_count(text: &str) -> Result<u64, String> {
    let bad = || {
        format!(
            "`{text}` is not a number of bytes; write a whole one, for example 1000000, 512M or 2G \
             (K, M, G and T mean powers of 1024)"
        )
    };
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        Some(b'T' | b't') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| bad())?;
    match number.checked_mul(1 << shift) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(bad()),
    }
}

/// Parses the size of a stream's buffer: two of the smallest frames at least.
fn stream_buffer(text: &str) -> Result<u64, String> {
    let least = 2 * u64::from(Limits::MIN_FRAME);
    match byte_count(text)? {
        bytes if bytes < least => Err(format!("{bytes} bytes are too few; give {least} or more")),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_buffer_holds_two_frames() {
        assert_eq!(stream_buffer("8K").unwrap(), 8192);
        assert!(stream_buffer("8191").unwrap_err().contains("give 8192 or more"));
    }

    #[test]
    fn byte_counts() {
        assert_eq!(byte_count("1000").unwrap(), 1000);
        assert_eq!(byte_count("2G").unwrap(), 2 << 30);
        for bad in ["", "0", "-1", "1.5G", "G", "99999999T", "1€"] {
            assert!(byte_count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn seconds_accepts_fractions_and_refuses_the_rest() {
        assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
        for bad in ["", "x", "-1", "NaN", "inf", "90000"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
