//! What is derived from the names of links: interface names, MAC addresses, seeds.

use crate::config::{MAX_INTERFACE, Side};

/// A 64-bit hash of a name, the same on every machine and in every version (FNV-1a with a final mix).
pub fn hash(name: &str) -> u64 {
    let mut value = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name.bytes() {
        value = (value ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    value ^= value >> 32;
    value = value.wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^ (value >> 32)
}

/// Name of the emulator's own end of side `side` of link `link`: `em-wifi-a`, or `em-` and a hash if that is too long.
pub fn emulator_interface(link: &str, side: Side) -> String {
    let plain = format!("em-{link}-{side}");
    if plain.len() <= MAX_INTERFACE {
        plain
    } else {
        format!("em-{:08x}-{side}", hash(link) as u32)
    }
}

/// MAC address of the end point's interface: locally administered, from the link's name and side.
pub fn mac_address(link: &str, side: Side) -> String {
    let h = hash(link).to_be_bytes();
    let last = match side {
        Side::A => 0x0a,
        Side::B => 0x0b,
    };
    format!("02:{:02x}:{:02x}:{:02x}:{:02x}:{last:02x}", h[0], h[1], h[2], h[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_still_fit() {
        assert_eq!(emulator_interface("wifi", Side::A), "em-wifi-a");
        let long = emulator_interface("a-link-with-a-long-name", Side::B);
        assert!(long.len() <= MAX_INTERFACE && long.ends_with("-b"), "{long}");
    }

    #[test]
    fn addresses_differ_by_link_and_side() {
        let all =
            ["wifi", "wigig"].map(|link| [Side::A, Side::B].map(|side| mac_address(link, side)));
        let mut flat = all.concat();
        flat.sort();
        flat.dedup();
        assert_eq!(flat.len(), 4);
        assert!(flat[0].starts_with("02:"));
    }
}
