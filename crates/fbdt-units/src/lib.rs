//! What the crates of FBDT name, measure and count with: paths, streams and classes, points in time,
//! rates, what a kernel says of a subflow, sets of ranges and distributions of delays.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod histogram;
mod names;
mod ranges;
mod rates;
mod sample;
mod time;

pub use histogram::DelayHistogram;
pub use names::{Class, Classes, Direction, PathId, Priority, Role, Space, StreamId, SubflowId};
pub use ranges::RangeSet;
pub use rates::{bytes_in, rate_of, time_for};
pub use sample::SubflowSample;
pub use time::{Instant, nanos};
