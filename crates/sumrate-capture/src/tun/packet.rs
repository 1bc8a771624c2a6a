//! Packets as bytes: IPv4 (RFC 791), IPv6 (RFC 8200), TCP (RFC 9293), UDP (RFC 768), ICMP (RFC 792,
//! RFC 4443). Fragments are not understood: the device's MTU leaves no reason for them.

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

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// What is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// TCP, with these flags.
    Tcp { flags: u8 },
    /// UDP, whose payload begins and ends here.
    Udp { payload: usize, end: usize },
}

/// What has to be known of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) transport: Transport,
    /// Where the transport's header begins.
    at: usize,
}

impl Packet {
    /// A whole packet of TCP or UDP over IPv4 or IPv6; `None` for everything else.
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
        let offset = |part: &[u8]| (part.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize);
        let (at, ports, transport) = match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let flags = *tcp.slice().get(13)?;
                let ports = (tcp.source_port(), tcp.destination_port());
                (offset(tcp.slice())?, ports, Transport::Tcp { flags })
            }
            Some(TransportSlice::Udp(udp)) => {
                let at = offset(udp.slice())?;
                let ports = (udp.source_port(), udp.destination_port());
                let payload = at + 8;
                let end = payload + udp.payload().len();
                (at, ports, Transport::Udp { payload, end })
            }
            _ => return None,
        };
        Some(Self {
            source: SocketAddr::new(source, ports.0),
            destination: SocketAddr::new(destination, ports.1),
            transport,
            at,
        })
    }

    fn flags(&self) -> u8 {
        match self.transport {
            Transport::Tcp { flags } => flags,
            Transport::Udp { .. } => 0,
        }
    }

    /// The first segment of a connection.
    pub(super) fn begins(&self) -> bool {
        self.flags() & (SYN | ACK | RST) == SYN
    }

    /// A segment after which at least one direction has ended.
    pub(super) fn ends(&self) -> bool {
        self.flags() & (FIN | RST) != 0
    }

    /// Gives a TCP packet other addresses and ports of the same family, and corrects its checksums by
    /// the difference (RFC 1624).
    pub(super) fn readdress(&self, bytes: &mut [u8], source: SocketAddr, destination: SocketAddr) {
        let mut change = Change::default();
        let places = match self.source {
            SocketAddr::V4(_) => (12, 16),
            SocketAddr::V6(_) => (8, 24),
        };
        for (place, address) in [(places.0, source), (places.1, destination)] {
            match address.ip() {
                IpAddr::V4(v4) => change.put(bytes, place, &v4.octets()),
                IpAddr::V6(v6) => change.put(bytes, place, &v6.octets()),
            }
        }
        if self.source.is_ipv4() {
            change.correct(bytes, 10);
        }
        change.put(bytes, self.at, &source.port().to_be_bytes());
        change.put(bytes, self.at + 2, &destination.port().to_be_bytes());
        // The addresses are part of TCP's checksum, too.
        change.correct(bytes, self.at + 16);
    }
}

/// What the ones' complement sum of some 16-bit words changes by.
#[derive(Default)]
struct Change(u32);

impl Change {
    /// Replaces an even number of bytes.
    fn put(&mut self, bytes: &mut [u8], at: usize, new: &[u8]) {
        let Some(old) = bytes.get_mut(at..at + new.len()) else { return };
        for (old, new) in old.chunks_exact_mut(2).zip(new.chunks_exact(2)) {
            let (before, after) = (number(old), number(new));
            self.0 += u32::from(!before) + u32::from(after);
            old.copy_from_slice(new);
        }
        self.0 = fold(self.0);
    }

