//! Asks the kernel where packets to an address would go: to another machine, or to this one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::libc;

/// Sizes of `struct nlmsghdr` and `struct rtmsg`, and where the latter has the kind of the route.
const HEADER: usize = 16;
const ROUTE: usize = 12;
const KIND: usize = HEADER + 7;
/// Attribute of `struct rtmsg`: the address that is asked about.
const DESTINATION: u16 = 1;

/// Direction of packets to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// To another machine.
    Away,
    /// To this machine, by an address of an interface or by a local route.
    Here,
    /// To several machines, or to any of several.
    Many,
}

/// The kernel's route to an address.
///
/// # Errors
/// There is none; or the kernel gave no answer.
pub(super) fn route(address: IpAddr) -> io::Result<Route> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    // The kernel has answered when the request is sent: nothing is waited for.
    socket.set_non_blocking(true)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(address.to_canonical()), 0)?;
    let (answer, _) = socket.recv_from_full()?;
    read(&answer)
}

/// The address families in which this machine has a way to the Internet.
pub(crate) fn families() -> Vec<&'static str> {
    let somewhere: [(&str, IpAddr); 2] = [
        ("ipv4", Ipv4Addr::new(8, 8, 8, 8).into()),
        ("ipv6", Ipv6Addr::new(0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888).into()),
    ];
    let reached = somewhere.into_iter().filter(|(_, address)| route(*address).is_ok());
    reached.map(|(family, _)| family).collect()
}

fn request(address: IpAddr) -> Vec<u8> {
    let (family, bytes) = match address {
        IpAddr::V4(four) => (libc::AF_INET, four.octets().to_vec()),
        IpAddr::V6(six) => (libc::AF_INET6, six.octets().to_vec()),
    };
    let length = HEADER + ROUTE + 4 + bytes.len();
    let mut message = (length as u32).to_ne_bytes().to_vec();
    message.extend(libc::RTM_GETROUTE.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.resize(HEADER, 0);
    message.extend([family as u8, 8 * bytes.len() as u8]);
    message.resize(HEADER + ROUTE, 0);
    message.extend((4 + bytes.len() as u16).to_ne_bytes());
    message.extend(DESTINATION.to_ne_bytes());
    message.extend(bytes);
    message
}

fn read(answer: &[u8]) -> io::Result<Route> {
    let kind =
        answer.get(4..6).and_then(|kind| kind.first_chunk()).map(|kind| u16::from_ne_bytes(*kind));
    let senseless = || io::Error::other("the kernel's answer about a route makes no sense");
    match kind {
        Some(libc::RTM_NEWROUTE) => match answer.get(KIND) {
            Some(&libc::RTN_UNICAST) => Ok(Route::Away),
            Some(&libc::RTN_LOCAL) => Ok(Route::Here),
            Some(&(libc::RTN_BROADCAST | libc::RTN_MULTICAST | libc::RTN_ANYCAST)) => {
                Ok(Route::Many)
            }
            Some(
                &(libc::RTN_BLACKHOLE
                | libc::RTN_UNREACHABLE
                | libc::RTN_PROHIBIT
                | libc::RTN_THROW),
            ) => Err(io::Error::from_raw_os_error(libc::ENETUNREACH)),
            _ => Err(senseless()),
        },
        Some(kind) if kind == libc::NLMSG_ERROR as u16 => {
            let code = answer.get(HEADER..).and_then(|code| code.first_chunk());
            match code.map(|code| i32::from_ne_bytes(*code)) {
                Some(code @ ..0) => Err(io::Error::from_raw_os_error(-code)),
                _ => Err(senseless()),
            }
        }
        _ => Err(senseless()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn of_kind(kind: u8) -> io::Result<Route> {
        read(&answer(libc::RTM_NEWROUTE, &[2, 32, 0, 0, 255, 0, 0, kind, 0, 0, 0, 0]))
    }

    /// All of 127.0.0.0/8 is this machine's by a local route, and only one address of it is an interface's.
    #[test]
    fn the_kernel_tells_local_routes() {
        for here in ["127.0.0.1", "127.45.6.7", "::ffff:127.45.6.7"] {
            assert_eq!(route(here.parse().unwrap()).unwrap(), Route::Here, "{here}");
        }
        assert_eq!(route("127.255.255.255".parse().unwrap()).unwrap(), Route::Many);
    }

    #[test]
    fn only_a_unicast_route_leads_away() {
        assert_eq!(of_kind(libc::RTN_UNICAST).unwrap(), Route::Away);
        assert_eq!(of_kind(libc::RTN_LOCAL).unwrap(), Route::Here);
        for many in [libc::RTN_BROADCAST, libc::RTN_ANYCAST, libc::RTN_MULTICAST] {
            assert_eq!(of_kind(many).unwrap(), Route::Many);
        }
        for none in [libc::RTN_BLACKHOLE, libc::RTN_UNREACHABLE, libc::RTN_PROHIBIT] {
            assert_eq!(of_kind(none).unwrap_err().kind(), io::ErrorKind::NetworkUnreachable);
        }
        for senseless in [0, 77] {
            assert!(of_kind(senseless).is_err());
        }
    }

    #[test]
    fn an_answer_without_sense_is_an_error() {
        let refused = answer(2, &(-libc::EHOSTUNREACH).to_ne_bytes());
        assert_eq!(read(&refused).unwrap_err().kind(), io::ErrorKind::HostUnreachable);
        let whole = answer(libc::RTM_NEWROUTE, &[2, 32, 0, 0, 255, 0, 0, 1]);
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut} bytes");
        }
        assert!(read(&answer(2, &0_i32.to_ne_bytes())).is_err());
        assert!(read(&answer(3, &[0; 12])).is_err());
    }
}
