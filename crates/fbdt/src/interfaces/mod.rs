//! The machine's network interfaces: which could carry a path, and when that changes.

mod kinds;
pub(crate) mod netlink;
mod routes;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;

pub(crate) use kinds::tunnels;
pub(crate) use routes::Routes;
pub(crate) use watch::InterfaceWatch;

/// An interface that is up and has addresses of more than its own link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) addresses: Vec<IpAddr>,
}

impl Interface {
    /// Whether it has IPv6 alone: IPv4 servers are reached by the network's NAT64, if at all.
    pub(crate) fn is_ipv6_only(&self) -> bool {
        self.addresses.iter().all(IpAddr::is_ipv6)
    }

    /// Whether a route leads to one of the servers, or to where one may be: the names of servers are
    /// not looked up yet, or a NAT64 may lead to them.
    fn leads_to(&self, servers: &[IpAddr], routes: &Routes, index: u32) -> bool {
        let anywhere = |is_ipv6| routes.lead_anywhere(is_ipv6, index);
        if servers.is_empty() {
            return anywhere(false) || anywhere(true);
        }
        let by_nat64 = || self.is_ipv6_only() && servers.iter().any(IpAddr::is_ipv4);
        servers.iter().any(|server| routes.lead_to(*server, index))
            || (by_nat64() && anywhere(true))
    }
}

/// The name of the interface that has this address.
pub(crate) fn with_address(address: IpAddr) -> Option<Interface> {
    usable().ok()?.into_iter().find(|interface| interface.addresses.contains(&address))
}

/// Every interface that could carry a path, by name: up, running, not loopback, and with a global
/// or private unicast address.
///
/// # Errors
/// The system does not tell, e.g. because the process has no descriptor left to ask with.
pub(crate) fn usable() -> io::Result<Vec<Interface>> {
    list(|interface, address| {
        !interface.flags.contains(InterfaceFlags::IFF_LOOPBACK) && is_routable(address)
    })
}

/// Parts interfaces by whether a route to one of these servers leads through them. A socket bound to
/// one without a route takes every address for a neighbour's, and would be dialled for ever. All are
/// taken to have one where the system does not list its routes.
pub(crate) fn by_route(
    interfaces: Vec<Interface>,
    servers: &[IpAddr],
) -> (Vec<Interface>, Vec<Interface>) {
    let routes = match Routes::read() {
        Ok(routes) => routes,
        Err(error) => {
            tracing::debug!(%error, "routes cannot be read: every interface is a path");
            return (interfaces, Vec::new());
        }
    };
    interfaces.into_iter().partition(|interface| {
        // What is gone meanwhile is news of its own.
        if_nametoindex(interface.name.as_str())
            .map_or(true, |index| interface.leads_to(servers, &routes, index))
    })
}

/// Every interface that is up, loopback and link-local addresses included.
///
/// # Errors
/// The system does not tell.
pub(crate) fn up() -> io::Result<Vec<Interface>> {
    list(|_, _| true)
}

fn list(keep: impl Fn(&InterfaceAddress, IpAddr) -> bool) -> io::Result<Vec<Interface>> {
    let running = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let mut found: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for interface in getifaddrs()? {
        let Some(address) = interface.address.as_ref().and_then(ip_of) else {
            continue;
        };
        if interface.flags.contains(running) && keep(&interface, address) {
            found.entry(interface.interface_name).or_default().push(address);
        }
    }
    Ok(found.into_iter().map(|(name, addresses)| Interface { name, addresses }).collect())
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = || address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
    let v6 = || address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip()));
    v4().or_else(v6)
}

/// Whether packets from this address get beyond the link.
fn is_routable(address: IpAddr) -> bool {
    if address.is_loopback() || address.is_unspecified() || address.is_multicast() {
        return false;
    }
    match address {
        IpAddr::V4(v4) => !v4.is_link_local() && !v4.is_broadcast(),
        IpAddr::V6(v6) => !is_link_local(v6),
    }
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_and_loopback_carry_no_path() {
        let routable = |text: &str| is_routable(text.parse().unwrap());
        assert!(["10.0.0.1", "192.0.2.1", "fd00::1", "2001:db8::1"].map(routable) == [true; 4]);
        assert!(["127.0.0.1", "169.254.1.1", "fe80::1", "::1"].map(routable) == [false; 4]);
    }

    #[test]
    fn loopback_is_up_and_not_usable() {
        assert!(up().unwrap().iter().any(|i| i.name == "lo"));
        assert!(usable().unwrap().iter().all(|i| i.name != "lo"));
    }
}
