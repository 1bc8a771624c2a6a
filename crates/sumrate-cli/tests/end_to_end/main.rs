//! The real program in real processes on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod configuration;
mod harness;
mod help;
mod hostile;
mod limits;
mod paths;
mod proxies;
mod schemas;
mod signals;
mod web;
