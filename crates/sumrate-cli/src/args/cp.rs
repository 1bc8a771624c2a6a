//! Flags of `sumrate cp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::protocol::byte_count;
use super::{PathArg, ProtocolArgs, seconds};
use crate::config::ConfigSource;
use crate::private_text::PrivateText;

const EXAMPLE: &str = "\
Examples:
  sumrate cp disk.img @home.link:                      into the directory that the server offers
  sumrate cp -v photos/ notes.txt home:backup/         home is a name of [hosts] in the configuration
  sumrate cp home:backup/photos home:notes.txt .       back
  sumrate cp disk.img home:images/new.img --limit 5M --json

HOST is @FILE with a join link, the link itself, or a name of the table [hosts] of config.toml. The
server must offer a directory (`serve --files DIR`) and the credential allow it (`credential add
--files ro|rw`). Directories are copied whole, with permissions and times of change; links, devices,
pipes and sockets are not. A copy that was interrupted goes on where it stopped when the same command
is given again; what is there with the same size and time of change is not sent. Local names with a
colon: ./a:b.";

/// Arguments of `sumrate cp`.
#[derive(Debug, Args)]
#[command(override_usage = "sumrate cp [OPTIONS] SRC... DST", after_help = EXAMPLE)]
pub struct CpArgs {
    /// What to copy, and where to; one side is HOST:PATH
    #[arg(value_name = "SRC... DST", num_args = 2.., required = true)]
    pub operands: Vec<PrivateText>,
    /// Greatest rate, in bytes per second (suffixes K, M, G, T mean powers of 1024)
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub limit: Option<u64>,
    /// When the connection is lost, try for this long to go on; 0 gives up at once
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    pub retry: Duration,
    /// A path: NAME=IFACE or NAME=LOCAL_IP[@SERVER_IP[:PORT]], with ,backup behind it if it stands by;
    /// without one, every usable interface
    #[arg(long, value_name = "NAME=LOCAL")]
    pub path: Vec<PathArg>,
    /// A path, or without --path an interface, that stands by: it carries bytes only while none of the
    /// others works
    #[arg(long, value_name = "NAME")]
    pub backup: Vec<String>,
    /// Take flags that are not given, and names of hosts, from this TOML file, or from none [default:
    /// config.toml in $XDG_CONFIG_HOME/sumrate or /etc/sumrate]
    #[arg(long, value_name = "FILE|none")]
    pub config: Option<PathBuf>,
    /// What the flags were made of.
    #[arg(skip)]
    pub source: ConfigSource,
    /// Print progress and result as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// How this end sends.
    #[command(flatten)]
    pub protocol: ProtocolArgs,
}
