//! Refuses data that `sendto`, `sendmsg` and `sendmmsg` would send past the proxy.
//!
//! Datagrams to a stand-in address reach no host, but the local network would see them. They get
//! ENETUNREACH, after which browsers use TCP. TCP Fast Open connects without `connect`. It gets
//! EOPNOTSUPP, as from a kernel that has it switched off, and programs connect.
#![allow(unsafe_code)] // addresses of the program

use std::net::IpAddr;

use libc::{c_int, mmsghdr, msghdr, sockaddr, socklen_t};

use crate::address::RawAddress;
use crate::config::Config;
use crate::connect::{Kind, kind, stand_in};

/// The error of a call that sends to an address; `None` if it may.
///
/// # Safety
/// `address` is null or points to `length` readable bytes.
pub(crate) unsafe fn refusal(
    config: &Config,
    (socket, flags): (c_int, c_int),
    (address, length): (*const sockaddr, socklen_t),
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let to = unsafe { destination(address, length) }?;
    let is_stand_in = stand_in(config, to).is_some();
    let is_fast_open = flags & libc::MSG_FASTOPEN != 0;
    if !is_stand_in && (!is_fast_open || config.is_direct(to)) {
        return None;
    }
    match kind(socket) {
        Kind::FreshTcp | Kind::Connected | Kind::OtherStream if is_fast_open => {
            Some(libc::EOPNOTSUPP)
        }
        Kind::Datagrams | Kind::OtherStream => is_stand_in.then_some(libc::ENETUNREACH),
        Kind::FreshTcp | Kind::Connected | Kind::Unknown => None,
    }
}

/// The address of a datagram. The kernel takes one of no family for IPv4 (udp_sendmsg).
unsafe fn destination(address: *const sockaddr, length: socklen_t) -> Option<IpAddr> {
    if address.is_null() || (length as usize) < size_of::<sockaddr>() {
        return None;
    }
    // SAFETY: the caller's promise, and a sockaddr is within `length`; it need not be aligned.
    let mut plain = unsafe { address.read_unaligned() };
    if c_int::from(plain.sa_family) == libc::AF_UNSPEC {
        plain.sa_family = libc::AF_INET as libc::sa_family_t;
        // SAFETY: a sockaddr on this stack, which is as long as a sockaddr_in.
        let raw = unsafe { RawAddress::read(&raw const plain, size_of::<sockaddr>() as socklen_t) };
        return raw.map(|raw| raw.socket_address().ip());
    }
    // SAFETY: the caller's promise.
    unsafe { RawAddress::read(address, length) }.map(|raw| raw.socket_address().ip())
}

/// The error of `sendmsg`; `None` if it may.
///
/// # Safety
/// As for `sendmsg(2)`.
pub(crate) unsafe fn refusal_of_message(
    config: &Config,
    to: (c_int, c_int),
    message: *const msghdr,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    unsafe {
        let message = message.as_ref()?;
        refusal(config, to, (message.msg_name.cast(), message.msg_namelen))
    }
}

