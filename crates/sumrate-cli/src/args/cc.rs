//! Flags of `sumrate cc`.

use clap::{Args, Subcommand};
use sumrate_cc::Algorithm;

const EXAMPLE: &str = "\
Examples:
  sumrate cc load lia              as root; then every program may choose sumrate_lia
  iperf3 -c 192.0.2.7 -C sumrate_lia
  sumrate cc list
  sumrate cc unload";

/// Arguments of `sumrate cc`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct CcArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: CcAction,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with coupled congestion controls.
#[derive(Debug, Subcommand)]
pub enum CcAction {
    /// Load them into the kernel, where they stay until they are unloaded or the machine restarts
    #[command(after_help = "Example:\n  sumrate cc load lia olia balia --json")]
    Load {
        /// lia, olia, balia or reno (uncoupled, for comparison) [default: lia, olia and balia]
        #[arg(value_name = "ALGORITHM")]
        algorithms: Vec<Algorithm>,
    },
    /// Take them out; connections that use them keep them to their end
    #[command(after_help = "Example:\n  sumrate cc unload lia")]
    Unload {
        /// Which [default: all that are loaded]
        #[arg(value_name = "ALGORITHM")]
        algorithms: Vec<Algorithm>,
    },
    /// Show which are loaded, and as root which connections they couple
    #[command(after_help = "Example:\n  sumrate cc list --json")]
    List,
}
