//! FBDT (Forward and Backward Data Transmission): one reliable, in-order byte
//! stream service over several TCP subflows, one per radio.
//!
//! This crate is the protocol and nothing else: no socket, clock, thread,
//! environment or randomness. Time is an argument ([`Instant`]), bytes and
//! TCP measurements are arguments, and what should be sent is asked for.
//! `no_std` makes that a property that the compiler checks.
//!
//! # How to drive a [`Session`]
//! 1. Tell it what happened: [`Session::subflow_up`], [`Session::handle_frame`],
//!    [`Session::handle_sample`], [`Session::subflow_down`],
//!    [`Session::handle_timeout`], and the application's
//!    [`Session::write`] and [`Session::read`].
//! 2. Then, for every subflow whose socket has room, call
//!    [`Session::poll_transmit`] until it answers `false`.
//! 3. Drain [`Session::poll_event`].
//! 4. Sleep until [`Session::poll_timeout`] or the next thing happens.
//!
//! The modules below stand in the order in which data meets them: the
//! application's bytes wait in a [`stream`], are opened for sending in a
//! [`window`], are given to a path by a [`schedule`], leave within what the
//! [`path`] may hold, alone or by [`coupling`], travel as [`wire`] frames, and are put together again
//! by [`receive`]. `session` wires them; the leaf modules know nobody.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod coupling;
pub mod path;
pub mod receive;
pub mod schedule;
pub mod session;
pub mod stream;
pub mod window;
pub mod wire;

pub mod config;
pub mod error;
pub mod event;
pub mod histogram;
pub mod message;
pub mod plain_text;
pub mod ranges;
pub mod stats;
pub mod time;
pub mod units;

pub use config::{
    Budget, CommitRule, Config, ConfigError, CouplingMode, Limits, PathPolicy, RateCap, Redundancy,
    SchedulerKind, SharedBottleneck, Weight, WindowGrowth, WindowMode,
};
pub use error::{CloseReason, MessageError, OpenError, SessionError, StreamError};
pub use event::Event;
pub use message::{Delivery, Importance, MessageOptions};
pub use path::{Health, PathView, SubflowSample, lead};
pub use ranges::RangeSet;
#[cfg(feature = "testing")]
pub use schedule::testing;
pub use schedule::{
    JustInTime, Needs, OpenWindows, PlacementRequest, Repeat, RepeatRequest, Repeats, Scheduler,
    UnderWay,
};
pub use session::Session;
pub use stats::{ClassStats, MessageStats, PathStats, SessionStats, StreamStats};
pub use time::Instant;
pub use units::{Class, Classes, Direction, PathId, Priority, Role, StreamId, SubflowId, rate_of};
pub use window::WindowSize;
pub use wire::Frame;
