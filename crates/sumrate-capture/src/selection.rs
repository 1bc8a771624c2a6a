//! Whose connections are taken, and which of them.

use std::net::IpAddr;

use ipnet::IpNet;

/// Always reached directly: this machine, its links, and what is no single host.
const NEVER: [&str; 8] = [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/3",
    "::/128",
    "::1/128",
    "fe80::/10",
    "ff00::/8",
];

/// Reached directly unless destinations are named: what only this machine's own network knows.
const PRIVATE: [&str; 5] =
    ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

/// Whose connections, and where to. What is said of nothing means everybody and everywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Programs of these users.
    pub users: Vec<u32>,
    /// Programs in these cgroups (version 2), each a path below the cgroup file system.
    pub cgroups: Vec<String>,
    /// Only to these networks.
    pub only_to: Vec<IpNet>,
    /// Not to these networks.
    pub direct: Vec<IpNet>,
}

impl Selection {
    /// Whether programs of every user and cgroup are selected.
    pub fn is_of_all(&self) -> bool {
        self.users.is_empty() && self.cgroups.is_empty()
    }

    /// Networks that are reached directly, each in none of the others.
    pub fn exempt(&self) -> Vec<IpNet> {
        let private: &[&str] = if self.only_to.is_empty() { &PRIVATE } else { &[] };
        let fixed = NEVER.iter().chain(private).filter_map(|net| net.parse().ok());
        IpNet::aggregate(&fixed.chain(self.direct.iter().copied()).collect::<Vec<IpNet>>())
    }

    /// Whether a connection to this address is taken, whosever it is.
    pub fn takes(&self, address: IpAddr) -> bool {
        let within = |nets: &[IpNet]| nets.iter().any(|net| net.contains(&address));
        !within(&self.exempt()) && (self.only_to.is_empty() || within(&self.only_to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn destinations() {
        let takes = |selection: &Selection, text: &str| selection.takes(text.parse().unwrap());
        let all = Selection::default();
        for far in ["203.0.113.1", "2001:db8::1"] {
            assert!(takes(&all, far));
        }
        for near in ["127.0.0.1", "10.1.1.1", "192.168.1.1", "::1", "fd00::1", "224.0.0.1"] {
            assert!(!takes(&all, near), "{near}");
        }
        let split = Selection {
            only_to: nets(&["10.0.0.0/8", "127.0.0.0/8"]),
            direct: nets(&["10.9.0.0/16"]),
            ..Selection::default()
        };
        assert!(takes(&split, "10.1.1.1"));
        for other in ["10.9.1.1", "203.0.113.1", "127.0.0.1", "2001:db8::1"] {
            assert!(!takes(&split, other), "{other}");
        }
    }
}
