//! The NAT64 prefix that routers advertise (RFC 8781). The kernel passes the options of router
//! advertisements on to whoever listens; nobody else may read them without privileges.

use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use nix::net::if_::if_nametoindex;
use socket2::{Domain, Protocol, Socket, Type};

use super::nat64::Nat64Prefix;
use crate::interfaces::netlink::{HEADER, messages, u16_at, u32_at};

/// Of linux/rtnetlink.h: the kind of message, and its group as a bit.
const NEW_OPTION: u16 = 68;
const GROUP: u32 = 1 << 19;
/// Of its body, and where it has the interface.
const BODY: usize = 16;
const INTERFACE: usize = 4;
/// The option (RFC 8781, section 4): its kind, and its length in units of eight bytes.
const PREF64: [u8; 2] = [38, 2];
/// A router solicitation (RFC 4861, section 4.1), and who gets it.
const SOLICITATION: [u8; 8] = [133, 0, 0, 0, 0, 0, 0, 0];
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The next prefix that a router of the interface advertises; does not end where none is. Where this
/// process may, it asks the routers; else they advertise every few minutes.
pub(crate) async fn advertised(interface: &str) -> Option<Nat64Prefix> {
    let index = if_nametoindex(interface).ok()?;
    let mut socket = TokioSocket::new(NETLINK_ROUTE).ok()?;
    socket.socket_mut().bind(&SocketAddr::new(0, GROUP)).ok()?;
    if let Err(error) = solicit(interface, index) {
        tracing::debug!(interface, %error, "routers are not asked for a NAT64 prefix");
    }
    loop {
        let (buffer, _) = socket.recv_from_full().await.ok()?;
        if let Some(prefix) = messages(&buffer).find_map(|message| in_message(message, index)) {
            return Some(prefix);
        }
    }
}

fn solicit(interface: &str, index: u32) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
    socket.bind_device(Some(interface.as_bytes()))?;
    // RFC 4861, section 6.1.1: routers take no others for solicitations.
    socket.set_multicast_hops_v6(255)?;
    socket.send_to(&SOLICITATION, &SocketAddrV6::new(ALL_ROUTERS, 0, 0, index).into())?;
    Ok(())
}

/// The prefix in a message about this interface.
fn in_message(message: &[u8], index: u32) -> Option<Nat64Prefix> {
    let is_here = u16_at(message, 4) == Some(NEW_OPTION)
        && u32_at(message, HEADER + INTERFACE) == Some(index);
    let option = message.get(HEADER + BODY..).filter(|_| is_here)?;
    let option: &[u8; 16] = option.strip_prefix(&PREF64).and(option.first_chunk())?;
    let scaled = u16::from_be_bytes([option[2], option[3]]);
    // Thirteen bits of lifetime: a prefix without is withdrawn.
    let length = [96, 64, 56, 48, 40, 32].get(usize::from(scaled & 7))?;
    let mut network = [0; 16];
    network[..12].copy_from_slice(&option[4..]);
    Nat64Prefix::new(network.into(), *length).filter(|_| scaled >> 3 > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, index: u32, option: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + BODY];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[HEADER + INTERFACE..][..4].copy_from_slice(&index.to_ne_bytes());
        bytes.extend(option);
        bytes
    }

    fn option(lifetime_and_length: u16) -> Vec<u8> {
        let network: Ipv6Addr = "2001:db8:122:344:5:6:7:8".parse().unwrap();
        [&PREF64[..], &lifetime_and_length.to_be_bytes(), &network.octets()[..12]].concat()
    }

    #[test]
    fn the_option_of_this_interface_is_read() {
        let found = |message: &[u8]| in_message(message, 3);
        let prefix = |network: &str, length| Nat64Prefix::new(network.parse().unwrap(), length);
        let good = message(NEW_OPTION, 3, &option(225 << 3));
        assert_eq!(found(&good), prefix("2001:db8:122:344:5:6::", 96));
        let short = message(NEW_OPTION, 3, &option(225 << 3 | 1));
        assert_eq!(found(&short), prefix("2001:db8:122:344::", 64));
        let dns = [&[25, 3][..], &[0; 22]].concat();
        for other in [
            message(NEW_OPTION, 4, &option(225 << 3)),
            message(NEW_OPTION, 3, &option(0)),
            message(NEW_OPTION, 3, &option(225 << 3 | 7)),
            message(NEW_OPTION, 3, &dns),
            message(16, 3, &option(225 << 3)),
        ] {
            assert_eq!(found(&other), None);
        }
        for length in 0..good.len() {
            assert_eq!(found(&good[..length]), None, "{length} bytes");
        }
    }
}
