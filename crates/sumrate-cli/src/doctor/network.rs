//! Interfaces, routes, the reverse-path filter and MTUs, for each interface that could be a path.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;

use fbdt::Link;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Finding, sysctl};

/// The least that IPv6 demands of a link (RFC 8200, section 5).
const MTU_MIN: i32 = 1280;

/// Where routes are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The address; nothing is sent to it.
    pub address: IpAddr,
    /// Whether it is a server's, and not just any address of the Internet.
    pub is_server: bool,
}

/// The IPv4 addresses of a link's servers, or else one that stands for the Internet (RFC 5737).
pub fn targets(link: Option<&Link>) -> Vec<Target> {
    let servers = link.into_iter().flat_map(Link::servers).filter_map(fbdt::ServerAddress::ip);
    let v4 = |address: &IpAddr| address.is_ipv4() && !address.is_loopback();
    let mut found: Vec<Target> =
        servers.filter(v4).map(|address| Target { address, is_server: true }).collect();
    if found.is_empty() {
        let address = Ipv4Addr::new(203, 0, 113, 1).into();
        found.push(Target { address, is_server: false });
    }
    found
}

/// Kinds of interfaces that lead to no network of their own: what they carry leaves by another.
const INTERNAL: [&str; 12] = [
    "bridge",
    "tun",
    "wireguard",
    "dummy",
    "vxlan",
    "gre",
    "ipip",
    "sit",
    "vti",
    "xfrm",
    "ifb",
    "nlmon",
];

/// An interface that could be a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    name: String,
    address: Option<Ipv4Addr>,
    /// Whether it has an address of IPv6 that is not its own link's alone.
    ipv6: bool,
    prefix: u32,
    up: bool,
    carrier: bool,
}

/// Every check of the network.
pub(super) fn findings(targets: &[Target]) -> Vec<Finding> {
    let tunnels = fbdt::tunnels().unwrap_or_default();
    let (in_tunnels, candidates): (Vec<Candidate>, Vec<Candidate>) =
        candidates().into_iter().partition(|candidate| tunnels.contains_key(&candidate.name));
    let (left_out, candidates): (Vec<Candidate>, Vec<Candidate>) = candidates
        .into_iter()
        .partition(|candidate| usable(candidate) && is_left_out(candidate, targets));
    let mut findings = vec![count(&candidates)];
    let in_tunnels = in_tunnels.iter().filter(|candidate| usable(candidate));
    findings.extend(
        in_tunnels
            .filter_map(|candidate| Some(tunnel(&candidate.name, tunnels.get(&candidate.name)?))),
    );
    findings.extend(left_out.iter().map(|candidate| internal(&candidate.name)));
    for candidate in &candidates {
        findings.extend(interface(candidate));
        let Some(address) = candidate.address.filter(|_| candidate.up && candidate.carrier) else {
            continue;
        };
        for target in targets {
            let enough = reaching(&candidates, *target) > 1;
            findings.extend(path(candidate, address, *target, enough));
        }
    }
    findings
}

/// Every interface but loopback, by name.
fn candidates() -> Vec<Candidate> {
    let mut found: BTreeMap<String, Candidate> = BTreeMap::new();
    for entry in nix::ifaddrs::getifaddrs().into_iter().flatten() {
        if entry.flags.contains(InterfaceFlags::IFF_LOOPBACK) {
            continue;
        }
        let new = || Candidate {
            name: entry.interface_name.clone(),
            address: None,
            ipv6: false,
            prefix: 24,
            up: entry.flags.contains(InterfaceFlags::IFF_UP),
            carrier: entry.flags.contains(InterfaceFlags::IFF_RUNNING),
        };
        let candidate = found.entry(entry.interface_name.clone()).or_insert_with(new);
        let v6 = entry.address.as_ref().and_then(|address| address.as_sockaddr_in6());
        candidate.ipv6 |= v6.is_some_and(|v6| !v6.ip().is_unicast_link_local());
        let v4 = entry.address.as_ref().and_then(|address| address.as_sockaddr_in());
        if let (Some(v4), None) = (v4, candidate.address) {
            candidate.address = Some(v4.ip());
            let mask = entry.netmask.as_ref().and_then(|mask| mask.as_sockaddr_in());
            candidate.prefix = mask.map_or(24, |mask| mask.ip().to_bits().count_ones());
        }
    }
    found.into_values().collect()
}

