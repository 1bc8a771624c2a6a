//! Flags of `sumrate bench`.

use std::time::Duration;

use clap::Args;

use super::{PathArg, ProtocolArgs, seconds};

const EXAMPLE: &str = "\
Examples:
  sumrate bench @link.txt --time 10 --warmup 2
  sumrate bench @link.txt --path wifi=wlan0 --path wigig=wlan1 --reverse --json
  sumrate bench @link.txt --bytes 1G --streams 4

Goodput is what the receiving application got, once. With --reverse the server sends, and then the
server's own --placement, --window-mode, --redundancy and --cc decide how.";

/// Arguments of `sumrate bench`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct BenchArgs {
    /// The join link that `sumrate serve` printed, or @FILE that holds it (@- is stdin)
    #[arg(value_name = "LINK|@FILE")]
    pub link: String,
    /// A path: NAME=IFACE or NAME=LOCAL_IP[@SERVER_IP[:PORT]]; without one, every usable interface
    #[arg(long, value_name = "NAME=LOCAL")]
    pub path: Vec<PathArg>,
    /// Send for this many seconds, after the warm-up [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "bytes")]
    pub time: Option<Duration>,
    /// Send this many bytes (suffixes K, M, G, T mean powers of 1024)
    #[arg(long, value_name = "N", value_parser = byte_count)]
    pub bytes: Option<u64>,
    /// The server sends, this end receives
    #[arg(long)]
    pub reverse: bool,
    /// How many streams at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
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
    /// Compare every received byte with what was sent (about 5 % more CPU time)
    #[arg(long)]
    pub verify: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// How this end sends.
    #[command(flatten)]
    pub protocol: ProtocolArgs,
}

fn interval(text: &str) -> Result<Duration, String> {
    let value = seconds(text).map_err(|error| error.to_string())?;
    if value < Duration::from_millis(1) {
        return Err(format!("an interval of {text} s is too short; give at least 0.001"));
    }
    Ok(value)
}

fn byte_count(text: &str) -> Result<u64, String> {
    let bad =
        || format!("`{text}` is not a number of bytes; write for example 1000000, 512M or 2G");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts() {
        assert_eq!(byte_count("1000").unwrap(), 1000);
        assert_eq!(byte_count("2G").unwrap(), 2 << 30);
        for bad in ["", "0", "-1", "1.5G", "G", "99999999T", "1€"] {
            assert!(byte_count(bad).is_err(), "{bad}");
        }
    }
}
