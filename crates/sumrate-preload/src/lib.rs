//! The preload library of `sumrate run`: TCP connections of an unmodified program go to the SOCKS5
//! proxy of a running `sumrate up`, which is told where they were meant to go.
//!
//! In the order in which a program meets it: [`config`] is what `sumrate run` left in the environment;
//! `resolve` stands in for `getaddrinfo` and gives names that the far end is to resolve a number of
//! `names`; `connect` stands in for `connect` and speaks to the proxy as `preface` says; `datagram`
//! refuses what `sendto` and its kin would send past it; `peers` remembers whom a socket was meant for,
//! for `getpeername`; `exec` says it when a program is started that cannot be reached, which [`elf`]
//! tells from the head of its file.
//!
//! Everything here runs inside a program that knows nothing of it: between `fork` and `exec`, in signal
//! handlers, in several threads. So nothing takes a lock or allocates after the first call, `errno`
//! is what the C library would have left, and `notice` alone prints: what the user has to know. What
//! cannot be led through the proxy fails; it is never sent directly instead.

// Without the exports only tests use what is behind them.
#![cfg_attr(not(feature = "interpose"), allow(dead_code))]

#[cfg(any(feature = "interpose", test))]
mod address;
pub mod config;
#[cfg(any(feature = "interpose", test))]
mod connect;
#[cfg(any(feature = "interpose", test))]
mod datagram;
pub mod elf;
#[cfg(any(feature = "interpose", test))]
mod exec;
#[cfg(feature = "interpose")]
mod exports;
pub mod names;
#[cfg(any(feature = "interpose", test))]
mod notice;
#[cfg(any(feature = "interpose", test))]
mod original;
#[cfg(any(feature = "interpose", test))]
mod peers;
pub mod preface;
#[cfg(any(feature = "interpose", test))]
mod resolve;