/// How many of the messages of `sendmmsg` come before one that may not be sent, and its error; `None`
/// if all may.
///
/// # Safety
/// As for `sendmmsg(2)`.
pub(crate) unsafe fn refusal_of_messages(
    config: &Config,
    to: (c_int, c_int),
    (messages, count): (*const mmsghdr, libc::c_uint),
) -> Option<(libc::c_uint, c_int)> {
    if messages.is_null() {
        return None;
    }
    // The kernel looks at no more of them at a time (UIO_MAXIOV).
    (0..count.min(1024)).find_map(|index| {
        // SAFETY: the caller's promise.
        let message = unsafe { &raw const (*messages.add(index as usize)).msg_hdr };
        // SAFETY: as above.
        unsafe { refusal_of_message(config, to, message) }.map(|error| (index, error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{self, stand_in_v4, stand_in_v6};
    use std::net::SocketAddr;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    fn socket(family: c_int, kind: c_int) -> OwnedFd {
        // SAFETY: a new descriptor that nobody else owns.
        unsafe {
            let socket = libc::socket(family, kind | libc::SOCK_CLOEXEC, 0);
            assert!(socket >= 0);
            OwnedFd::from_raw_fd(socket)
        }
    }

    fn config() -> Config {
        Config { proxy: "127.0.0.1:9".parse().unwrap(), ..Config::closed() }
    }

    /// The error of `sendto`.
    fn said(socket: &OwnedFd, flags: c_int, to: &str) -> Option<c_int> {
        let raw = RawAddress::from(to.parse::<SocketAddr>().unwrap());
        let address = (raw.bytes.as_ptr().cast(), raw.length as socklen_t);
        // SAFETY: the address lies on this stack.
        unsafe { refusal(&config(), (socket.as_raw_fd(), flags), address) }
    }

    #[test]
    fn datagrams_to_stand_ins_are_unreachable() {
        names::share_for_tests();
        let mapped = stand_in_v4(7).to_ipv6_mapped();
        let (v4, v6) = (format!("{}:443", stand_in_v4(7)), format!("[{}]:443", stand_in_v6(7)));
        let udp = socket(libc::AF_INET, libc::SOCK_DGRAM);
        let udp6 = socket(libc::AF_INET6, libc::SOCK_DGRAM);
        assert_eq!(said(&udp, 0, &v4), Some(libc::ENETUNREACH));
        assert_eq!(said(&udp6, 0, &v6), Some(libc::ENETUNREACH));
        assert_eq!(said(&udp6, 0, &format!("[{mapped}]:443")), Some(libc::ENETUNREACH));
        for other in ["192.0.2.1:443", "127.0.0.1:53"] {
            assert_eq!(said(&udp, 0, other), None, "{other}");
        }
        let mut raw = RawAddress::from(v4.parse::<SocketAddr>().unwrap());
        raw.bytes[..2].fill(0); // AF_UNSPEC
        let address = (raw.bytes.as_ptr().cast(), raw.length as socklen_t);
        // SAFETY: the address lies on this stack, as do null ones.
        unsafe {
            let to = (udp.as_raw_fd(), 0);
            assert_eq!(refusal(&config(), to, address), Some(libc::ENETUNREACH));
            assert_eq!(refusal(&config(), to, (std::ptr::null(), 0)), None);
            let local = Config { names_at_exit: false, ..config() };
            assert_eq!(refusal(&local, to, address), None);
        }
    }

    #[test]
    fn fast_open_of_what_goes_through_is_refused() {
        let tcp = socket(libc::AF_INET, libc::SOCK_STREAM);
        let stand_in = format!("{}:80", stand_in_v4(7));
        for far in ["192.0.2.1:80", &stand_in] {
            assert_eq!(said(&tcp, libc::MSG_FASTOPEN, far), Some(libc::EOPNOTSUPP), "{far}");
            assert_eq!(
                said(&tcp, 0, far),
                None,
                "{far}: the kernel refuses it, or it is connected"
            );
        }
        assert_eq!(said(&tcp, libc::MSG_FASTOPEN, "127.0.0.1:80"), None);
    }

    #[test]
    fn messages_before_a_refused_one_are_sent() {
        let udp = socket(libc::AF_INET, libc::SOCK_DGRAM);
        let fine = RawAddress::from("127.0.0.1:9".parse::<SocketAddr>().unwrap());
        let stand_in = RawAddress::from(SocketAddr::new(stand_in_v4(3).into(), 443));
        // SAFETY: all zero is a message; the addresses outlive it.
        let mut messages: [mmsghdr; 3] = unsafe { std::mem::zeroed() };
        for (message, to) in messages.iter_mut().zip([&fine, &stand_in, &fine]) {
            message.msg_hdr.msg_name = to.bytes.as_ptr().cast_mut().cast();
            message.msg_hdr.msg_namelen = to.length as socklen_t;
        }
        let to = (udp.as_raw_fd(), 0);
        // SAFETY: three messages on this stack, one, none.
        unsafe {
            let all = (messages.as_ptr(), 3);
            let found = refusal_of_messages(&config(), to, all);
            assert_eq!(found, Some((1, libc::ENETUNREACH)));
            assert_eq!(refusal_of_messages(&config(), to, (messages.as_ptr(), 1)), None);
            assert_eq!(refusal_of_messages(&config(), to, (std::ptr::null(), 9)), None);
        }
    }
}
