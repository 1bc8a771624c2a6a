//! Cutting a super-packet at segment boundaries: the headers of the part are rewritten, the payload is shared.

use super::checksum;
use super::layout::{IpVersion, Layout, MAX_HEAD, Transport};
use super::vnet::{GSO_ECN, NEEDS_CSUM, VNET_HEADER, VnetHeader};

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Rewritten headers of a part: vnet header, link header, IP, layer 4.
#[derive(Clone, Debug)]
pub struct Head {
    bytes: [u8; MAX_HEAD],
    length: usize,
}

impl Head {
    /// The headers.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn put16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    fn get16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }
}

/// Headers for segments `first..end` of the super-packet `bytes`, as the kernel would have written them.
///
/// IP length, id and checksum; IPv6 payload length; TCP sequence and flags; UDP length; the pseudo-header checksum.
/// TCP options, MPTCP's among them, are repeated unchanged.
pub fn head(bytes: &[u8], layout: &Layout, first: usize, end: usize) -> Head {
    let mut head = Head { bytes: [0; MAX_HEAD], length: layout.payload };
    head.bytes[..layout.payload].copy_from_slice(&bytes[..layout.payload]);
    let payload = layout.payload_range(first, end);
    let offset = payload.start - layout.payload;
    rewrite_network(&mut head, layout, first, payload.len());
    match layout.transport {
        Transport::Tcp => rewrite_tcp(&mut head, layout, first, end, offset),
        Transport::Udp => {
            head.put16(layout.l4 + 4, to16(layout.payload - layout.l4 + payload.len()))
        }
    }
    rewrite_checksum(&mut head, layout, payload.len());
    rewrite_vnet(&mut head, layout, first, end);
    head
}

fn to16(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

fn rewrite_network(head: &mut Head, layout: &Layout, first: usize, payload: usize) {
    let l3 = layout.l3;
    match layout.ip {
        IpVersion::V4 => {
            head.put16(l3 + 2, to16(layout.header_bytes() + payload));
            head.put16(l3 + 4, head.get16(l3 + 4).wrapping_add(to16(first)));
            head.put16(l3 + 10, 0);
            let sum = checksum::fold(checksum::add(0, &head.bytes[l3..layout.l4]));
            head.put16(l3 + 10, !sum);
        }
        IpVersion::V6 => head.put16(l3 + 4, to16(layout.header_bytes() - 40 + payload)),
    }
}

fn rewrite_tcp(head: &mut Head, layout: &Layout, first: usize, end: usize, offset: usize) {
    let at = layout.l4 + 4;
    let mut sequence = [0; 4];
    sequence.copy_from_slice(&head.bytes[at..at + 4]);
    let moved = u32::from_be_bytes(sequence).wrapping_add(u32::try_from(offset).unwrap_or(0));
    head.bytes[at..at + 4].copy_from_slice(&moved.to_be_bytes());
    if end < layout.segments {
        head.bytes[layout.l4 + 13] &= !(FIN | PSH);
    }
    if first > 0 {
        head.bytes[layout.l4 + 13] &= !CWR;
    }
}

fn rewrite_checksum(head: &mut Head, layout: &Layout, payload: usize) {
    let addresses = match layout.ip {
        IpVersion::V4 => layout.l3 + 12..layout.l3 + 20,
        IpVersion::V6 => layout.l3 + 8..layout.l3 + 40,
    };
    let length = u32::try_from(layout.payload - layout.l4 + payload).unwrap_or(0);
    let sum = checksum::pseudo_header(&head.bytes[addresses], layout.transport.number(), length);
    head.put16(layout.l4 + usize::from(layout.transport.checksum_offset()), sum);
}

fn rewrite_vnet(head: &mut Head, layout: &Layout, first: usize, end: usize) {
    let Some(mut vnet) = VnetHeader::parse(&head.bytes) else {
        return;
    };
    vnet.flags = NEEDS_CSUM;
    vnet.csum_start = to16(layout.l4 - VNET_HEADER);
    vnet.csum_offset = layout.transport.checksum_offset();
    vnet.header_length = to16(layout.payload - VNET_HEADER);
    if first > 0 {
        vnet.gso_type &= !GSO_ECN;
    }
    if end - first < 2 {
        vnet.gso_type = 0;
        vnet.gso_size = 0;
    }
    head.bytes[..VNET_HEADER].copy_from_slice(&vnet.to_bytes());
}
