//! `connect` and `getpeername` of sockets that go to the proxy.
#![allow(unsafe_code)] // system calls on the descriptors of the program

use std::mem::size_of;
use std::net::{IpAddr, SocketAddr};

use libc::{c_int, c_void, pollfd, sockaddr, socklen_t};

use crate::address::RawAddress;
use crate::config::Config;
use crate::names::{self, names};
use crate::original::{CONNECT, GETPEERNAME, errno, set_errno};
use crate::peers::Peers;
use crate::preface::{METHOD_NONE, METHOD_PASSWORD, METHOD_SILENT, Preface, Target};

/// Time for the proxy, which is on this machine, to take a connection, in milliseconds.
const PROXY_TIME_MS: c_int = 5_000;
/// Time for the proxy's answer: somewhat more than it gives the far end.
const ANSWER_TIME_MS: c_int = 40_000;
/// A TCP socket that has not been connected (tcp_states.h).
const TCP_CLOSE: u8 = 7;
const IPPROTO_MPTCP: c_int = 262;

pub(crate) static PEERS: Peers = Peers::new();

/// Why a connection was not made, as `errno` says it.
type Errno = c_int;

/// Stands in for `connect`; `None` if the connection is none of ours.
///
/// # Safety
/// As for `connect(2)`.
pub(crate) unsafe fn connect(
    config: &Config,
    socket: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let raw = unsafe { RawAddress::read(address, length) }?;
    let wanted = raw.socket_address();
    let number = stand_in(config, wanted.ip());
    if number.is_none() && config.is_direct(wanted.ip()) {
        return None;
    }
    let fail = |error| {
        set_errno(error);
        Some(-1)
    };
    match kind(socket) {
        Kind::FreshTcp => {}
        // No host has this address. Browsers fall back to TCP at once.
        Kind::Datagrams if number.is_some() => return fail(libc::ENETUNREACH),
        Kind::OtherStream => return fail(libc::EPROTONOSUPPORT),
        Kind::Datagrams | Kind::Connected | Kind::Unknown => return None,
    }
    let target = match number.map(|number| names().and_then(|names| names.get(number))) {
        None => Target::Address(wanted.ip(), wanted.port()),
        Some(Some(name)) => Target::Name(name, wanted.port()),
        // A number of another command: no host has this address.
        Some(None) => return fail(libc::EHOSTUNREACH),
    };
    let blocking = is_blocking(socket);
    let outcome = if blocking { ask(config, socket, target) } else { tell(config, socket, target) };
    if outcome.is_ok()
        && let Some(cookie) = cookie(socket)
    {
        PEERS.remember(cookie, &raw);
    }
    Some(match outcome {
        Ok(()) if blocking => 0,
        // It is connected by now; but programs know this answer best.
        Ok(()) => {
            set_errno(libc::EINPROGRESS);
            -1
        }
        Err(error) => {
            set_errno(error);
            -1
        }
    })
}

/// The number of a name that this address stands for.
pub(crate) fn stand_in(config: &Config, address: IpAddr) -> Option<u32> {
    names::number_of(address).filter(|_| config.names_at_exit)
}

/// Stands in for `getpeername`: whom the program asked for, while the socket is connected.
///
/// # Safety
/// As for `getpeername(2)`.
pub(crate) unsafe fn getpeername(
    socket: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let Some(original) = GETPEERNAME.get() else {
        set_errno(libc::ENOSYS);
        return -1;
    };
    let recalled = cookie(socket).and_then(|cookie| PEERS.recall(cookie));
    // SAFETY: the caller's promise; the room is read before the call changes it.
    unsafe {
        let room = if length.is_null() { 0 } else { *length };
        let outcome = original(socket, address, length);
        if let (0, Some(peer)) = (outcome, recalled) {
            *length = room;
            peer.write(address, length);
        }
        outcome
    }
}

/// Connects without waiting for the far end: what goes wrong there is a reset later.
fn tell(config: &Config, socket: c_int, target: Target<'_>) -> Result<(), Errno> {
    let preface = Preface::new(METHOD_SILENT, auth(config), target);
    reach_proxy(config, socket)?;
    send_all(socket, preface.bytes())
}

