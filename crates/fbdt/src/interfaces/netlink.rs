//! Messages of rtnetlink, as linux/netlink.h and linux/rtnetlink.h have them.

use std::io;

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Length of a message's header, kinds of messages, and flags of a request for a whole list.
pub(crate) const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST_LIST: u16 = 0x1 | 0x300;

/// Things that are looked at; a machine with more routes is a router, whose owner names the paths.
const MOST: usize = 100_000;

/// Everything of one kind that the kernel lists, as `parse` reads each message. The request is the
/// header and `body` bytes of zeros: every family, table and interface.
///
/// # Errors
/// What the system says, or that there is too much.
pub(crate) fn dump<T>(
    kind: u16,
    body: usize,
    parse: impl Fn(&[u8]) -> Vec<T>,
) -> io::Result<Vec<T>> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut request = ((HEADER + body) as u32).to_ne_bytes().to_vec();
    request.extend(kind.to_ne_bytes());
    request.extend(REQUEST_LIST.to_ne_bytes());
    request.resize(HEADER + body, 0);
    socket.send(&request, 0)?;
    let mut found = Vec::new();
    while found.len() <= MOST {
        let (buffer, _) = socket.recv_from_full()?;
        for message in messages(&buffer) {
            match u16_at(message, 4) {
                Some(DONE) => return Ok(found),
                Some(ERROR) => return Err(io::Error::other("the kernel lists nothing")),
                _ => found.extend(parse(message)),
            }
        }
    }
    Err(io::Error::other(format!("the kernel lists more than {MOST}")))
}

pub(crate) fn messages(buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(buffer, |part| usize::try_from(u32_at(part, 0)?).ok(), HEADER)
}

pub(crate) fn attributes(buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(buffer, |part| u16_at(part, 0).map(usize::from), 4)
}

/// Parts that begin with their length, each from a multiple of four bytes on; a part that is shorter
/// than `least` or longer than what is there ends the list.
pub(crate) fn parts(
    mut rest: &[u8],
    length: fn(&[u8]) -> Option<usize>,
    least: usize,
) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = length(rest).filter(|length| *length >= least)?;
        let part = rest.get(..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(part)
    })
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}
