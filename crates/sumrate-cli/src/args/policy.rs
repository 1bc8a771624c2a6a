//! `--policy NAME=SETTING[,SETTING]`, and the flags of `sumrate path` and `sumrate explain`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

use crate::policy::{
    ClassNames, PathChange, WishError, level, parse_never, parse_priority, parse_quota,
    parse_rate_cap, parse_weight,
};

/// How one path is to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyArg {
    /// The path's name, or without `--path` the interface's.
    pub name: String,
    /// What differs from a path like any other.
    pub change: PathChange,
}

impl FromStr for PolicyArg {
    type Err = WishError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, settings) =
            text.split_once('=').ok_or_else(|| WishError::Unknown(text.to_owned()))?;
        if name.is_empty() {
            return Err(WishError::Unknown(text.to_owned()));
        }
        Ok(Self { name: name.to_owned(), change: PathChange::parse(settings)? })
    }
}

const PATH_EXAMPLE: &str = "\
Examples:
  sumrate path list
  sumrate path set wwan0 --priority backup --quota 10G --metered
  sumrate path set wwan0 --weight 3 --rate 20M --never background
  sumrate path set wwan0 --rate none --priority primary";

/// Arguments of `sumrate path`.
#[derive(Debug, Args)]
#[command(after_help = PATH_EXAMPLE)]
pub struct PathCommandArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: PathAction,
    /// Status socket of the process to ask [default: the only client's, else the only process's]
    #[arg(long, value_name = "PATH", global = true)]
    pub socket: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with paths.
#[derive(Debug, Subcommand)]
pub enum PathAction {
    /// List the paths with their settings
    #[command(after_help = "Example:\n  sumrate path list --json")]
    List,
    /// Change a path of a running `sumrate up`, until it stops; `up --policy` keeps the settings
    #[command(
        override_usage = "sumrate path set PATH [--priority NAME|0-9] [--weight N|none] [--rate RATE|none]\n\
                          \x20      [--quota BYTES|none] [--metered[=BOOL]] [--paused[=BOOL]]\n\
                          \x20      [--never CLASSES|none]",
        after_help = "Example:\n  sumrate path set wwan0 --priority backup --quota 10G --metered"
    )]
    Set {
        /// Name of the path, as `sumrate status` shows it
        #[arg(value_name = "PATH")]
        name: String,
        /// What to change.
        #[command(flatten)]
        settings: PathSettings,
    },
}

/// What can be changed of a path.
#[derive(Debug, Clone, Default, Args)]
#[group(required = true, multiple = true)]
pub struct PathSettings {
    /// primary (0) is always used; backup (1) to backup9 (9) only while no lower one works
    #[arg(long, visible_alias = "tier", value_name = "NAME|0-9", value_parser = priority_level)]
    pub priority: Option<u8>,
    /// Share of the data compared with other paths that have a weight, 1 to 100; none: as fast as it can
    #[arg(long, value_name = "N|none", value_parser = parse_weight, allow_hyphen_values = true)]
    pub weight: Option<u8>,
    /// Maximum rate in each direction, in bits per second, as in 20M
    #[arg(long, value_name = "RATE|none", value_parser = parse_rate_cap, allow_hyphen_values = true)]
    pub rate: Option<u32>,
    /// Data per calendar month (UTC), both directions together, as in 10G (powers of 1000) or 10Gi
    /// (powers of 1024); then the path pauses
    #[arg(long, value_name = "BYTES|none", value_parser = parse_quota, allow_hyphen_values = true)]
    pub quota: Option<u64>,
    /// Metered: send no copies on it that only save time
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub metered: Option<bool>,
    /// Pause: carry nothing until --paused=false resumes it
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub paused: Option<bool>,
    /// Traffic classes that it never carries, separated by commas: conversational, interactive,
    /// streaming, background
    #[arg(long, value_name = "CLASSES|none", value_parser = parse_never)]
    pub never: Option<ClassNames>,
}

fn priority_level(text: &str) -> Result<u8, WishError> {
    parse_priority(text).map(level)
}

impl PathSettings {
    /// The change that was asked for.
    pub fn change(&self) -> PathChange {
        PathChange {
            priority: self.priority,
            weight: self.weight,
            rate_cap_kbps: self.rate,
            quota_bytes: self.quota,
            metered: self.metered,
            paused: self.paused,
            never: self.never,
        }
    }
}

const EXPLAIN_EXAMPLE: &str = "\
Examples:
  sumrate explain
  sumrate explain wwan0
  sumrate explain --json";

/// Arguments of `sumrate explain`.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLE)]
pub struct ExplainArgs {
    /// Only this path
    #[arg(value_name = "PATH")]
    pub path: Option<String>,
    /// How long to measure, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = super::seconds)]
    pub watch: std::time::Duration,
    /// Status socket of the process to ask [default: the only client's, else the only process's]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_a_name_and_settings() {
        let policy: PolicyArg = "wwan0=backup,quota=10G,metered".parse().unwrap();
        assert_eq!((policy.name.as_str(), policy.change.priority), ("wwan0", Some(1)));
        assert_eq!(policy.change.quota_bytes, Some(10_000_000_000));
        for bad in ["wwan0", "=backup", "wwan0=", "wwan0=fast"] {
            assert!(bad.parse::<PolicyArg>().is_err(), "{bad}");
        }
    }
}
