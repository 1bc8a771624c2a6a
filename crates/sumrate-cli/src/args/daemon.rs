//! Flags of what runs until it is stopped: `sumrate serve` and `sumrate up`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{SERVICE, seconds};
use crate::config::ConfigSource;

/// Where flags come from, and how it stops.
#[derive(Debug, Clone, Args)]
pub struct DaemonArgs {
    /// TOML file with defaults of flags, or none [default: config.toml in $XDG_CONFIG_HOME/sumrate or
    /// /etc/sumrate]
    #[arg(long, help_heading = SERVICE, value_name = "FILE|none")]
    pub config: Option<PathBuf>,
    /// What the flags were made of.
    #[arg(skip)]
    pub source: ConfigSource,
    /// How long open connections may take to finish after SIGTERM, in seconds; Ctrl-C ends them at once
    #[arg(long, help_heading = SERVICE, value_name = "SECONDS", value_parser = seconds, default_value = "3")]
    pub drain: Duration,
}
