//! Which interfaces have a route to an address, from rtnetlink.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Of linux/netlink.h: header, kinds of messages, and flags of a request for a whole list.
const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST_LIST: u16 = 0x1 | 0x300;
/// Of linux/rtnetlink.h.
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const ROUTE: usize = 12;
const UNICAST: u8 = 1;
const DESTINATION: u16 = 1;
const OUTPUT: u16 = 4;
const MULTIPATH: u16 = 9;
/// Of linux/socket.h.
const INET: u8 = 2;
const INET6: u8 = 10;

/// Routes that are looked at; a machine with more is a router, whose owner names the paths.
const MOST: usize = 100_000;

/// The machine's routes to other machines, of all tables.
#[derive(Debug, Default)]
pub(crate) struct Routes(Vec<Route>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Route {
    network: IpAddr,
    prefix: u8,
    /// Index of the interface that it leads through.
    interface: u32,
}

impl Routes {
    /// The routes that there are now.
    ///
    /// # Errors
    /// What the system says, or that there are too many.
    pub(crate) fn read() -> io::Result<Self> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.send(&request(), 0)?;
        let mut routes = Vec::new();
        while routes.len() <= MOST {
            let (buffer, _) = socket.recv_from_full()?;
            for message in messages(&buffer) {
                match u16_at(message, 4) {
                    Some(NEW_ROUTE) => routes.extend(of_message(message)),
                    Some(DONE) => return Ok(Self(routes)),
                    Some(ERROR) => return Err(io::Error::other("the kernel lists no routes")),
                    _ => {}
                }
            }
        }
        Err(io::Error::other(format!("there are more than {MOST} routes")))
    }

    /// Whether one of them leads to the address through the interface of this index.
    pub(crate) fn lead_to(&self, address: IpAddr, interface: u32) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|route| route.interface == interface && route.has(address))
    }
}

impl Route {
    fn has(&self, address: IpAddr) -> bool {
        let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix.min(128))).unwrap_or(0);
        address.is_ipv4() == self.network.is_ipv4()
            && (bits(address) ^ bits(self.network)) & mask == 0
    }
}

/// The address from the highest bit on.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn request() -> Vec<u8> {
    let length = HEADER + ROUTE;
    let mut message = (length as u32).to_ne_bytes().to_vec();
    message.extend(GET_ROUTE.to_ne_bytes());
    message.extend(REQUEST_LIST.to_ne_bytes());
    message.resize(length, 0); // every family and table
    message
}

/// The routes that a message tells of: one for each interface that it leads through.
fn of_message(message: &[u8]) -> Vec<Route> {
    let Some(([family, prefix], kind)) =
        message.get(HEADER..).and_then(|route| Some((route.first_chunk::<2>()?, route.get(7)?)))
    else {
        return Vec::new();
    };
    if *kind != UNICAST {
        return Vec::new();
    }
    let mut network = match *family {
        INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        INET6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return Vec::new(),
    };
    let mut interfaces = Vec::new();
    for attribute in attributes(message.get(HEADER + ROUTE..).unwrap_or_default()) {
        let value = &attribute[4..];
        match u16_at(attribute, 2) {
            Some(DESTINATION) => network = address(value).unwrap_or(network),
            Some(OUTPUT) => interfaces.extend(u32_at(value, 0)),
            Some(MULTIPATH) => interfaces.extend(hops(value).filter_map(|hop| u32_at(hop, 4))),
            _ => {}
        }
    }
    interfaces.into_iter().map(|interface| Route { network, prefix: *prefix, interface }).collect()
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(value).ok()?)),
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(value).ok()?)),
        _ => None,
    }
}

fn messages(buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(buffer, |part| usize::try_from(u32_at(part, 0)?).ok(), HEADER)
}

fn attributes(buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(buffer, |part| u16_at(part, 0).map(usize::from), 4)
}

fn hops(buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(buffer, |part| u16_at(part, 0).map(usize::from), 8)
}

/// Parts that begin with their length, each from a multiple of four bytes on; a part that is shorter
/// than `least` or longer than what is there ends the list.
fn parts(
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

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + value.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(family: u8, prefix: u8, kind: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes.extend([family, prefix, 0, 0, 254, 0, 0, kind, 0, 0, 0, 0]);
        bytes.extend(attributes.concat());
        let length = u32::try_from(bytes.len()).unwrap();
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes[4..6].copy_from_slice(&NEW_ROUTE.to_ne_bytes());
        bytes
    }

    fn routes(list: &[Vec<u8>]) -> Routes {
        Routes(messages(&list.concat()).flat_map(of_message).collect())
    }

    fn leads(routes: &Routes, address: &str, interface: u32) -> bool {
        routes.lead_to(address.parse().unwrap(), interface)
    }

    #[test]
    fn networks_and_defaults_of_both_families() {
        let output = |index: u32| attribute(OUTPUT, &index.to_ne_bytes());
        let v6: Ipv6Addr = "2001:db8::".parse().unwrap();
        let known = routes(&[
            message(INET, 0, UNICAST, &[output(2)]),
            message(INET, 16, UNICAST, &[attribute(DESTINATION, &[172, 17, 0, 0]), output(3)]),
            message(INET6, 32, UNICAST, &[attribute(DESTINATION, &v6.octets()), output(4)]),
            message(INET, 0, 6, &[output(5)]), // a black hole
        ]);
        assert!(leads(&known, "203.0.113.1", 2) && leads(&known, "172.17.9.9", 3));
        assert!(leads(&known, "2001:db8:1::1", 4) && leads(&known, "::ffff:172.17.0.2", 3));
        for (address, interface) in
            [("203.0.113.1", 3), ("203.0.113.1", 5), ("2001:db9::1", 4), ("2001:db8::1", 2)]
        {
            assert!(!leads(&known, address, interface), "{address} by {interface}");
        }
    }

    #[test]
    fn each_of_several_ways_leads_there() {
        let hop = |index: u32| {
            let mut bytes = [8u16.to_ne_bytes(), [0, 0]].concat();
            bytes.extend(index.to_ne_bytes());
            bytes
        };
        let ways = attribute(MULTIPATH, &[hop(7), hop(8)].concat());
        let known = routes(&[message(INET, 0, UNICAST, &[ways])]);
        assert!(leads(&known, "192.0.2.1", 7) && leads(&known, "192.0.2.1", 8));
    }

    #[test]
    fn what_is_cut_off_or_senseless_is_left_out() {
        let whole = message(INET, 0, UNICAST, &[attribute(OUTPUT, &2u32.to_ne_bytes())]);
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            assert_eq!(routes(&[cut.clone()]).0, []);
            if let Some(said) = cut.get_mut(..4) {
                said.copy_from_slice(&u32::try_from(length).unwrap().to_ne_bytes());
                assert_eq!(routes(&[cut]).0, [], "{length} bytes");
            }
        }
        assert_eq!(routes(&[vec![0; 64], vec![0xff; 64]]).0, []);
    }

    #[test]
    fn the_kernel_lists_its_routes() {
        Routes::read().unwrap();
    }
}
