//! Datagrams as bytes: IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC 768), ICMP (RFC 792, RFC 4443).
//! Fragments are not understood: the device's MTU leaves no reason for them.

use std::net::{IpAddr, SocketAddr};

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{
    Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, PacketBuilderStep, SlicedPacket,
    TransportSlice, ip_number,
};

/// Hops that an answer may take; it takes none.
const TTL: u8 = 64;
/// As much of the packet as an ICMP error for it repeats (RFC 1812 §4.3.2.3, RFC 4443 §2.4).
const REPEATED_V4: usize = 548;
const REPEATED_V6: usize = 1232;

/// A datagram, and where its payload begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) payload: usize,
    pub(super) end: usize,
}

impl Packet {
    /// A whole UDP packet over IPv4 or IPv6; `None` for everything else.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let sliced = SlicedPacket::from_ip(bytes).ok()?;
        let (source, destination): (IpAddr, IpAddr) = match &sliced.net {
            Some(NetSlice::Ipv4(ip)) if !ip.is_payload_fragmented() => {
                (ip.header().source_addr().into(), ip.header().destination_addr().into())
            }
            Some(NetSlice::Ipv6(ip)) if !ip.is_payload_fragmented() => {
                (ip.header().source_addr().into(), ip.header().destination_addr().into())
            }
            _ => return None,
        };
        let Some(TransportSlice::Udp(udp)) = &sliced.transport else { return None };
        let payload = (udp.payload().as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
        Some(Self {
            source: SocketAddr::new(source, udp.source_port()),
            destination: SocketAddr::new(destination, udp.destination_port()),
            payload,
            end: payload + udp.payload().len(),
        })
    }
}

fn between(
    source: IpAddr,
    destination: IpAddr,
) -> Option<PacketBuilderStep<etherparse::IpHeaders>> {
    match (source, destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => Some(PacketBuilder::ip(etherparse::IpHeaders::Ipv4(
            etherparse::Ipv4Header::new(0, TTL, ip_number::UDP, from.octets(), to.octets()).ok()?,
            etherparse::Ipv4Extensions::default(),
        ))),
        (IpAddr::V6(from), IpAddr::V6(to)) => Some(PacketBuilder::ip(etherparse::IpHeaders::Ipv6(
            etherparse::Ipv6Header {
                hop_limit: TTL,
                source: from.octets(),
                destination: to.octets(),
                ..etherparse::Ipv6Header::default()
            },
            etherparse::Ipv6Extensions::default(),
        ))),
        _ => None,
    }
}

/// A packet with this datagram; `None` if it is too long.
pub(super) fn datagram(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Option<Vec<u8>> {
    let mut packet = Vec::with_capacity(48 + payload.len());
    let step = between(from.ip(), to.ip())?.udp(from.port(), to.port());
    step.write(&mut packet, payload).ok()?;
    Some(packet)
}

/// The answer to a datagram that nobody takes.
pub(super) fn port_unreachable(bytes: &[u8], packet: &Packet) -> Option<Vec<u8>> {
    let step = between(packet.destination.ip(), packet.source.ip())?;
    let mut answer = Vec::new();
    let repeated = |most: usize| bytes.get(..bytes.len().min(most)).unwrap_or_default();
    match packet.source {
        SocketAddr::V4(_) => step
            .icmpv4(Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Port))
            .write(&mut answer, repeated(REPEATED_V4)),
        SocketAddr::V6(_) => step
            .icmpv6(Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Port))
            .write(&mut answer, repeated(REPEATED_V6)),
    }
    .ok()?;
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAIRS: [(&str, &str); 2] =
        [("10.0.0.1:4000", "203.0.113.9:80"), ("[fd00::1]:4000", "[2001:db8::9]:80")];

    #[test]
    fn what_answers_are_like() {
        for (from, to) in PAIRS {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let asked = datagram(from, to, b"question").unwrap();
            let packet = Packet::parse(&asked).unwrap();
            assert_eq!((packet.source, packet.destination), (from, to));
            assert_eq!(&asked[packet.payload..packet.end], b"question");
            let icmp = port_unreachable(&asked, &packet).unwrap();
            assert!(icmp.windows(asked.len()).any(|part| part == asked), "repeats what it is for");
            assert_eq!(Packet::parse(&asked[..asked.len() - 1]), None, "a part of a packet");
            let mut segment = Vec::new();
            let step = between(from.ip(), to.ip()).unwrap().tcp(from.port(), to.port(), 7, 100);
            step.syn().write(&mut segment, b"").unwrap();
            assert_eq!(Packet::parse(&segment), None, "TCP");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..200), v6 in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = if v6 { 0x60 } else { 0x45 };
            }
            if let Some(packet) = Packet::parse(&bytes) {
                let _ = port_unreachable(&bytes, &packet);
            }
        }
    }
}
