//! This machine's interfaces and addresses, for checks before anything starts.

use std::io;
use std::net::IpAddr;

/// Every interface name with each of its addresses.
///
/// # Errors
/// The system does not tell: no descriptor is left, say.
pub fn addresses() -> io::Result<Vec<(String, IpAddr)>> {
    let list = nix::ifaddrs::getifaddrs()?.filter_map(|entry| {
        let storage = entry.address?;
        let address = match (storage.as_sockaddr_in(), storage.as_sockaddr_in6()) {
            (Some(v4), _) => IpAddr::V4(v4.ip()),
            (_, Some(v6)) => IpAddr::V6(v6.ip()),
            _ => return None,
        };
        Some((entry.interface_name, address))
    });
    Ok(list.collect())
}

/// Names of every interface, with or without an address, in order and once.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = nix::ifaddrs::getifaddrs()
        .map(|list| list.map(|entry| entry.interface_name).collect())
        .unwrap_or_default();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    #[test]
    fn loopback_is_found() {
        assert!(super::names().contains(&"lo".to_owned()));
        assert!(super::addresses().unwrap().iter().any(|(_, address)| address.is_loopback()));
    }
}
