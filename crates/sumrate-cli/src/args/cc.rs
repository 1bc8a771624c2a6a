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
    /// Load algorithms into the kernel, until `unload` or a restart of the machine
    #[command(after_help = "Example:\n  sumrate cc load lia olia balia --json")]
    Load {
        /// lia, olia, balia or reno (uncoupled, for comparison) [default: lia, olia and balia]
        #[arg(value_name = "ALGORITHM")]
        algorithms: Vec<Algorithm>,
    },
    /// Unload algorithms; open connections keep theirs
    #[command(after_help = "Example:\n  sumrate cc unload lia")]
    Unload {
        /// Algorithms to unload [default: all that are loaded]
        #[arg(value_name = "ALGORITHM")]
        algorithms: Vec<Algorithm>,
    },
    /// List loaded algorithms and, as root, the connections that they couple
    #[command(after_help = "Example:\n  sumrate cc list --json")]
    List,
}