/// Connects and waits for the far end.
fn ask(config: &Config, socket: c_int, target: Target<'_>) -> Result<(), Errno> {
    let auth = auth(config);
    let method = if auth.is_some() { METHOD_PASSWORD } else { METHOD_NONE };
    let preface = Preface::new(method, auth, target);
    let connected = reach_proxy(config, socket)
        .and_then(|()| send_all(socket, preface.bytes()))
        .and_then(|()| read_answers(socket, method));
    if connected.is_err() {
        disconnect(socket);
    }
    connected
}

fn auth(config: &Config) -> Option<(&[u8], &[u8])> {
    config.auth.as_ref().map(|(user, password)| (user.as_slice(), password.as_slice()))
}

/// Connects the socket to the proxy, over IPv4 also where it is an IPv6 socket.
fn reach_proxy(config: &Config, socket: c_int) -> Result<(), Errno> {
    if config.proxy.port() == 0 {
        return Err(libc::ENETUNREACH); // `Config::closed`
    }
    // This option would postpone the connection to the first `send`.
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 0);
    let proxy =
        if option::<c_int>(socket, libc::SOL_SOCKET, libc::SO_DOMAIN) == Some(libc::AF_INET6) {
            set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0);
            SocketAddr::new(IpAddr::V6(config.proxy.ip().to_ipv6_mapped()), config.proxy.port())
        } else {
            SocketAddr::V4(config.proxy)
        };
    let raw = RawAddress::from(proxy);
    let original = CONNECT.get().ok_or(libc::ENOSYS)?;
    // SAFETY: the address is on this stack and as long as said.
    let outcome = unsafe { original(socket, raw.bytes.as_ptr().cast(), raw.length as socklen_t) };
    match if outcome == 0 { 0 } else { errno() } {
        0 => Ok(()),
        libc::EINPROGRESS | libc::EINTR => {
            wait_for(socket, libc::POLLOUT, PROXY_TIME_MS)?;
            match option::<c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR) {
                Some(0) => Ok(()),
                Some(error) => Err(error),
                None => Err(errno()),
            }
        }
        error => Err(error),
    }
}

/// The choice of a method, the password's acceptance and the reply to the request, no byte more: what
/// follows is the program's.
fn read_answers(socket: c_int, method: u8) -> Result<(), Errno> {
    let [_, chosen] = receive::<2>(socket)?;
    if chosen != method {
        return Err(libc::EACCES);
    }
    if method == METHOD_PASSWORD && receive::<2>(socket)?[1] != 0 {
        return Err(libc::EACCES);
    }
    let [_, reply, _, kind] = receive::<4>(socket)?;
    if reply != 0 {
        return Err(errno_of(reply));
    }
    let bound = match kind {
        1 => 4,
        4 => 16,
        _ => usize::from(receive::<1>(socket)?[0]),
    };
    for _ in 0..bound + 2 {
        receive::<1>(socket)?;
    }
    Ok(())
}

/// Replies of RFC 1928 §6 as the errors of a direct connection.
fn errno_of(reply: u8) -> Errno {
    match reply {
        2 => libc::EACCES,
        3 => libc::ENETUNREACH,
        4 => libc::EHOSTUNREACH,
        5 => libc::ECONNREFUSED,
        6 => libc::ETIMEDOUT,
        _ => libc::ECONNABORTED,
    }
}

/// Kinds of sockets that are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// TCP, or MPTCP, and neither connected nor on the way.
    FreshTcp,
    /// TCP that is connected, on the way or listening.
    Connected,
    /// A stream of another protocol: SCTP, or SMC, which is TCP on the wire.
    OtherStream,
    /// UDP, ICMP, raw packets and the like.
    Datagrams,
    /// No socket.
    Unknown,
}

pub(crate) fn kind(socket: c_int) -> Kind {
    match option::<c_int>(socket, libc::SOL_SOCKET, libc::SO_TYPE) {
        Some(libc::SOCK_STREAM) => {}
        Some(_) => return Kind::Datagrams,
        None => return Kind::Unknown,
    }
    let is_connected = match option::<c_int>(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL) {
        // The state is the first byte of TCP_INFO. If it cannot be read, the socket counts as fresh: the
        // kernel refuses a second connection.
        Some(libc::IPPROTO_TCP) => option::<u8>(socket, libc::IPPROTO_TCP, libc::TCP_INFO)
            .is_some_and(|state| state != TCP_CLOSE),
        // It has no such state; but what is ours is connected when `connect` returns.
        Some(IPPROTO_MPTCP) => is_connected(socket),
        _ => return Kind::OtherStream,
    };
    if is_connected { Kind::Connected } else { Kind::FreshTcp }
}

