//! The prefix of a NAT64, and the IPv6 addresses that stand for IPv4 ones behind it (RFC 6052).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The lengths that RFC 6052 knows, in bits.
const LENGTHS: [u8; 6] = [96, 64, 56, 48, 40, 32];
/// What `ipv4only.arpa` stands for (RFC 7050, section 8).
const WELL_KNOWN: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];
/// These bits of an address are zero (RFC 6052, section 2.2).
const RESERVED_BYTE: usize = 8;

/// What a NAT64 puts in front of IPv4 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nat64Prefix {
    network: Ipv6Addr,
    length: u8,
}

impl Nat64Prefix {
    /// The prefix of this length, if there is one of it.
    pub(crate) fn new(network: Ipv6Addr, length: u8) -> Option<Self> {
        let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
        let network = Ipv6Addr::from_bits(network.to_bits() & mask);
        LENGTHS.contains(&length).then_some(Self { network, length })
    }

    /// The prefix that an address of `ipv4only.arpa` shows, if it is one behind a NAT64.
    pub(crate) fn of_well_known(address: IpAddr) -> Option<Self> {
        let IpAddr::V6(address) = address else { return None };
        LENGTHS.iter().find_map(|&length| {
            let prefix = Self::new(address, length)?;
            WELL_KNOWN.iter().any(|known| prefix.embed(*known) == address).then_some(prefix)
        })
    }

    /// The address that stands for an IPv4 one.
    pub(crate) fn embed(self, address: Ipv4Addr) -> Ipv6Addr {
        let mut octets = self.network.octets();
        let places = (usize::from(self.length / 8)..).filter(|place| *place != RESERVED_BYTE);
        for (place, octet) in places.zip(address.octets()) {
            octets[place] = octet;
        }
        octets.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_embedded_as_rfc_6052_has_it() {
        for (network, length, expected) in [
            ("2001:db8::", 32, "2001:db8:c000:221::"),
            ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
            ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
            ("64:ff9b::", 96, "64:ff9b::192.0.2.33"),
        ] {
            let prefix = Nat64Prefix::new(network.parse().unwrap(), length).unwrap();
            let embedded = prefix.embed(Ipv4Addr::new(192, 0, 2, 33));
            assert_eq!(embedded, expected.parse::<Ipv6Addr>().unwrap(), "{network}/{length}");
            let shown = IpAddr::V6(prefix.embed(WELL_KNOWN[1]));
            assert_eq!(Nat64Prefix::of_well_known(shown), Some(prefix), "{network}/{length}");
        }
    }

    #[test]
    fn what_shows_no_prefix_is_none() {
        let shown = |text: &str| Nat64Prefix::of_well_known(text.parse().unwrap());
        assert_eq!(shown("192.0.0.170"), None, "an IPv4 network");
        assert_eq!(shown("2001:db8::1"), None, "a portal that answers every name");
        assert_eq!(shown("2001:db8:c000:aa::1"), None, "more than a prefix");
        assert_eq!(Nat64Prefix::new(Ipv6Addr::UNSPECIFIED, 72), None);
    }
}
