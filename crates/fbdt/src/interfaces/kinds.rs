//! What sort of interface each one is, from rtnetlink.

use std::collections::BTreeMap;
use std::io;

use super::netlink::{HEADER, attributes, dump, u16_at};

/// Of linux/rtnetlink.h and linux/if_link.h.
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const LINK: usize = 16;
const NAME: u16 = 3;
const LINK_INFO: u16 = 18;
const INFO_KIND: u16 = 1;

/// Kinds whose packets leave by another interface: over the same radio, a second time.
const TUNNELS: [&str; 21] = [
    "amt",
    "bareudp",
    "erspan",
    "geneve",
    "gre",
    "gretap",
    "gtp",
    "ip6erspan",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "ovpn",
    "ovpn-dco",
    "sit",
    "tun",
    "vti",
    "vti6",
    "vxlan",
    "wireguard",
    "xfrm",
];

/// The kind of each interface that is a tunnel, by its name.
///
/// # Errors
/// The system does not tell.
pub(crate) fn tunnels() -> io::Result<BTreeMap<String, String>> {
    let kinds = dump(GET_LINK, LINK, |message| of_message(message).into_iter().collect())?;
    Ok(kinds.into_iter().filter(|(_, kind)| TUNNELS.contains(&kind.as_str())).collect())
}

/// The name and kind that a message tells, if the interface has a kind: cards and radios have none.
fn of_message(message: &[u8]) -> Option<(String, String)> {
    if u16_at(message, 4) != Some(NEW_LINK) {
        return None;
    }
    let (mut name, mut kind) = (None, None);
    for attribute in attributes(message.get(HEADER + LINK..)?) {
        match u16_at(attribute, 2) {
            Some(NAME) => name = text(&attribute[4..]),
            Some(LINK_INFO) => {
                let mut inner = attributes(&attribute[4..]);
                let found = inner.find(|inner| u16_at(inner, 2) == Some(INFO_KIND));
                kind = found.and_then(|inner| text(&inner[4..]));
            }
            _ => {}
        }
    }
    Some((name?, kind?))
}

/// Text up to its zero byte.
fn text(value: &[u8]) -> Option<String> {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8(value[..end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + value.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + LINK];
        bytes[4..6].copy_from_slice(&NEW_LINK.to_ne_bytes());
        bytes.extend(attributes.concat());
        bytes
    }

    #[test]
    fn an_interface_is_known_by_its_kind() {
        let info = |kind: &[u8]| attribute(LINK_INFO, &attribute(INFO_KIND, kind));
        let name = attribute(NAME, b"wg0\0");
        let both = message(&[name.clone(), info(b"wireguard\0")]);
        assert_eq!(of_message(&both), Some(("wg0".to_owned(), "wireguard".to_owned())));
        assert_eq!(of_message(&message(&[name])), None, "a card");
        for length in 0..both.len() {
            let cut = of_message(&both[..length]);
            assert!(cut.is_none_or(|(name, _)| name == "wg0"), "{length} bytes");
        }
    }

    #[test]
    fn the_kernel_lists_its_interfaces() {
        assert!(!tunnels().unwrap().contains_key("lo"));
    }
}
