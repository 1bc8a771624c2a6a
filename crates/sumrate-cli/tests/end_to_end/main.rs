//! The real program in real processes on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod config_file;
mod configuration;
mod copies;
mod coupling;
mod datagrams;
mod doctor;
mod graceful;
mod harness;
mod help;
mod hostile;
mod limits;
mod manual;
mod metrics;
mod page;
mod paths;
mod policies;
mod privileges;
mod proxies;
mod reloads;
mod revocation;
mod schemas;
mod secrets;
mod signals;
mod tls;
mod web;
