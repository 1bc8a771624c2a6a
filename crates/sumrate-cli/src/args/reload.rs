//! Flags of `sumrate reload`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLE: &str = "\
Examples:
  sumrate reload
  sumrate reload --socket /run/sumrate/serve.sock --json
  kill -HUP PID                            the same; the log has the outcome

No connection is dropped. `up` applies the new settings of paths and protocol, and --drain. It
opens a new session; connections from before stay in the old one. `serve` applies --allow,
--allow-port, --deny-port, --files and --drain. The log names every other changed setting: it
needs a restart. A file with a mistake changes nothing.";

/// Arguments of `sumrate reload`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct ReloadArgs {
    /// Status socket of the process [default: the only process's]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}
