//! The configuration file: links, their ends, their parameters and schedules.

mod file;
pub mod parameters;
mod settings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::time::Nanos;
use parameters::{Parameters, Update};
pub use settings::{Direction, Directions, Jitter, QueueLimit, RateSetting, Sleep};

/// Longest interface name that Linux takes.
pub const MAX_INTERFACE: usize = 15;

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML, or a key is unknown or of the wrong type. The message shows the line.
    #[error("{path}: {source}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, column and what was expected.
        source: Box<toml::de::Error>,
    },
    /// A value cannot be used.
    #[error("{path}: {key}: {problem}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Which key, as `link "wifi" a_to_b.rate_mbps`.
        key: String,
        /// What is wrong and what to write.
        problem: String,
    },
}

/// One side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Side a, where `a_to_b` begins.
    A,
    /// Side b.
    B,
}

impl Side {
    /// Both, a first.
    pub const ALL: [Side; 2] = [Side::A, Side::B];

    /// Where packets of `direction` come in.
    pub fn source(direction: Direction) -> Side {
        match direction {
            Direction::AToB => Side::A,
            Direction::BToA => Side::B,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::A => "a",
            Side::B => "b",
        })
    }
}

/// How packets reach the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// veth pairs and packet sockets: works without root in a user namespace.
    #[default]
    AfPacket,
    /// TUN interfaces: needs /dev/net/tun.
    Tun,
}

/// When a schedule's time 0 is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleStart {
    /// The start of the emulator.
    #[default]
    Start,
    /// Each `trigger` command; a new one begins the schedule anew.
    Trigger,
}

/// Where one side of a link ends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Network namespace, a name of `ip netns`; absent: the emulator's own.
    pub netns: Option<String>,
    /// Interface to make there.
    pub interface: String,
    /// Addresses with prefix length.
    #[serde(default)]
    pub address: Vec<String>,
}

/// One change at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleEntry {
    /// When, after the schedule's time 0.
    pub at: Nanos,
    /// Where.
    pub directions: Directions,
    /// What.
    pub update: Update,
}

/// Changes of one link over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// When time 0 is.
    pub start: ScheduleStart,
    /// Begins again after this time; absent: runs once.
    pub every: Option<Nanos>,
    /// In order of time.
    pub entries: Vec<ScheduleEntry>,
}

/// One link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Its name, in commands and counters.
    pub name: String,
    /// How packets reach the emulator.
    pub backend: Backend,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Installs permanent neighbour entries, so that a long blackout is not prolonged by address resolution.
    pub static_neighbours: bool,
    /// Ends a and b.
    pub ends: [Endpoint; 2],
    /// Parameters at the start, by `Direction::index`.
    pub parameters: [Parameters; 2],
    /// Whether its radio sleeps.
    pub sleep: Option<Sleep>,
    /// Changes over time.
    pub schedule: Schedule,
}

impl LinkConfig {
    /// The end at `side`.
    pub fn end(&self, side: Side) -> &Endpoint {
        match side {
            Side::A => &self.ends[0],
            Side::B => &self.ends[1],
        }
    }
}

/// A whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Seed of every random decision.
    pub seed: u64,
    /// At least one.
    pub links: Vec<LinkConfig>,
    /// Traces named in later commands are relative to this.
    pub directory: PathBuf,
}

impl Config {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Config::parse(&text, path)
    }

    /// Checks the text of a file; `path` is for messages and relative names.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        file::parse(text, path)
    }
}
