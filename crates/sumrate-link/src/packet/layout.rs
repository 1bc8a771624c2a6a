//! Where the headers of a super-packet lie, checked once when it arrives.

use super::vnet::{Gso, VNET_HEADER, VnetHeader};

/// Longest headers that a slice rewrites: vnet, Ethernet, IPv6 or IPv4 with options, TCP with options.
pub const MAX_HEAD: usize = 192;

const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;

/// Internet protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Layer 4 of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP segmentation.
    Tcp,
    /// UDP segmentation.
    Udp,
}

impl Transport {
    /// Protocol number in IP headers and pseudo-headers.
    pub fn number(self) -> u8 {
        match self {
            Transport::Tcp => TCP,
            Transport::Udp => UDP,
        }
    }

    /// Where the checksum lies in the layer 4 header.
    pub fn checksum_offset(self) -> u16 {
        match self {
            Transport::Tcp => 16,
            Transport::Udp => 6,
        }
    }
}

/// Offsets (from the start of the buffer, which begins with the vnet header) and segment sizes of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// TCP or UDP.
    pub transport: Transport,
    /// Start of the IP header.
    pub l3: usize,
    /// Start of the TCP or UDP header.
    pub l4: usize,
    /// Start of the payload.
    pub payload: usize,
    /// Payload bytes of each segment but the last.
    pub segment: usize,
    /// Payload bytes of all segments.
    pub payload_bytes: usize,
    /// Number of segments, at least 2.
    pub segments: usize,
}

impl Layout {
    /// Reads the layout of a super-packet whose frame has `link_header` bytes before IP.
    ///
    /// `None`: an ordinary packet, or one whose headers this crate cannot rewrite; it is carried whole.
    pub fn parse(bytes: &[u8], link_header: usize) -> Option<Layout> {
        let vnet = VnetHeader::parse(bytes)?;
        let segment = usize::from(vnet.gso_size);
        if vnet.gso() == Gso::None || segment == 0 {
            return None;
        }
        let l3 = VNET_HEADER + link_header;
        let (ip, protocol, l4) = network_layer(bytes, l3, vnet)?;
        let (transport, payload) = transport_layer(bytes, protocol, l4)?;
        let expected = match vnet.gso() {
            Gso::TcpV4 | Gso::TcpV6 => Transport::Tcp,
            Gso::Udp | Gso::None => Transport::Udp,
        };
        let payload_bytes = bytes.len().checked_sub(payload)?;
        let segments = payload_bytes.div_ceil(segment);
        (transport == expected && payload <= MAX_HEAD && segments >= 2).then_some(Layout {
            ip,
            transport,
            l3,
            l4,
            payload,
            segment,
            payload_bytes,
            segments,
        })
    }

    /// Bytes of IP and layer 4 headers: every segment carries them again on the wire.
    pub fn header_bytes(&self) -> usize {
        self.payload - self.l3
    }

    /// Payload bytes of segments `first..end`.
    pub fn payload_range(&self, first: usize, end: usize) -> std::ops::Range<usize> {
        let from = (first * self.segment).min(self.payload_bytes);
        let to = (end * self.segment).min(self.payload_bytes);
        self.payload + from..self.payload + to
    }
}

/// IP version, protocol and start of layer 4.
fn network_layer(bytes: &[u8], l3: usize, vnet: VnetHeader) -> Option<(IpVersion, u8, usize)> {
    match bytes.get(l3)? >> 4 {
        4 => {
            let header = usize::from(bytes[l3] & 15) * 4;
            (header >= 20).then_some(())?;
            Some((IpVersion::V4, *bytes.get(l3 + 9)?, l3 + header))
        }
        6 => {
            let next = *bytes.get(l3 + 6)?;
            if next == TCP || next == UDP {
                return Some((IpVersion::V6, next, l3 + IPV6_HEADER));
            }
            // Extension headers: the kernel says where layer 4 starts.
            let l4 = VNET_HEADER + usize::from(vnet.csum_start);
            let protocol = if vnet.gso() == Gso::Udp { UDP } else { TCP };
            (vnet.flags & super::vnet::NEEDS_CSUM != 0 && l4 >= l3 + IPV6_HEADER).then_some((
                IpVersion::V6,
                protocol,
                l4,
            ))
        }
        _ => None,
    }
}

/// Kind of layer 4 and start of the payload.
fn transport_layer(bytes: &[u8], protocol: u8, l4: usize) -> Option<(Transport, usize)> {
    let (transport, header) = match protocol {
        TCP => (Transport::Tcp, usize::from(*bytes.get(l4 + 12)? >> 4) * 4),
        UDP => (Transport::Udp, UDP_HEADER),
        _ => return None,
    };
    let minimum = if protocol == TCP { 20 } else { UDP_HEADER };
    (header >= minimum && l4 + header < bytes.len()).then_some((transport, l4 + header))
}
