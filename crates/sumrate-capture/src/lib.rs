//! How the connections of programs that know nothing of Sumrate are taken.
//!
//! [`preload`], [`names_file`] and [`program`] are for one program that `sumrate run` starts. The rest is for a whole
//! machine, a user or a cgroup: [`selection`] says whose connections and where to, `rules` turns that
//! into nftables and routes, a [`guardian`] (a process that outlives the daemon for a moment) makes and
//! removes them or, when the daemon crashed, has them refuse, and [`listener`] accepts what they lead
//! there, over both [`families`]. [`tun`] takes what a route leads into a device.

mod changes;
mod commands;
mod declared;
mod earlier;
pub mod families;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod guardian;
mod guarding;
mod held;
pub mod listener;
pub mod names_file;
mod owner;
pub mod preload;
pub mod program;
mod refusal;
mod rules;
pub mod selection;
pub mod tun;
