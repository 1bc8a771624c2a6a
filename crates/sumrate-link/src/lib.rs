//! Link emulator that keeps GSO super-packets whole.
//!
//! It stands between two network interfaces and gives each direction a rate, a queue, losses and a delay, segment by
//! segment, while packets of up to 64 KiB pass unsplit. Modules in the order in which a packet meets them:
//! [`interfaces`], [`device`], [`packet`], [`direction`], and around them [`emulator`], [`control`], [`calibrate`],
//! [`command`].

pub mod calibrate;
pub mod command;
pub mod config;
pub mod control;
pub mod device;
pub mod direction;
pub mod emulator;
pub mod interfaces;
pub mod names;
pub mod netns;
pub mod packet;
pub mod radio;
pub mod time;
pub mod trace;

pub use command::{LinkCommand, run};
