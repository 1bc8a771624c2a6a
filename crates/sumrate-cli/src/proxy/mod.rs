//! The local proxies of `sumrate up`: SOCKS5 and HTTP, each connection on a stream of its own.

mod associate;
mod association;
mod connect;
mod forward;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod http;
mod passwords;
mod server;
mod silent;
mod socks5;

#[cfg(feature = "fuzzing")]
pub(crate) use associate::message_of;
pub(crate) use association::{Association, Carrier};
pub use connect::{ConnectFailure, connect_as, connect_through};
pub use server::{Proxy, ProxyKind};
