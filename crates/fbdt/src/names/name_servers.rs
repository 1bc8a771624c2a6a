//! Which name servers to ask through an interface.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use nix::net::if_::if_nametoindex;

use crate::interfaces::Routes;

/// Where the system keeps its name servers; behind systemd-resolved's own address stand those of the
/// second file.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
const PORT: u16 = 53;
/// More are not asked.
const MOST: usize = 8;

/// The system's name servers and, behind them, the interface's routers: most of those answer, and the
/// system may know the name servers of another network only.
pub(super) fn of(interface: &str) -> Vec<SocketAddr> {
    let Ok(index) = if_nametoindex(interface) else { return Vec::new() };
    let named = FILES.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    let mut found: Vec<SocketAddr> = Vec::new();
    for text in named {
        found.extend(in_file(&text, index));
    }
    let routers = Routes::read().map(|routes| routes.gateways(index)).unwrap_or_default();
    found.extend(routers.into_iter().map(|router| at(router, index)));
    let mut distinct: Vec<SocketAddr> = Vec::new();
    for server in found {
        if !distinct.contains(&server) {
            distinct.push(server);
        }
    }
    distinct.truncate(MOST);
    distinct
}

/// The name servers of a resolv.conf(5) that can be asked through the interface of this index: none of
/// this machine's own, which ask wherever they are set up to.
fn in_file(text: &str, index: u32) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
        let address: IpAddr = address.split('%').next()?.parse().ok()?;
        (!address.is_loopback() && !address.is_unspecified()).then(|| at(address, index))
    };
    text.lines().filter_map(server).collect()
}

fn at(address: IpAddr, index: u32) -> SocketAddr {
    match address {
        IpAddr::V4(v4) => SocketAddr::from((v4, PORT)),
        IpAddr::V6(v6) => SocketAddrV6::new(v6, PORT, 0, scope(v6, index)).into(),
    }
}

/// Addresses of one link need to be told which.
fn scope(address: Ipv6Addr, index: u32) -> u32 {
    if address.is_unicast_link_local() { index } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_beyond_this_machine_are_asked() {
        let text = "# nameserver 9.9.9.9\nsearch example.org\nnameserver 127.0.0.53\n\
                    nameserver 10.1.0.1\n  nameserver\tfe80::1%eth0\nnameserver 2001:db8::53 # x\n\
                    nameserver ::1\nnameserver\nnameserver none\noptions trust-ad\n";
        let found: Vec<String> = in_file(text, 7).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.1.0.1:53", "[fe80::1%7]:53", "[2001:db8::53]:53"]);
    }

    #[test]
    fn an_interface_that_is_gone_has_none() {
        assert!(of("nosuch0").is_empty());
    }
}
