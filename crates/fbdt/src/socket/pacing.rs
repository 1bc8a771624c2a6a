//! Pacing: TCP spreads what it sends.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::libc;

/// Any limit but the largest, which stands for none, turns pacing on.
static UNLIMITED: u64 = u64::MAX - 1;

/// Over a shorter RTT slow start fills the link, or cubic grows to it, in no time; and the timers of
/// pacing would cost more than it gives.
const LEAST_RTT: Duration = Duration::from_millis(1);

/// Turns pacing on where the RTT of the handshake says that it is worth it.
///
/// # Errors
/// What the kernel says.
pub(super) fn turn_on_for(socket: &impl AsRawFd, rtt: Duration) -> io::Result<()> {
    if rtt < LEAST_RTT { Ok(()) } else { turn_on(socket) }
}

/// Lets TCP spread segments over the RTT: at twice the window's rate in slow start, at 1.2 times it
/// afterwards.
///
/// A multipath sender writes in portions. Without pacing cubic takes the long train of their
/// acknowledgements for a full link and leaves slow start far below the link's rate (HyStart,
/// RFC 9406); with pacing it allows a train of a whole RTT.
///
/// # Errors
/// What the kernel says.
fn turn_on(socket: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the pointer and length describe a u64 that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const UNLIMITED).cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
