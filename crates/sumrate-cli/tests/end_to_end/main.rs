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
mod hostile_copies;
mod limits;
mod manual;
mod metrics;
mod page;
mod paths;
mod policies;
mod privileges;
mod proxies;
mod refusals;
mod reloads;
mod revocation;
mod run;
mod schemas;
mod secrets;
mod signals;
mod squatters;
mod tls;
mod web;
