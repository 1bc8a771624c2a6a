//! A UDP datagram in a message of an association: address and data as in a SOCKS5 UDP request
//! (RFC 1928 §7) without its first three bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const V4: u8 = 1;
const NAME: u8 = 3;
const V6: u8 = 4;

/// Where a datagram goes, or came from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// A domain name, or an address without brackets.
    pub host: String,
    /// UDP port.
    pub port: u16,
}

/// A datagram with its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Where it goes, or came from.
    pub destination: Destination,
    /// What it carries.
    pub data: &'a [u8],
}

/// Why bytes are no datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// It ends within its address.
    #[error("the datagram ends within its address")]
    Short,
    /// No such kind of address.
    #[error("address type {0} does not exist")]
    AddressType(u8),
    /// The name is empty or no text.
    #[error("the domain name is empty or no text")]
    Name,
}

impl<'a> Datagram<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// [`DatagramError`]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DatagramError> {
        let short = DatagramError::Short;
        let (&kind, rest) = bytes.split_first().ok_or(short)?;
        let (host, rest) = match kind {
            V4 => {
                let (address, rest) = rest.split_first_chunk::<4>().ok_or(short)?;
                (Ipv4Addr::from(*address).to_string(), rest)
            }
            V6 => {
                let (address, rest) = rest.split_first_chunk::<16>().ok_or(short)?;
                (Ipv6Addr::from(*address).to_string(), rest)
            }
            NAME => {
                let (&length, rest) = rest.split_first().ok_or(short)?;
                let (name, rest) = rest.split_at_checked(usize::from(length)).ok_or(short)?;
                let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty());
                (name.ok_or(DatagramError::Name)?.to_owned(), rest)
            }
            other => return Err(DatagramError::AddressType(other)),
        };
        let (port, data) = rest.split_first_chunk::<2>().ok_or(short)?;
        let destination = Destination { host, port: u16::from_be_bytes(*port) };
        Ok(Self { destination, data })
    }

    /// The message of a datagram that came from `source`.
    pub fn encode(source: SocketAddr, data: &[u8]) -> Vec<u8> {
        let mut message = Vec::with_capacity(1 + 16 + 2 + data.len());
        match source.ip().to_canonical() {
            IpAddr::V4(address) => {
                message.push(V4);
                message.extend_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                message.push(V6);
                message.extend_from_slice(&address.octets());
            }
        }
        message.extend_from_slice(&source.port().to_be_bytes());
        message.extend_from_slice(data);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(bytes: &[u8]) -> Result<(String, u16, Vec<u8>), DatagramError> {
        Datagram::parse(bytes).map(|d| (d.destination.host, d.destination.port, d.data.to_vec()))
    }

    #[test]
    fn addresses_of_all_kinds() {
        let name = b"\x03\x04host\x00\x35data";
        assert_eq!(parsed(name), Ok(("host".into(), 53, b"data".to_vec())));
        let v4 = b"\x01\x0a\x00\x00\x01\x00\x07";
        assert_eq!(parsed(v4), Ok(("10.0.0.1".into(), 7, vec![])), "no data is data too");
        for (bytes, error) in [
            (&b""[..], DatagramError::Short),
            (b"\x01\x0a\x00\x00\x01\x00", DatagramError::Short),
            (b"\x03\x09host\x00\x35", DatagramError::Short),
            (b"\x03\x00\x00\x35", DatagramError::Name),
            (b"\x03\x01\xff\x00\x35", DatagramError::Name),
            (b"\x02\x00\x00", DatagramError::AddressType(2)),
        ] {
            assert_eq!(parsed(bytes), Err(error), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn sources_round_trip(address: IpAddr, port: u16, data: Vec<u8>) {
            let source = SocketAddr::new(address.to_canonical(), port);
            let message = Datagram::encode(source, &data);
            let expected = (source.ip().to_string(), port, data);
            prop_assert_eq!(parsed(&message), Ok(expected));
        }

        #[test]
        fn garbage_never_panics(bytes: Vec<u8>) {
            let _ = parsed(&bytes);
        }
    }
}
