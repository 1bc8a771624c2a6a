//! The process at the other end of a Unix socket, as the kernel names it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::net::UnixStream;

use super::SocketError;
use crate::private_directory::owner_alone;

/// This process's user and root.
pub(super) fn is_own_or_root(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// Refuses a process that serves the socket as somebody else: its answers are not to be believed.
/// Root also asks the user who alone can put sockets there, as the services' user in its directory.
pub(crate) fn check(stream: &UnixStream, socket: &Path) -> Result<(), SocketError> {
    let failed = |error| SocketError::Silent { path: socket.to_owned(), error };
    let uid = stream.peer_cred().map_err(failed)?.uid();
    if is_own_or_root(uid) || geteuid().is_root() && owner_of_place(socket) == Some(uid) {
        return Ok(());
    }
    Err(SocketError::Stranger { path: socket.to_owned(), uid })
}

/// The owner of the socket's directory, if nobody else can put anything there.
fn owner_of_place(socket: &Path) -> Option<u32> {
    let directory = match socket.parent()? {
        here if here.as_os_str().is_empty() => Path::new("."),
        directory => directory,
    };
    owner_alone(&directory.canonicalize().ok()?).ok()
}

/// A process that can be signalled: its number may go to another one, this does not.
#[derive(Debug)]
pub(crate) struct Process {
    pid: i32,
    descriptor: OwnedFd,
}

impl Process {
    /// The process that listens at the other end.
    pub(super) fn behind(stream: &UnixStream) -> io::Result<Self> {
        // It has no number here if it is in another namespace of processes.
        let pid = stream.peer_cred()?.pid().unwrap_or_default();
        let descriptor = match getsockopt(&stream.as_fd(), sockopt::PeerPidfd) {
            // Linux before 6.5 has no SO_PEERPIDFD. The number may be reused until here.
            Err(Errno::ENOPROTOOPT) => {
                let pid = Pid::from_raw(pid).ok_or(Errno::ESRCH)?;
                pidfd_open(pid, PidfdFlags::empty())?
            }
            found => found?,
        };
        Ok(Self { pid, descriptor })
    }

    /// Its number; 0 if it has none here.
    pub(crate) fn id(&self) -> i32 {
        self.pid
    }

    /// Tells it to read its configuration again.
    pub(crate) fn hang_up(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.descriptor, Signal::HUP)?)
    }
}