fn usable(candidate: &Candidate) -> bool {
    let ipv4 = candidate.address.is_some_and(|own| !own.is_link_local());
    candidate.up && candidate.carrier && (ipv4 || candidate.ipv6)
}

fn count(candidates: &[Candidate]) -> Finding {
    let names: Vec<&str> =
        candidates.iter().filter(|c| usable(c)).map(|c| c.name.as_str()).collect();
    match names.len() {
        0 => Finding::problem("interfaces", "no interface is up with an address"),
        1 => Finding::warning(
            "interfaces",
            format!("only {} is usable: a second one is needed to gain speed", names[0]),
        ),
        _ => Finding::ok("interfaces", format!("usable: {}", names.join(", "))),
    }
}

/// How many of them lead to a target.
fn reaching(candidates: &[Candidate], target: Target) -> usize {
    let leads = |candidate: &&Candidate| {
        let name = candidate.name.as_str();
        usable(candidate)
            && bound_socket(name, target.address).is_ok()
            && has_route(target.address, name) != Some(false)
    };
    candidates.iter().filter(leads).count()
}

/// Whether it is no fault that no route to a server leads through it: a bridge of containers, a tunnel.
fn is_left_out(candidate: &Candidate, targets: &[Target]) -> bool {
    let name = candidate.name.as_str();
    let unrouted = |target: &Target| has_route(target.address, name) == Some(false);
    targets.iter().all(unrouted) && kind(name).is_some_and(|kind| INTERNAL.contains(&kind.as_str()))
}

fn tunnel(name: &str, kind: &str) -> Finding {
    let found = format!(
        "not used as a path: it is a tunnel ({kind}), whose packets leave by another interface; --backup \
         or --path would use it"
    );
    Finding::ok("interface", found).of(name).mend(format!("sumrate up LINK --backup {name}"))
}

fn internal(name: &str) -> Finding {
    let found = "not used as a path: it is virtual, and no route to a server leads through it";
    Finding::ok("interface", found).of(name)
}

/// What is wrong with one that is not usable.
fn interface(candidate: &Candidate) -> Option<Finding> {
    let Candidate { name, address, up, carrier, .. } = candidate;
    let finding = match (up, carrier, address) {
        (false, _, Some(_)) => Finding::warning("interface", "has an address but is down")
            .mend(format!("ip link set {name} up")),
        (true, false, Some(_)) => {
            Finding::warning("interface", "no carrier: cable or radio not connected")
        }
        (true, true, Some(own)) if own.is_link_local() && !candidate.ipv6 => {
            Finding::warning("interface", "only a self-assigned address (DHCP failed)")
        }
        _ => return None,
    };
    Some(finding.of(name))
}

/// Route, reverse-path filter and MTU of a path; `enough` if there are several with a route.
fn path(candidate: &Candidate, own: Ipv4Addr, target: Target, enough: bool) -> Vec<Finding> {
    let name = candidate.name.as_str();
    let socket = match bound_socket(name, target.address) {
        Ok(socket) => socket,
        Err(error) => {
            return vec![no_route(candidate, own, target, enough, &error.to_string()).of(name)];
        }
    };
    // A socket that is bound to an interface without a route takes every address for a neighbour's.
    if has_route(target.address, name) == Some(false) {
        return vec![no_route(candidate, own, target, enough, "no route").of(name)];
    }
    let mut findings = vec![route(&socket, own, target).of(name)];
    let strict = ["all", name].iter().filter_map(|of| sysctl::of_interface(of, "rp_filter")).max();
    let way_out = route_device(target.address, own);
    findings
        .extend(filter(name, strict, way_out.as_deref(), target).map(|finding| finding.of(name)));
    if let Ok(mtu) = getsockopt(&socket, sockopt::IpMtu) {
        findings.push(size(name, mtu).of(name));
    }
    findings
}