fn is_connected(socket: c_int) -> bool {
    let mut address = [0_u8; crate::address::LONGEST];
    let mut length = address.len() as socklen_t;
    // SAFETY: as much is writable as is said.
    GETPEERNAME.get().is_some_and(|original| unsafe {
        original(socket, address.as_mut_ptr().cast(), &raw mut length) == 0
    })
}

fn is_blocking(socket: c_int) -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::fcntl(socket, libc::F_GETFL) & libc::O_NONBLOCK == 0 }
}

fn cookie(socket: c_int) -> Option<u64> {
    let before = errno();
    let cookie = option::<u64>(socket, libc::SOL_SOCKET, libc::SO_COOKIE);
    set_errno(before);
    cookie
}

/// A socket option that is a number of this type, for which every value of its bytes is one.
fn option<T: Default + Copy>(socket: c_int, level: c_int, name: c_int) -> Option<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as socklen_t;
    // SAFETY: `value` has `length` bytes; T is an integer wherever this is called.
    let outcome = unsafe {
        libc::getsockopt(socket, level, name, (&raw mut value).cast::<c_void>(), &raw mut length)
    };
    (outcome == 0).then_some(value)
}

fn set_option(socket: c_int, level: c_int, name: c_int, value: c_int) {
    let length = size_of::<c_int>() as socklen_t;
    // SAFETY: `value` has `length` bytes. Where it fails, so will the connection.
    unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast::<c_void>(), length) };
}

/// Waits until the socket is ready or has failed.
fn wait_for(socket: c_int, events: i16, time_ms: c_int) -> Result<(), Errno> {
    let mut entry = pollfd { fd: socket, events, revents: 0 };
    loop {
        // SAFETY: one entry, on this stack.
        match unsafe { libc::poll(&raw mut entry, 1, time_ms) } {
            0 => return Err(libc::ETIMEDOUT),
            1.. => return Ok(()),
            _ if errno() == libc::EINTR => {}
            _ => return Err(errno()),
        }
    }
}

fn send_all(socket: c_int, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the slice is readable.
        let sent = unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) };
        match usize::try_from(sent) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(_) => retry_after(socket, libc::POLLOUT, PROXY_TIME_MS)?,
        }
    }
    Ok(())
}

fn receive<const N: usize>(socket: c_int) -> Result<[u8; N], Errno> {
    let (mut bytes, mut have) = ([0; N], 0);
    while let Some(rest) = bytes.get_mut(have..).filter(|rest| !rest.is_empty()) {
        // SAFETY: the slice is writable.
        let got =
            unsafe { libc::recv(socket, rest.as_mut_ptr().cast(), rest.len(), libc::MSG_DONTWAIT) };
        match usize::try_from(got) {
            // The proxy went away, or ends what it refuses.
            Ok(0) => return Err(libc::ECONNREFUSED),
            Ok(got) => have += got,
            Err(_) => retry_after(socket, libc::POLLIN, ANSWER_TIME_MS)?,
        }
    }
    Ok(bytes)
}

/// After a call has failed: waits if it only would have had to.
fn retry_after(socket: c_int, events: i16, time_ms: c_int) -> Result<(), Errno> {
    match errno() {
        libc::EINTR => Ok(()),
        libc::EAGAIN => wait_for(socket, events, time_ms),
        error => Err(error),
    }
}

/// Makes a socket that the program believes unconnected so again.
fn disconnect(socket: c_int) {
    let nobody = RawAddress { bytes: [0; crate::address::LONGEST], length: size_of::<sockaddr>() };
    if let Some(original) = CONNECT.get() {
        // SAFETY: AF_UNSPEC (0) with the length of a sockaddr, which lies on this stack.
        unsafe { original(socket, nobody.bytes.as_ptr().cast(), nobody.length as socklen_t) };
    }
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
