//! Flags of `sumrate top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

const EXAMPLE: &str = "\
Examples:
  sumrate top
  sumrate top --interval 0.2
  sumrate top --json | head -1

Keys: q quits, arrows select a link, e explains it, i shows internals, p freezes the display.";

/// Arguments of `sumrate top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct TopArgs {
    /// Status socket of the process to ask [default: the only client's, else the only process's]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Refresh interval, in seconds, at least 0.1
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = super::seconds)]
    pub interval: Duration,
    /// Print a JSON object each interval, as `status --watch --json` does
    #[arg(long)]
    pub json: bool,
}