/// A socket whose packets leave by an interface; no packet is sent.
fn bound_socket(interface: &str, target: IpAddr) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(SocketAddr::new(target, 9)),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.connect(&SocketAddr::new(target, 9).into())?;
    Ok(socket.into())
}

fn what(target: Target) -> String {
    match target.is_server {
        true => format!("the server {}", target.address),
        false => "the Internet".to_owned(),
    }
}

fn no_route(
    candidate: &Candidate,
    own: Ipv4Addr,
    target: Target,
    enough: bool,
    error: &str,
) -> Finding {
    let found = format!("no route to {} through it ({error}); not used as a path", what(target));
    let host = if target.is_server { target.address.to_string() } else { "default".to_owned() };
    let gateway = first_of_network(own, candidate.prefix);
    // Another default route is there already: this one must not take its place.
    let command = format!("ip route add {host} via {gateway} dev {} metric 1001", candidate.name);
    let guess = format!("router {gateway} is a guess");
    let finding = match target.is_server && !enough {
        true => Finding::problem("route", format!("{found} ({guess})")),
        // Nobody knows whether it is to be a path: it may lead to machines behind this one only.
        false => Finding::warning(
            "route",
            format!("{found}; to use it as a path, add a route ({guess})"),
        ),
    };
    finding.mend(command)
}

/// The address that most networks give their router.
fn first_of_network(own: Ipv4Addr, prefix: u32) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32 - prefix.min(32)).unwrap_or(0);
    let first = (own.to_bits() & mask) | 1;
    if first == own.to_bits() { Ipv4Addr::from_bits(first + 1) } else { Ipv4Addr::from_bits(first) }
}

fn route(socket: &UdpSocket, own: Ipv4Addr, target: Target) -> Finding {
    match socket.local_addr() {
        Ok(local) if local.ip() == IpAddr::V4(own) => {
            Finding::ok("route", format!("{} is reached from {own}", what(target)))
        }
        Ok(local) => Finding::warning(
            "route",
            format!(
                "{} would be reached from {}, which is another interface's address",
                what(target),
                local.ip()
            ),
        ),
        Err(error) => Finding::warning("route", error.to_string()),
    }
}

/// Whether any route to the target leads through an interface; `None` where `ip` is not installed.
fn has_route(target: IpAddr, interface: &str) -> Option<bool> {
    let target = target.to_string();
    let arguments = ["-json", "route", "show", "table", "all", "match", &target, "dev", interface];
    let output = Command::new("ip").args(arguments).output().ok().filter(|o| o.status.success())?;
    let routes: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(!routes.as_array()?.is_empty())
}

/// What sort of interface it is, as `ip` names it; `None` for a card, or where `ip` is not installed.
fn kind(interface: &str) -> Option<String> {
    let arguments = ["-json", "-details", "link", "show", "dev", interface];
    let output = Command::new("ip").args(arguments).output().ok()?;
    let links: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(links.get(0)?.get("linkinfo")?.get("info_kind")?.as_str()?.to_owned())
}

/// The interface by which answers from this address of ours would leave, as the kernel decides;
/// `None` where `ip` is not installed.
fn route_device(target: IpAddr, own: Ipv4Addr) -> Option<String> {
    let arguments = ["-json", "route", "get", &target.to_string(), "from", &own.to_string()];
    let output = Command::new("ip").args(arguments).output().ok()?;
    let routes: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(routes.get(0)?.get("dev")?.as_str()?.to_owned())
}