    fn correct(&self, bytes: &mut [u8], at: usize) {
        if let Some(place) = bytes.get_mut(at..at + 2) {
            let sum = fold(u32::from(!number(place)) + self.0);
            place.copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
    }
}

fn number(word: &[u8]) -> u16 {
    word.first_chunk().map_or(0, |word| u16::from_be_bytes(*word))
}

fn fold(mut sum: u32) -> u32 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
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

/// The answer to a segment of no connection (RFC 9293 §3.10.7.1); none to a reset.
pub(super) fn refused_segment(bytes: &[u8], packet: &Packet) -> Option<Vec<u8>> {
    let flags = packet.flags();
    if flags & RST != 0 {
        return None;
    }
    let tcp = bytes.get(packet.at..)?;
    let word = |at: usize| tcp.get(at..).and_then(|word| word.first_chunk::<4>().copied());
    let (sequence, acknowledged) = (u32::from_be_bytes(word(4)?), u32::from_be_bytes(word(8)?));
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    let payload = u32::try_from(tcp.len().saturating_sub(header)).unwrap_or(0);
    let length = payload + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
    let (from, to) = (packet.destination, packet.source);
    let first = if flags & ACK != 0 { acknowledged } else { 0 };
    let step = between(from.ip(), to.ip())?.tcp(from.port(), to.port(), first, 0).rst();
    let step = if flags & ACK != 0 { step } else { step.ack(sequence.wrapping_add(length)) };
    let mut answer = Vec::new();
    step.write(&mut answer, &[]).ok()?;
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAIRS: [(&str, &str); 2] =
        [("10.0.0.1:4000", "203.0.113.9:80"), ("[fd00::1]:4000", "[2001:db8::9]:80")];

    fn segment(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
        let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let step = between(from.ip(), to.ip()).unwrap();
        let mut packet = Vec::new();
        step.tcp(from.port(), to.port(), 7, 100).syn().write(&mut packet, payload).unwrap();
        packet
    }

    /// Whether both checksums are what etherparse would make of the packet.
    fn is_right(bytes: &[u8]) -> bool {
        let sliced = SlicedPacket::from_ip(bytes).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { return false };
        match &sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header().to_header();
                let right = tcp.calc_checksum_ipv4(header.source, header.destination).unwrap();
                header.calc_header_checksum() == header.header_checksum && tcp.checksum() == right
            }
            Some(NetSlice::Ipv6(ip)) => {
                let header = ip.header().to_header();
                tcp.checksum() == tcp.calc_checksum_ipv6(header.source, header.destination).unwrap()
            }
            _ => false,
        }
    }

    #[test]
    fn what_answers_are_like() {
        for (from, to) in PAIRS {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let asked = datagram(from, to, b"question").unwrap();
            let packet = Packet::parse(&asked).unwrap();
            assert_eq!((packet.source, packet.destination), (from, to));
            let Transport::Udp { payload, end } = packet.transport else { panic!("{packet:?}") };
            assert_eq!(&asked[payload..end], b"question");
            let icmp = port_unreachable(&asked, &packet).unwrap();
            assert!(icmp.windows(asked.len()).any(|part| part == asked), "repeats what it is for");
            let mut syn = segment(&from.to_string(), &to.to_string(), b"");
            let packet = Packet::parse(&syn).unwrap();
            assert!(packet.begins() && !packet.ends());
            let reset = refused_segment(&syn, &packet).unwrap();
            assert!(is_right(&reset));
            let back = Packet::parse(&reset).unwrap();
            assert_eq!((back.source, back.destination), (to, from));
            assert!(back.ends() && refused_segment(&reset, &back).is_none());
            let acknowledged = reset[back.at + 8..][..4].to_vec();
            assert_eq!(acknowledged, 8_u32.to_be_bytes(), "of the one that asked for a connection");
            syn.truncate(30);
            assert_eq!(Packet::parse(&syn), None);
        }
    }

    proptest! {
        #[test]
        fn readdressed_packets_have_right_checksums(
            (a, b) in any::<(u32, u32)>(), (c, d) in any::<(u128, u128)>(), ports in any::<(u16, u16)>(),
            payload in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let new: [(IpAddr, IpAddr); 2] = [
                (IpAddr::V4(a.into()), IpAddr::V4(b.into())),
                (IpAddr::V6(c.into()), IpAddr::V6(d.into())),
            ];
            for ((from, to), (source, destination)) in PAIRS.into_iter().zip(new) {
                let mut bytes = segment(from, to, &payload);
                let packet = Packet::parse(&bytes).unwrap();
                let source = SocketAddr::new(source, ports.0);
                let destination = SocketAddr::new(destination, ports.1);
                packet.readdress(&mut bytes, source, destination);
                prop_assert!(is_right(&bytes));
                let changed = Packet::parse(&bytes).unwrap();
                prop_assert_eq!((changed.source, changed.destination), (source, destination));
                packet.readdress(&mut bytes, packet.source, packet.destination);
                prop_assert_eq!(bytes, segment(from, to, &payload));
            }
        }

        #[test]
        fn garbage_never_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..200), v6 in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = if v6 { 0x60 } else { 0x45 };
            }
            if let Some(packet) = Packet::parse(&bytes) {
                let _ = (refused_segment(&bytes, &packet), port_unreachable(&bytes, &packet));
                packet.readdress(&mut bytes, packet.destination, packet.source);
            }
        }
    }
}
