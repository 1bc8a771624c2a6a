//! The files of a server's state directory, as fuzz targets. Each panics where a parser does not keep
//! its word.

pub use crate::identity::fuzzing::{credential, server_key, usage, version};
