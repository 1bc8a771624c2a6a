//! Slices against an independent reading of the headers: another checksum, another segment count.

use proptest::prelude::*;

use super::buffer::Pool;
use super::layout::{IpVersion, Layout, Transport};
use super::vnet::{GSO_ECN, NEEDS_CSUM, VNET_HEADER, VnetHeader};
use super::{Frame, Packet};

const ETHERNET: usize = 14;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;
/// An MPTCP DSS option with data acknowledgement and mapping, padded to 4 bytes.
const MPTCP_DSS: [u8; 20] =
    [30, 20, 0x20, 0x05, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0, 0];

/// A super-packet to be made.
#[derive(Clone, Debug)]
struct Recipe {
    ip: IpVersion,
    transport: Transport,
    options: Vec<u8>,
    payload: usize,
    segment: u16,
    sequence: u32,
    id: u16,
    flags: u8,
    link_header: usize,
}

impl Recipe {
    fn layer4(&self) -> usize {
        match self.transport {
            Transport::Tcp => 20 + self.options.len(),
            Transport::Udp => 8,
        }
    }

    fn layer3(&self) -> usize {
        if self.ip == IpVersion::V4 { 20 } else { 40 }
    }

    fn bytes(&self) -> Vec<u8> {
        let (l3, l4) = (self.layer3(), self.layer4());
        let kind = match (self.transport, self.ip) {
            (Transport::Tcp, IpVersion::V4) => 1,
            (Transport::Tcp, IpVersion::V6) => 4,
            (Transport::Udp, _) => 5,
        };
        let vnet = VnetHeader {
            flags: NEEDS_CSUM,
            gso_type: kind | if self.flags & CWR != 0 { GSO_ECN } else { 0 },
            header_length: (self.link_header + l3 + l4) as u16,
            gso_size: self.segment,
            csum_start: (self.link_header + l3) as u16,
            csum_offset: self.transport.checksum_offset(),
        };
        let mut out = vnet.to_bytes().to_vec();
        out.resize(VNET_HEADER + self.link_header, 0x22);
        let total = (l4 + self.payload) as u16;
        match self.ip {
            IpVersion::V4 => {
                out.extend([0x45, 0]);
                out.extend((20 + total).to_be_bytes());
                out.extend(self.id.to_be_bytes());
                out.extend([0x40, 0, 64, self.transport.number(), 0, 0, 10, 1, 1, 1, 10, 1, 1, 2]);
            }
            IpVersion::V6 => {
                out.extend([0x60, 0, 0, 0]);
                out.extend(total.to_be_bytes());
                out.extend([self.transport.number(), 64]);
                out.extend((1..33).collect::<Vec<u8>>());
            }
        }
        match self.transport {
            Transport::Tcp => {
                out.extend([0x14, 0x51, 0x9c, 0x40]);
                out.extend(self.sequence.to_be_bytes());
                out.extend([0, 0, 0, 9, (l4 as u8 / 4) << 4, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
                out.extend(&self.options);
            }
            Transport::Udp => {
                out.extend([0x14, 0x51, 0x9c, 0x40]);
                out.extend(total.to_be_bytes());
                out.extend([0, 0]);
            }
        }
        out.extend((0..self.payload).map(|index| (index * 7 + index / 251) as u8));
        out
    }

    fn packet(&self) -> Packet {
        let bytes = self.bytes();
        let pool = Pool::default();
        let mut scratch = pool.scratch();
        scratch[..bytes.len()].copy_from_slice(&bytes);
        Packet::new(pool.keep(&mut scratch, bytes.len()), self.link_header)
    }

    fn segments(&self) -> usize {
        self.payload.div_ceil(usize::from(self.segment))
    }
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let options = prop_oneof![
        Just(Vec::new()),
        Just(MPTCP_DSS.to_vec()),
        Just(vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2])
    ];
    let flags = prop_oneof![Just(ACK), Just(ACK | PSH), Just(ACK | PSH | FIN), Just(ACK | CWR)];
    (
        any::<[bool; 3]>(),
        options,
        536_u16..1460,
        2_usize..44,
        any::<(u32, u16)>(),
        flags,
        1_usize..536,
    )
        .prop_map(
            |([v4, tcp, ethernet], options, segment, segments, (sequence, id), flags, last)| {
                Recipe {
                    ip: if v4 { IpVersion::V4 } else { IpVersion::V6 },
                    transport: if tcp { Transport::Tcp } else { Transport::Udp },
                    options,
                    payload: usize::from(segment) * (segments - 1) + last,
                    segment,
                    sequence,
                    id,
                    flags: if tcp { flags } else { 0 },
                    link_header: if ethernet { ETHERNET } else { 0 },
                }
            },
        )
}

fn joined(frame: &Frame) -> Vec<u8> {
    frame.parts().concat()
}

/// One's complement sum the slow way: byte by byte in 64 bits.
fn independent_sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for part in parts {
        for (index, byte) in part.iter().enumerate() {
            sum += u64::from(*byte) << if index % 2 == 0 { 8 } else { 0 };
        }
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What a network card does: cuts a frame into packets and completes their checksums. Reads only the frame.
fn transmit(frame: &[u8], link_header: usize) -> Vec<Vec<u8>> {
    let vnet = VnetHeader::parse(frame).unwrap();
    let ip = &frame[VNET_HEADER + link_header..];
    let v4 = ip[0] >> 4 == 4;
    let l4 = usize::from(vnet.csum_start) - link_header;
    let tcp = if v4 { ip[9] } else { ip[6] } == 6;
    let headers = l4 + if tcp { usize::from(ip[l4 + 12] >> 4) * 4 } else { 8 };
    let payload = &ip[headers..];
    let length = if v4 {
        u16::from_be_bytes([ip[2], ip[3]])
    } else {
        40 + u16::from_be_bytes([ip[4], ip[5]])
    };
    assert_eq!(usize::from(length), ip.len(), "IP length");
    if v4 {
        assert_eq!(independent_sum(&[&ip[..l4]]), 0xffff, "IP header checksum");
    }
    let size = if vnet.gso_type == 0 { payload.len() } else { usize::from(vnet.gso_size) };
    let chunks: Vec<&[u8]> = payload.chunks(size).collect();
    let mut packets = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let mut head = ip[..headers].to_vec();
        let l4_length = headers - l4 + chunk.len();
        let field = l4 + usize::from(vnet.csum_offset);
        // The partial checksum covers the frame's own length; a card adjusts it to the segment's.
        let addresses = if v4 { 12..20 } else { 8..40 };
        let whole = (ip.len() - l4) as u16;
        let pseudo = |length: u16| {
            independent_sum(&[
                &ip[addresses.clone()],
                &[0, if tcp { 6 } else { 17 }],
                &length.to_be_bytes(),
            ])
        };
        let partial = u16::from_be_bytes([ip[field], ip[field + 1]]);
        assert_eq!(partial, pseudo(whole), "partial checksum");
        if v4 {
            head[2..4].copy_from_slice(&((headers + chunk.len()) as u16).to_be_bytes());
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index as u16);
            head[4..6].copy_from_slice(&id.to_be_bytes());
        } else {
            head[4..6].copy_from_slice(&((headers - 40 + chunk.len()) as u16).to_be_bytes());
        }
        if tcp {
            let sequence = u32::from_be_bytes(head[l4 + 4..l4 + 8].try_into().unwrap());
            head[l4 + 4..l4 + 8]
                .copy_from_slice(&sequence.wrapping_add((index * size) as u32).to_be_bytes());
            if index + 1 < chunks.len() {
                head[l4 + 13] &= !(FIN | PSH);
            }
            if index > 0 {
                head[l4 + 13] &= !CWR;
            }
        } else {
            head[l4 + 4..l4 + 6].copy_from_slice(&(l4_length as u16).to_be_bytes());
        }
        head[field..field + 2].copy_from_slice(&pseudo(l4_length as u16).to_be_bytes());
        let sum = !independent_sum(&[&[&head[l4..], chunk].concat()]);
        head[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        let full = [&head[l4..], chunk].concat();
        let pseudo_length = (l4_length as u16).to_be_bytes();
        let check = independent_sum(&[
            &ip[addresses],
            &[0, if tcp { 6 } else { 17 }],
            &pseudo_length,
            &full,
        ]);
        assert_eq!(check, 0xffff, "layer 4 checksum");
        if v4 {
            head[10..12].fill(0);
            let sum = !independent_sum(&[&head[..l4]]);
            head[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packets.push([&head[..], chunk].concat());
    }
    packets
}

/// The super-packet with a valid IP checksum, as the whole frame would be transmitted.
fn reference(recipe: &Recipe) -> Vec<Vec<u8>> {
    let mut bytes = recipe.bytes();
    let l3 = VNET_HEADER + recipe.link_header;
    let l4 = l3 + recipe.layer3();
    let addresses = if recipe.ip == IpVersion::V4 { l3 + 12..l3 + 20 } else { l3 + 8..l3 + 40 };
    let length = (bytes.len() - l4) as u16;
    let pseudo = independent_sum(&[
        &bytes[addresses],
        &[0, recipe.transport.number()],
        &length.to_be_bytes(),
    ]);
    let field = l4 + usize::from(recipe.transport.checksum_offset());
    bytes[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
    if recipe.ip == IpVersion::V4 {
        let sum = !independent_sum(&[&bytes[l3..l4]]);
        bytes[l3 + 10..l3 + 12].copy_from_slice(&sum.to_be_bytes());
    }
    transmit(&bytes, recipe.link_header)
}

proptest! {
    /// Whatever the cuts, the packets on the wire are those of the uncut super-packet.
    #[test]
    fn slices_transmit_what_the_whole_does(recipe in recipes(), cuts in proptest::collection::btree_set(1_usize..44, 0..6)) {
        let packet = recipe.packet();
        let segments = recipe.segments();
        prop_assert_eq!(packet.segments(), segments);
        let mut bounds = vec![0];
        bounds.extend(cuts.into_iter().filter(|cut| *cut < segments));
        bounds.push(segments);
        prop_assume!(bounds.len() > 2);
        let mut sent = Vec::new();
        let mut wire = 0;
        for pair in bounds.windows(2) {
            let frame = packet.frame(pair[0]..pair[1]);
            prop_assert_eq!(frame.segments(), pair[1] - pair[0]);
            wire += frame.wire_bytes();
            sent.extend(transmit(&joined(&frame), recipe.link_header));
        }
        let expected = reference(&recipe);
        prop_assert_eq!(sent.len(), segments);
        prop_assert_eq!(wire, expected.iter().map(Vec::len).sum::<usize>());
        prop_assert_eq!(sent, expected);
    }

    /// Bytes from a stranger never panic the parser or the slicer.
    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..400), ethernet in any::<bool>()) {
        let pool = Pool::default();
        let mut scratch = pool.scratch();
        scratch[..bytes.len()].copy_from_slice(&bytes);
        let packet = Packet::new(pool.keep(&mut scratch, bytes.len()), if ethernet { ETHERNET } else { 0 });
        let segments = packet.segments();
        for index in 0..segments.min(50) {
            let _ = joined(&packet.frame(index..index + 1));
        }
    }

    /// The same for almost valid headers: one byte of a real super-packet is changed.
    #[test]
    fn damaged_headers_are_taken(recipe in recipes(), at in 0_usize..80, value in any::<u8>()) {
        let mut bytes = recipe.bytes();
        bytes[at] = value;
        if let Some(layout) = Layout::parse(&bytes, recipe.link_header) {
            for index in 0..layout.segments.min(50) {
                let _ = super::slice::head(&bytes, &layout, index, index + 1);
            }
        }
    }
}

#[test]
fn mptcp_options_are_on_every_slice() {
    let recipe = Recipe {
        ip: IpVersion::V4,
        transport: Transport::Tcp,
        options: MPTCP_DSS.to_vec(),
        payload: 10 * 1000,
        segment: 1000,
        sequence: u32::MAX - 2_500,
        id: u16::MAX,
        flags: ACK | PSH,
        link_header: ETHERNET,
    };
    let packet = recipe.packet();
    for index in 0..10 {
        let bytes = joined(&packet.frame(index..index + 1));
        let options = VNET_HEADER + ETHERNET + 40;
        assert_eq!(bytes[options..options + 20], MPTCP_DSS);
    }
}

#[test]
fn an_ordinary_packet_is_carried_unchanged() {
    let pool = Pool::default();
    let mut scratch = pool.scratch();
    scratch[..60].copy_from_slice(&[7; 60]);
    scratch[..VNET_HEADER].fill(0);
    let packet = Packet::new(pool.keep(&mut scratch, 60), ETHERNET);
    assert_eq!(packet.segments(), 1);
    assert_eq!(packet.wire_bytes(&(0..1)), 60 - VNET_HEADER - ETHERNET);
    assert_eq!(joined(&packet.frame(0..1)), [&[0; VNET_HEADER][..], &[7; 50]].concat());
}
