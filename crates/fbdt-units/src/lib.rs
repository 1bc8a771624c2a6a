//! What the crates of FBDT name and measure: paths, streams and classes, points in time, rates,
//! and what a kernel says of a subflow.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod names;
mod rates;
mod sample;
mod time;

pub use names::{Class, Classes, Direction, PathId, Priority, Role, Space, StreamId, SubflowId};
pub use rates::{bytes_in, rate_of, time_for};
pub use sample::SubflowSample;
pub use time::{Instant, nanos};
