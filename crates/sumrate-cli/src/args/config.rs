//! Flags of `sumrate config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXAMPLE: &str = "\
Examples:
  sumrate config check                     the file that `up`, `serve` and `cp` would read
  sumrate config example > config.toml     every key with its meaning, commented out

The file is $XDG_CONFIG_HOME/sumrate/config.toml (~/.config), else /etc/sumrate/config.toml.
`up`, `serve` and `cp` read another one with --config FILE, and none with --config none. A table
has the name of its command, a key that of its flag. Flags on the command line win.";

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
    /// Check a configuration file, and print each mistake with its line
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
