//! How the connections of programs that know nothing of Sumrate are taken.
//!
//! [`preload`] and [`program`] are for one program that `sumrate run` starts. The rest is for a whole
//! machine, a user or a cgroup: [`selection`] says whose connections and where to, `rules` turns that
//! into nftables and routes, a [`guardian`] (a process that outlives the daemon for a moment) makes and
//! removes them, and [`listener`] accepts what they lead there. [`tun`] takes what a route leads into
//! a device.

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod guardian;
pub mod listener;
pub mod preload;
pub mod program;
mod rules;
pub mod selection;
pub mod tun;
