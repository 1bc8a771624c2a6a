//! The configuration file: flags that the command line leaves out, as TOML. Its keys are the long names
//! of the flags, taken from their one definition in [`args`](crate::args): there is no second list.
//!
//! `file` reads tables and keys with their lines, `keys` knows which exist and what they take, `merge`
//! puts them behind the command line, and `source` reads all again for a reload.

mod file;
mod keys;
mod merge;
mod source;

pub use file::{ConfigError, ConfigFile, HOSTS, default_path};
pub use keys::{Key, Table, tables};
pub use merge::{Merged, check, merge};
pub use source::{Accepted, ConfigSource, Reread};
