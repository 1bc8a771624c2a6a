//! Flags of `sumrate cp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{ProtocolArgs, ReachArgs, seconds};
use crate::config::ConfigSource;
use crate::private_text::PrivateText;
use crate::units::bytes;

const EXAMPLE: &str = "\
Examples:
  sumrate cp disk.img @home.link:                      into the directory that the server offers
  sumrate cp -v photos/ notes.txt home:backup/         home is a name of [hosts] in the configuration
  sumrate cp home:backup/photos home:notes.txt .       back
  sumrate cp disk.img home:images/new.img --limit 5M --json

HOST is @FILE with a join link, the link itself, or a name of the table [hosts] of config.toml.
The server must offer a directory (`serve --files DIR`), and the credential must allow copies
(`credential add --files ro|rw`). Directories are copied with their content, permissions and
modification times; symbolic links, devices, pipes and sockets are left out. To resume an
interrupted copy, run the same command again. Files of the same size and modification time are
not sent. Write a local name with a colon as ./a:b.

The copy stops if the server sends a name that you did not ask for. For HOST: or HOST:. the
server chooses all names: copy it into a directory of its own.";

/// Arguments of `sumrate cp`.
#[derive(Debug, Args)]
#[command(override_usage = "sumrate cp [OPTIONS] SRC... DST", after_help = EXAMPLE)]
pub struct CpArgs {
    /// What to copy, and where to; one side is HOST:PATH
    #[arg(value_name = "SRC... DST", num_args = 2.., required = true)]
    pub operands: Vec<PrivateText>,
    /// Maximum rate in bytes per second, as in 5M
    #[arg(long, value_name = "BYTES/S", value_parser = bytes, allow_hyphen_values = true)]
    pub limit: Option<u64>,
    /// How long to retry after a lost connection, in seconds; 0 gives up at once
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    pub retry: Duration,
    /// Which networks are used.
    #[command(flatten)]
    pub reach: ReachArgs,
    /// TOML file with defaults of flags and names of hosts, or none [default: config.toml in
    /// $XDG_CONFIG_HOME/sumrate or /etc/sumrate]
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
