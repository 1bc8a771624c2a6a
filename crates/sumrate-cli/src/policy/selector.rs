//! Which interfaces a policy is for: one by its name, or all of a pattern, a driver or a gateway.

use std::net::IpAddr;

use fbdt::{PathInterface, name_matches};

use super::WishError;

/// Interfaces that a policy is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The path, or without `--path` the interface, of this name.
    Name(String),
    /// All whose names match, as in `enx*`.
    Pattern(String),
    /// All with this kernel driver, as in `driver:cdc_ether`.
    Driver(String),
    /// All with a route by this gateway, as in `gateway:192.168.42.129`.
    Gateway(IpAddr),
}

impl Selector {
    /// Reads what stands before the `=` of a policy.
    ///
    /// # Errors
    /// [`WishError`]: a gateway that is no address, or nothing.
    pub fn parse(text: &str) -> Result<Self, WishError> {
        let unknown = || WishError::Selector(text.to_owned());
        match text.split_once(':') {
            _ if text.is_empty() => Err(unknown()),
            Some(("driver", "")) => Err(unknown()),
            Some(("driver", driver)) => Ok(Self::Driver(driver.to_owned())),
            Some(("gateway", address)) => address.parse().map(Self::Gateway).map_err(|_| unknown()),
            _ if text.contains(['*', '?']) => Ok(Self::Pattern(text.to_owned())),
            _ => Ok(Self::Name(text.to_owned())),
        }
    }

    /// Whether it is for this interface.
    pub fn is_for(&self, interface: &PathInterface) -> bool {
        match self {
            Self::Name(name) => *name == interface.name,
            Self::Pattern(pattern) => name_matches(pattern, &interface.name),
            Self::Driver(driver) => interface.driver.as_ref() == Some(driver),
            Self::Gateway(gateway) => interface.gateways.contains(gateway),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_chosen_by_name_pattern_driver_and_gateway() {
        let phone = PathInterface {
            name: "enx02".to_owned(),
            driver: Some("cdc_ether".to_owned()),
            gateways: vec!["192.168.42.129".parse().unwrap(), "fe80::1".parse().unwrap()],
        };
        let is_for = |text: &str| Selector::parse(text).unwrap().is_for(&phone);
        for text in [
            "enx02",
            "enx*",
            "e?x02",
            "driver:cdc_ether",
            "gateway:192.168.42.129",
            "gateway:fe80::1",
        ] {
            assert!(is_for(text), "{text}");
        }
        for text in ["enx01", "eth*", "driver:r8152", "gateway:192.168.42.1", "driver:enx*"] {
            assert!(!is_for(text), "{text}");
        }
        for text in ["", "driver:", "gateway:", "gateway:phone"] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }
}
