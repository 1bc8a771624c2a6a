//! Flags of `sumrate top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

const EXAMPLE: &str = "\
Examples:
  sumrate top
  sumrate top --interval 0.2
  sumrate top --json | head -1

Keys: q leaves, arrows choose a path, e explains it, p pauses.";

/// Arguments of `sumrate top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct TopArgs {
    /// Status socket of the process to ask [default: the only one in $XDG_RUNTIME_DIR/sumrate]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Time between two looks, in seconds, at least 0.1
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = super::seconds)]
    pub interval: Duration,
    /// Print each look as JSON, one object a line, as `status --watch --json` does
    #[arg(long)]
    pub json: bool,
}
