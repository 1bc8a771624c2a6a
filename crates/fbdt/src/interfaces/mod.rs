//! The machine's network interfaces: which could carry a path, and when that changes.

mod kinds;
pub(crate) mod netlink;
mod place;
mod routes;
mod suspension;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;

pub(crate) use kinds::tunnels;
pub(crate) use place::Places;
pub(crate) use routes::Routes;
pub(crate) use suspension::SuspensionWatch;
pub(crate) use watch::InterfaceWatch;

/// An interface that is up and has addresses of more than its own link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) addresses: Vec<IpAddr>,
}

/// An interface that is a path, for whoever decides how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathInterface {
    /// Its name.
    pub name: String,
    /// Its kernel driver, as in `cdc_ether`, if it has a device.
    pub driver: Option<String>,
    /// The gateways of its routes to anywhere.
    pub gateways: Vec<IpAddr>,
}

/// Decides how interfaces are used that become paths.
pub trait PathInterfaces: fmt::Debug + Send + Sync {
    /// These are all paths now; those that are new are dialled next.
    fn found(&self, interfaces: &[PathInterface]);
}

/// Describes interfaces that are paths.
pub(crate) fn describe(interfaces: &[Interface]) -> Vec<PathInterface> {
    let routes = Routes::read().unwrap_or_default();
    let of = |interface: &Interface| {
        let name = interface.name.clone();
        let gateways = if_nametoindex(name.as_str()).map(|index| routes.gateways(index));
        PathInterface { driver: driver(&name), name, gateways: gateways.unwrap_or_default() }
    };
    interfaces.iter().map(of).collect()
}

/// Whether a name is one of a pattern's, in which `*` stands for any characters and `?` for one.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Where the rest of the pattern may begin to match, after each of its characters.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for wanted in pattern {
        if wanted == '*' {
            let first = reached.iter().position(|reached| *reached).unwrap_or(reached.len());
            reached.iter_mut().skip(first).for_each(|reached| *reached = true);
            continue;
        }
        for at in (0..name.len()).rev() {
            reached[at + 1] = reached[at] && (wanted == '?' || wanted == name[at]);
        }
        reached[0] = false;
    }
    reached.last().copied().unwrap_or(false)
}

/// The driver of an interface's device, as sysfs names it.
fn driver(name: &str) -> Option<String> {
    let link = std::fs::read_link(format!("/sys/class/net/{name}/device/driver")).ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
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
    fn patterns_match_whole_names() {
        for (pattern, name) in [
            ("enx*", "enx01"),
            ("enx*", "enx"),
            ("*", ""),
            ("w?an*0", "wwan10"),
            ("*a*b", "xaybzb"),
        ] {
            assert!(name_matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("enx*", "eth0"),
            ("enx", "enx01"),
            ("?", ""),
            ("w?an0", "wan0"),
            ("*a*b", "ba"),
            ("", "a"),
        ] {
            assert!(!name_matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn loopback_is_up_and_not_usable() {
        assert!(up().unwrap().iter().any(|i| i.name == "lo"));
        assert!(usable().unwrap().iter().all(|i| i.name != "lo"));
    }
}
