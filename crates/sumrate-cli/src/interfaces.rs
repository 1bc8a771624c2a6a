//! This machine's interfaces and addresses, for checks before anything starts.

use std::net::IpAddr;

/// Every interface name with each of its addresses.
pub fn addresses() -> Vec<(String, IpAddr)> {
    let Ok(list) = nix::ifaddrs::getifaddrs() else {
        return Vec::new();
    };
    list.filter_map(|entry| {
        let storage = entry.address?;
        let address = match (storage.as_sockaddr_in(), storage.as_sockaddr_in6()) {
            (Some(v4), _) => IpAddr::V4(v4.ip()),
            (_, Some(v6)) => IpAddr::V6(v6.ip()),
            _ => return None,
        };
        Some((entry.interface_name, address))
    })
    .collect()
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
        assert!(super::addresses().iter().any(|(_, address)| address.is_loopback()));
    }
}
