//! Flags of `sumrate bench`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use fbdt::Delivery;

use super::{PolicyArg, ProtocolArgs, ReachArgs, seconds};
use crate::bench::{MESSAGE_LEAST, MESSAGE_MOST, STREAMS_MAX};
use crate::private_text::PrivateText;
use crate::units::bytes;

const EXAMPLE: &str = "\
Examples:
  sumrate bench @link.txt --time 10 --warmup 2
  sumrate bench @link.txt --path wifi=wlan0 --path wigig=wlan1 --reverse --json
  sumrate bench @link.txt --bytes 1G --streams 4
  sumrate bench @link.txt --messages --message-interval 0.02 --time 60

Goodput counts each byte that the receiving application got once. With --reverse the server sends,
with the server's own flags for research and tuning.";

/// Arguments of `sumrate bench`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct BenchArgs {
    /// The join link that `sumrate serve` prints, in quotes, or @FILE with it (@- is stdin)
    #[arg(value_name = "LINK|@FILE")]
    pub link: PrivateText,
    /// Which networks are used.
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Per-path settings, as in wwan0=backup,metered or wifi=weight=3; also rate=20M and
    /// never=background, but no quota (see `sumrate path set --help`)
    #[arg(long, help_heading = "Paths", value_name = "NAME=SETTING,...")]
    pub policy: Vec<PolicyArg>,
    /// Send for this many seconds, after the warm-up [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "bytes")]
    pub time: Option<Duration>,
    /// Send this many bytes, as in 100M or 64Ki
    #[arg(long, value_name = "BYTES", value_parser = bytes, allow_hyphen_values = true)]
    pub bytes: Option<u64>,
    /// With --bytes: give up when nothing has moved for this long; 0 waits as long as the session
    /// lives
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "30")]
    pub stall_timeout: Duration,
    /// The server sends, this end receives
    #[arg(long)]
    pub reverse: bool,
    /// How many streams at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(STREAMS_MAX)))]
    pub streams: u16,
    /// Seconds that are sent first and not counted
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0", conflicts_with = "bytes")]
    pub warmup: Duration,
    /// Length of the intervals reported
    #[arg(long, value_name = "SECONDS", value_parser = interval, default_value = "0.1")]
    pub interval: Duration,
    /// Start when this many paths are up [default: all that --path names, else 1]
    #[arg(long, value_name = "N")]
    pub wait_paths: Option<u16>,
    /// Connect, and start when standard input ends: several of these start together
    #[arg(long)]
    pub hold: bool,
    /// Compare every received byte with what was sent (about 5 % more CPU time)
    #[arg(long)]
    pub verify: bool,
    /// Measure messages instead: the server sends each one back, their delay and loss are reported
    #[arg(long, conflicts_with_all = ["bytes", "reverse", "streams", "warmup", "verify"])]
    pub messages: bool,
    /// Bytes in each message
    #[arg(long, value_name = "N", default_value_t = 200, requires = "messages", value_parser = clap::value_parser!(u32).range(i64::from(MESSAGE_LEAST)..=i64::from(MESSAGE_MOST)))]
    pub message_bytes: u32,
    /// Time between two messages
    #[arg(long, value_name = "SECONDS", value_parser = interval, default_value = "0.01", requires = "messages")]
    pub message_interval: Duration,
    /// A message that is older than this is lost; 0 waits for every one
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "1", requires = "messages")]
    pub message_lifetime: Duration,
    /// What is done so that a message arrives
    #[arg(long, value_name = "HOW", default_value = "reliable", requires = "messages")]
    pub message_delivery: DeliveryArg,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// How this end sends.
    #[command(flatten)]
    pub protocol: ProtocolArgs,
}

/// `--message-delivery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeliveryArg {
    /// Sent again while that is worth it; copied at once within the class's budget
    Reliable,
    /// Copied to a second path at once, whatever it costs
    Duplicated,
    /// Given to one path, once
    BestEffort,
}

impl From<DeliveryArg> for Delivery {
    fn from(arg: DeliveryArg) -> Self {
        match arg {
            DeliveryArg::Reliable => Self::Reliable,
            DeliveryArg::Duplicated => Self::Duplicated,
            DeliveryArg::BestEffort => Self::BestEffort,
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let value = seconds(text).map_err(|error| error.to_string())?;
    if value < Duration::from_millis(1) {
        return Err(format!("an interval of {text} s is too short; give at least 0.001"));
    }
    Ok(value)
}
