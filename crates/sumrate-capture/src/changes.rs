//! Changes of nftables by anybody: a restart of its service removes the tables of all others, too.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

/// The multicast group of nftables (`NFNLGRP_NFTABLES`, 7), as a bit.
const GROUP: u32 = 1 << 6;
/// Changes that follow within this time, in milliseconds, are looked at together.
const PAUSE_MS: u16 = 100;

/// Netlink socket for changes of nftables.
pub(crate) struct Changes(OwnedFd);

impl Changes {
    /// Watches from now on.
    pub(crate) fn watch() -> nix::Result<Self> {
        let kind = SockType::Raw;
        let flags = SockFlag::SOCK_CLOEXEC;
        let made = socket(AddressFamily::Netlink, kind, flags, SockProtocol::NetlinkNetFilter)?;
        bind(made.as_raw_fd(), &NetlinkAddr::new(0, GROUP))?;
        Ok(Self(made))
    }

    /// Waits until the daemon sent something or is gone; `false` if nftables changed before.
    pub(crate) fn wait(&self, daemon: &OwnedFd) -> bool {
        let Self(changes) = self;
        let flags = PollFlags::POLLIN;
        let mut both = [PollFd::new(daemon.as_fd(), flags), PollFd::new(changes.as_fd(), flags)];
        let _ = poll(&mut both, PollTimeout::NONE);
        if both[0].any() == Some(true) || both[1].any() != Some(true) {
            return true;
        }
        // One transaction has many messages. An overflow counts as one, too.
        let mut message = [0; 8192];
        let again = |read| matches!(read, Ok(_) | Err(Errno::ENOBUFS | Errno::EINTR));
        while again(recv(changes.as_raw_fd(), &mut message, MsgFlags::MSG_DONTWAIT)) {}
        false
    }

    /// Waits a moment, or until the daemon sent something or is gone.
    pub(crate) fn pause(daemon: &OwnedFd) {
        let mut only = [PollFd::new(daemon.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut only, PAUSE_MS);
    }
}
