//! Flags of `sumrate reload`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLE: &str = "\
Examples:
  sumrate reload
  sumrate reload --socket /run/sumrate/serve.sock --json
  kill -HUP PID                            the same, but the log says how it went

Streams go on. `up` opens a session as the new configuration says, beside the old one, which
carries its streams to their end, and takes --drain; `serve` takes --allow, --drain and --files.
What else has changed waits for a restart, and is named. A wrong file changes nothing.";

/// Arguments of `sumrate reload`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct ReloadArgs {
    /// Status socket of the process [default: the only one in $XDG_RUNTIME_DIR/sumrate]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}
