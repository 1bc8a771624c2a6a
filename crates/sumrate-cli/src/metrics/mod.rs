//! The status as Prometheus metrics. Names are `sumrate_` + what it is of, units are base units
//! (seconds, bytes, bytes per second), labels name sessions, paths and classes and hold no secret.
//!
//! Streams come and go by the thousand, so they are counted by class and not one by one.

mod exposition;
mod families;

pub use exposition::{CONTENT_TYPE, answer, exposition};
