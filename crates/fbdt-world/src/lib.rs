//! The random world: conditions drawn from a seed, and how often the scheduler reaches its goals in
//! them.
//!
//! A [`draw::Draw`] is a set of paths, what happens to them, and the work of a program. It is run as a
//! session with each scheduler, and as a plain TCP over each of its paths alone ([`measure`]). The
//! [`judge`] counts in how many draws a goal is reached.

pub mod draw;
pub mod goals;
pub mod judge;
pub mod log;
pub mod measure;
mod messages;
mod stage;
mod transfers;
pub mod words;
