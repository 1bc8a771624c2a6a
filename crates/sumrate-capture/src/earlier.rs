//! TCP connections that are there before the rules: they go on as they were.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The kernel's tables of TCP connections (proc_net_tcp(5)).
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// State of a socket that listens.
const LISTENS: &str = "0A";

/// Both ends of a connection, this machine's first.
pub(crate) type Ends = (SocketAddr, SocketAddr);

/// Every connection of this network namespace.
pub(crate) fn connections() -> Vec<Ends> {
    let tables = TABLES.iter().filter_map(|table| fs::read_to_string(table).ok());
    let mut found: Vec<Ends> =
        tables.flat_map(|text| text.lines().filter_map(ends).collect::<Vec<_>>()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn ends(line: &str) -> Option<Ends> {
    let mut fields = line.split_whitespace().skip(1);
    let (own, other) = (end(fields.next()?)?, end(fields.next()?)?);
    (fields.next()? != LISTENS && other.port() != 0).then_some((own, other))
}

/// An address in words of 32 bits as this machine has them, and a port.
fn end(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok();
    let words = (0..address.len()).step_by(8).map(word).collect::<Option<Vec<u32>>>()?;
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    let ip: IpAddr = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(v4) => Ipv4Addr::from(v4).into(),
        // On the wire a mapped address is one of IPv4.
        Err(_) => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_each_connection() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (own, other) = (near.local_addr().unwrap(), near.peer_addr().unwrap());
            let found = connections();
            assert!(found.contains(&(own, other)) && found.contains(&(other, own)), "{found:?}");
            assert!(found.iter().all(|(_, far)| far.port() != 0), "no listener: {found:?}");
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_mapped_address_is_one_of_ipv4() {
        let line = "   0: 0000000000000000FFFF00000101010A:1F90 \
                    0000000000000000FFFF00004D7100CB:01BB 01 00000000:00000000";
        let expected = ("10.1.1.1:8080".parse().unwrap(), "203.0.113.77:443".parse().unwrap());
        assert_eq!(ends(line), Some(expected));
        assert_eq!(ends("  sl  local_address rem_address   st tx_queue"), None);
        assert_eq!(ends("   0: 0100007F:0016 00000000:0000 0A 00000000:00000000"), None);
    }
}
