//! FBDT over real sockets on the loopback interface.
//!
//! 127.0.0.1, 127.0.0.2, ... are the paths; relays between the ends cut, freeze and record them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod addresses;
mod faults;
mod first_version;
mod hostile;
mod many;
mod messages;
mod redials;
mod relay;
mod second_version;
mod shutdown;
mod streams;
mod transfer;
mod versions;
mod world;
