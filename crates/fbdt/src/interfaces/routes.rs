//! Which interfaces have a route to an address, from rtnetlink.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::netlink::{HEADER, attributes, dump, parts, u16_at, u32_at};

/// Of linux/rtnetlink.h.
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const ROUTE: usize = 12;
const UNICAST: u8 = 1;
const DESTINATION: u16 = 1;
const OUTPUT: u16 = 4;
const GATEWAY: u16 = 5;
const MULTIPATH: u16 = 9;
/// Of linux/socket.h.
const INET: u8 = 2;
const INET6: u8 = 10;

/// The machine's routes to other machines, of all tables.
#[derive(Debug, Default)]
pub(crate) struct Routes(Vec<Route>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Route {
    network: IpAddr,
    prefix: u8,
    /// Index of the interface that it leads through.
    interface: u32,
    /// The router that it leads to, where there is one on the interface.
    gateway: Option<IpAddr>,
}

impl Routes {
    /// The routes that there are now.
    ///
    /// # Errors
    /// What the system says, or that there are too many.
    pub(crate) fn read() -> io::Result<Self> {
        dump(GET_ROUTE, ROUTE, |message| match u16_at(message, 4) {
            Some(NEW_ROUTE) => of_message(message),
            _ => Vec::new(),
        })
        .map(Self)
    }

    /// Whether one of them leads to the address through the interface of this index.
    pub(crate) fn lead_to(&self, address: IpAddr, interface: u32) -> bool {
        let address = address.to_canonical();
        self.through(address, interface).next().is_some()
    }

    /// The routes to the address through the interface of this index, in words.
    pub(crate) fn described(&self, address: IpAddr, interface: u32) -> Vec<String> {
        let words =
            |route: &Route| format!("{}/{} {:?}", route.network, route.prefix, route.gateway);
        self.through(address.to_canonical(), interface).map(words).collect()
    }

    fn through(&self, address: IpAddr, interface: u32) -> impl Iterator<Item = &Route> {
        self.0.iter().filter(move |route| route.interface == interface && route.has(address))
    }

    /// Whether a route to anywhere of this family leads through the interface of this index.
    pub(crate) fn lead_anywhere(&self, is_ipv6: bool, interface: u32) -> bool {
        self.defaults(interface).any(|route| route.network.is_ipv6() == is_ipv6)
    }

    /// The routers that routes to anywhere lead to through the interface of this index.
    pub(crate) fn gateways(&self, interface: u32) -> Vec<IpAddr> {
        let mut gateways: Vec<IpAddr> =
            self.defaults(interface).filter_map(|route| route.gateway).collect();
        gateways.sort_unstable();
        gateways.dedup();
        gateways
    }

    fn defaults(&self, interface: u32) -> impl Iterator<Item = &Route> {
        self.0.iter().filter(move |route| route.interface == interface && route.prefix == 0)
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
    let (mut interfaces, mut gateway) = (Vec::new(), None);
    for attribute in attributes(message.get(HEADER + ROUTE..).unwrap_or_default()) {
        let value = &attribute[4..];
        match u16_at(attribute, 2) {
            Some(DESTINATION) => network = address(value).unwrap_or(network),
            Some(OUTPUT) => interfaces.extend(u32_at(value, 0).map(|index| (index, None))),
            Some(GATEWAY) => gateway = address(value),
            Some(MULTIPATH) => interfaces.extend(hops(value).filter_map(hop)),
            _ => {}
        }
    }
    let route = |(interface, own): (u32, Option<IpAddr>)| {
        let gateway = own.or(gateway);
        Route { network, prefix: *prefix, interface, gateway }
    };
    interfaces.into_iter().map(route).collect()
}

/// The interface of one of several ways, and its router.
fn hop(hop: &[u8]) -> Option<(u32, Option<IpAddr>)> {
    let mut rest = attributes(hop.get(8..).unwrap_or_default());
    let gateway = rest.find(|attribute| u16_at(attribute, 2) == Some(GATEWAY));
    Some((u32_at(hop, 4)?, gateway.and_then(|attribute| address(&attribute[4..]))))
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(value).ok()?)),
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(value).ok()?)),
        _ => None,
    }
}

fn hops(buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(buffer, |part| u16_at(part, 0).map(usize::from), 8)
}

#[cfg(test)]
mod tests {
    use super::super::netlink::messages;
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
    fn routers_of_default_routes_are_known_by_interface() {
        let output = |index: u32| attribute(OUTPUT, &index.to_ne_bytes());
        let router = attribute(GATEWAY, &[10, 1, 0, 1]);
        let net = attribute(DESTINATION, &[10, 9, 0, 0]);
        let mut way = [16u16.to_ne_bytes(), [0, 0]].concat();
        way.extend(8u32.to_ne_bytes());
        way.extend(attribute(GATEWAY, &[10, 2, 0, 1]));
        let known = routes(&[
            message(INET, 0, UNICAST, &[output(2), router.clone()]),
            message(INET, 16, UNICAST, &[net, output(3), router]),
            message(INET, 0, UNICAST, &[attribute(MULTIPATH, &way)]),
        ]);
        let gateways = |index| known.gateways(index);
        assert_eq!(gateways(2), ["10.1.0.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(gateways(8), ["10.2.0.1".parse::<IpAddr>().unwrap()]);
        assert!(gateways(3).is_empty(), "it leads to one network only");
        assert!(known.lead_anywhere(false, 2) && !known.lead_anywhere(true, 2));
        assert!(!known.lead_anywhere(false, 3));
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