/// The strict filter drops what comes by another interface than it would be answered by (RFC 3704).
fn filter(
    name: &str,
    strictest: Option<u32>,
    way_out: Option<&str>,
    target: Target,
) -> Option<Finding> {
    let check = "reverse-path-filter";
    match (strictest?, way_out) {
        (1, Some(device)) if device != name => Some(
            Finding::problem(
                check,
                format!(
                    "drops answers of {} that arrive on it, because the route leads through {device}",
                    what(target)
                ),
            )
            .mend(sysctl::set(&format!("ipv4.conf.{}.rp_filter", name.replace('.', "/")), "2")),
        ),
        (1, None) => Some(Finding::warning(
            check,
            "strict; install `ip` (iproute2) to find out whether it drops answers",
        )),
        _ => Some(Finding::ok(check, "accepts answers")),
    }
}

fn size(name: &str, mtu: i32) -> Finding {
    match mtu < MTU_MIN {
        true => {
            Finding::warning("mtu", format!("{mtu} bytes: TLS over such small packets is slow"))
                .mend(format!("ip link set {name} mtu 1500"))
        }
        false => Finding::ok("mtu", format!("{mtu} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    fn candidate(name: &str, up: bool, carrier: bool, address: Option<[u8; 4]>) -> Candidate {
        let address = address.map(Ipv4Addr::from);
        Candidate { name: name.to_owned(), address, ipv6: false, prefix: 24, up, carrier }
    }

    #[test]
    fn two_usable_interfaces_are_wanted() {
        let a = candidate("a", true, true, Some([10, 0, 0, 2]));
        let b = candidate("b", true, true, Some([10, 0, 1, 2]));
        let down = candidate("c", false, false, Some([10, 0, 2, 2]));
        let own = candidate("d", true, true, Some([169, 254, 2, 2]));
        assert_eq!(count(&[a.clone(), b]).level, Level::Ok);
        let six = Candidate { ipv6: true, ..candidate("e", true, true, None) };
        assert_eq!(count(&[a.clone(), six]).level, Level::Ok, "IPv6 alone");
        assert_eq!(count(&[a.clone(), down.clone(), own.clone()]).level, Level::Warning);
        assert_eq!(count(std::slice::from_ref(&down)).level, Level::Problem);
        assert_eq!(interface(&down).unwrap().mend.as_deref(), Some("ip link set c up"));
        assert_eq!(interface(&own).unwrap().level, Level::Warning);
        assert_eq!(interface(&a), None);
    }

    #[test]
    fn routers_are_guessed() {
        let guess = |own, prefix| first_of_network(Ipv4Addr::from(own), prefix).to_string();
        assert_eq!(guess([10, 0, 1, 77], 24), "10.0.1.1");
        assert_eq!(guess([10, 0, 1, 77], 8), "10.0.0.1");
        assert_eq!(guess([10, 0, 1, 1], 24), "10.0.1.2");
        assert_eq!(guess([10, 0, 1, 7], 0), "0.0.0.1");
    }

    #[test]
    fn a_server_must_be_reached_by_two_and_by_others_may() {
        let own = Ipv4Addr::new(10, 0, 0, 2);
        let a = candidate("a", true, true, Some(own.octets()));
        let internet = targets(None)[0];
        let server = Target { is_server: true, ..internet };
        let level = |target, enough| no_route(&a, own, target, enough, "none").level;
        assert_eq!(level(server, false), Level::Problem);
        assert_eq!(level(server, true), Level::Warning);
        assert_eq!(level(internet, false), Level::Warning);
    }

    #[test]
    fn only_a_strict_filter_on_another_way_drops() {
        let target = targets(None)[0];
        let level = |strictest, way| filter("a", strictest, way, target).map(|found| found.level);
        assert_eq!(level(Some(1), Some("b")), Some(Level::Problem));
        assert_eq!(level(Some(1), Some("a")), Some(Level::Ok));
        assert_eq!(level(Some(2), Some("b")), Some(Level::Ok));
        assert_eq!(level(Some(1), None), Some(Level::Warning));
        assert_eq!(level(None, Some("b")), None);
        assert_eq!((size("a", 1000).level, size("a", 1500).level), (Level::Warning, Level::Ok));
    }
}
