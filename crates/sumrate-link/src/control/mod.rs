//! Commands to a running emulator: JSON lines over a unix socket.

pub mod client;
pub mod protocol;
pub mod server;
