//! Flags of `sumrate status`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLE: &str = "\
Examples:
  sumrate status
  sumrate status --watch
  sumrate status --all
  sumrate status --socket /run/user/1000/sumrate/up-4242.sock --json";

/// Arguments of `sumrate status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct StatusArgs {
    /// Socket of the process to ask [default: all processes of this user]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Also show the internals: bytes in flight, classes, streams, schedulers
    #[arg(long)]
    pub all: bool,
    /// Ask again every second until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}
