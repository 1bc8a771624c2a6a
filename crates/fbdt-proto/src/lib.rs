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
//! The modules stand in the order in which data meets them: the
//! application's bytes wait in a `stream`, are given to a path by a
//! [`Scheduler`] (`schedule`), leave within what the `path` may hold, alone or by the crate
//! `fbdt-coupling`, travel as [`Frame`]s (`fbdt-wire`), and are put together again by `receive`.
//! `window` sizes windows and buffers. `session` wires them; the leaf modules know nobody.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod path;
mod receive;
mod scale;
mod schedule;
mod session;
mod stream;
mod window;

mod config;
mod dialling;
mod error;
mod event;
mod message;
mod ranges;
mod stats;
#[cfg(feature = "testing")]
pub mod testing;

pub use config::{Budget, CommitRule, Config, Redundancy, SchedulerKind, WindowMode};
pub use dialling::{Dialling, Series as DiallingSeries};
pub use error::{CloseReason, MessageError, OpenError, SessionError, StreamError};
pub use event::Event;
pub use fbdt_coupling::{CouplingMode, SharedBottleneck, WindowGrowth};
pub use fbdt_units::{
    Class, Classes, Direction, Instant, PathId, Priority, RangeSet, Role, StreamId, SubflowId,
    SubflowSample, rate_of,
};
pub use fbdt_wire::{
    AckFrame, ConfigError, ControlMessage, DATA_OVERHEAD, Frame, FrameDecoder, Limits,
    MESSAGE_VERSION, Outgoing, PathLabel, PathPolicy, RateCap, VERSION, Weight, WireError,
    handshake, plain_text,
};
pub use message::{Delivery, Importance, MessageOptions};
pub use path::{Health, PathView, Reliability, lead};
pub use schedule::{
    JustInTime, Needs, OpenWindows, PlacementRequest, Repeat, RepeatRequest, Repeats, Scheduler,
    UnderWay,
};
pub use session::Session;
pub use stats::{
    Cell, ClassStats, MessageStats, PathStats, SessionStats, StreamStats, WhyIdle, WindowPicture,
};
pub use window::WindowSize;
