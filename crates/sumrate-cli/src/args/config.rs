//! Flags of `sumrate config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXAMPLE: &str = "\
Examples:
  sumrate config check                     the file that `up`, `serve` and `cp` would read
  sumrate config example > config.toml     every key with its meaning, commented out

Files are looked for in $XDG_CONFIG_HOME/sumrate/config.toml (~/.config), then in
/etc/sumrate/config.toml; --config of `up`, `serve` and `cp` names another, --config none reads none.
Tables are called as the commands, keys as their long flags; flags on the command line win.";

/// Arguments of `sumrate config`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct ConfigArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: ConfigAction,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Say whether a configuration file is right, and the line that is not
    #[command(after_help = "Example:\n  sumrate config check /etc/sumrate/config.toml")]
    Check {
        /// The file [default: the one that would be read]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print a configuration with every key, its meaning and its default, commented out
    #[command(after_help = "Example:\n  sumrate config example serve")]
    Example {
        /// Only these tables [default: all]
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
}
