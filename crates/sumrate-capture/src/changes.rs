//! Changes by anybody of what was installed: a restart of nftables removes the tables of all others, and
//! a network manager flushes routes and rules.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

/// The multicast group of nftables (`NFNLGRP_NFTABLES`, 7), as a bit.
const NFTABLES: u32 = 1 << 6;
/// Multicast groups of rtnetlink, as bits: links, addresses, routes, rules, and switches of IPv4.
const ROUTING: u32 = bit(libc::RTNLGRP_LINK)
    | bit(libc::RTNLGRP_IPV4_IFADDR)
    | bit(libc::RTNLGRP_IPV6_IFADDR)
    | bit(libc::RTNLGRP_IPV4_ROUTE)
    | bit(libc::RTNLGRP_IPV6_ROUTE)
    | bit(libc::RTNLGRP_IPV4_RULE)
    | bit(libc::RTNLGRP_IPV6_RULE)
    | bit(libc::RTNLGRP_IPV4_NETCONF);
/// Changes that follow within this time, in milliseconds, are looked at together.
const PAUSE_MS: u16 = 200;

const fn bit(number: libc::c_uint) -> u32 {
    1 << (number - 1)
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The daemon sent something, or is gone.
    Daemon,
    /// Something was changed.
    Changed,
    /// Nothing, for as long as that was waited for.
    Nothing,
}

/// Netlink sockets for changes of nftables and, where they matter, of routes, rules and devices.
pub(crate) struct Changes(Vec<OwnedFd>);

impl Changes {
    /// Watches from now on.
    pub(crate) fn watch(routing: bool) -> nix::Result<Self> {
        let mut sockets = vec![listen(SockProtocol::NetlinkNetFilter, NFTABLES)?];
        if routing {
            sockets.push(listen(SockProtocol::NetlinkRoute, ROUTING)?);
        }
        Ok(Self(sockets))
    }

    /// Waits for the next event, at most for `longest`, if that is given.
    pub(crate) fn wait(&self, daemon: &OwnedFd, longest: Option<Duration>) -> Event {
        let flags = PollFlags::POLLIN;
        let changes = self.0.iter().map(|socket| PollFd::new(socket.as_fd(), flags));
        let mut all: Vec<PollFd<'_>> =
            std::iter::once(PollFd::new(daemon.as_fd(), flags)).chain(changes).collect();
        let longest = longest.map_or(PollTimeout::NONE, |time| {
            PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)
        });
        let _ = poll(&mut all, longest);
        if all[0].any() == Some(true) {
            return Event::Daemon;
        }
        let changed = all[1..].iter().any(|one| one.any() == Some(true));
        drop(all);
        self.0.iter().for_each(drain);
        if changed { Event::Changed } else { Event::Nothing }
    }

    /// Waits a moment, or until the daemon sent something or is gone.
    pub(crate) fn pause(daemon: &OwnedFd) {
        let mut only = [PollFd::new(daemon.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut only, PAUSE_MS);
    }
}

fn listen(protocol: SockProtocol, groups: u32) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let made = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
    bind(made.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(made)
}

/// Reads what there is: one change has many messages. An overflow counts as one, too.
fn drain(socket: &OwnedFd) {
    let mut message = [0; 8192];
    let again = |read| matches!(read, Ok(_) | Err(Errno::ENOBUFS | Errno::EINTR));
    while again(recv(socket.as_raw_fd(), &mut message, MsgFlags::MSG_DONTWAIT)) {}
}
