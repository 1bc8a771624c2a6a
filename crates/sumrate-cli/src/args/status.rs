//! Flags of `sumrate status`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLE: &str = "\
Examples:
  sumrate status
  sumrate status --watch
  sumrate status --socket /run/user/1000/sumrate/up-4242.sock --json";

/// Arguments of `sumrate status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct StatusArgs {
    /// Socket of the process to ask [default: the only one in $XDG_RUNTIME_DIR/sumrate]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Ask again every second until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}
