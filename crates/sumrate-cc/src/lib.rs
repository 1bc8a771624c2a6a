//! Coupled congestion control: LIA, OLIA and BALIA (and Reno as their control) as eBPF `struct_ops`.
//!
//! The programs stand in `bpf/`: `coupled.h` is the arithmetic, which `arithmetic` tests against the
//! formulas in user space; `subflow.h` finds siblings, and `subflow` calls it there as the kernel
//! does; one C file per algorithm. `algorithm` has their names, `kernel` loads them, and a
//! [`Coupler`] says which sockets belong together. Subflows of one kernel MPTCP connection find each
//! other by themselves.
//!
//! Once loaded, an algorithm stays until it is unloaded or the machine restarts, as a module would,
//! and every process may choose it: each subflow grows at most half again as fast as Reno and gives
//! up half of its window or more at a loss, as far as two segments are left.
//!
//! ```no_run
//! use std::os::fd::AsFd;
//! use sumrate_cc::{Algorithm, load};
//!
//! # fn example(paths: &[std::net::TcpStream]) -> Result<(), Box<dyn std::error::Error>> {
//! let coupler = load(Algorithm::Lia)?;
//! for socket in paths {
//!     // ... setsockopt(TCP_CONGESTION, Algorithm::Lia.kernel_name()) ...
//!     coupler.join(socket.as_fd(), 42)?;
//! }
//! # Ok(()) }
//! ```

mod algorithm;
#[cfg(test)]
mod arithmetic;
mod error;
#[cfg_attr(programs, path = "kernel.rs")]
#[cfg_attr(not(programs), path = "absent.rs")]
mod kernel;
#[cfg(test)]
mod subflow;

pub use algorithm::{Algorithm, UnknownAlgorithmError, loaded};
pub use error::CouplingError;
pub use kernel::{Coupler, find, load, unload};

/// Subflows that are coupled as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Its number: a process's own, or the token of a kernel MPTCP connection.
    pub number: u64,
    /// Who said that they belong together.
    pub by: GroupedBy,
    /// How many there are; at most eight are coupled.
    pub subflows: usize,
}

/// Who said that sockets belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupedBy {
    /// A process, with [`Coupler::join`].
    Process,
    /// The kernel: they are subflows of one MPTCP connection.
    Mptcp,
}
