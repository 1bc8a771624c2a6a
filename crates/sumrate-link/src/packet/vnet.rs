//! The 10-byte `virtio_net_hdr` that precedes each packet on an AF_PACKET or TUN descriptor.

/// Bytes of the header.
pub const VNET_HEADER: usize = 10;

/// The checksum must be completed by the device: `csum_start` and `csum_offset` are valid.
pub const NEEDS_CSUM: u8 = 1;
/// Flag of `gso_type`: the first segment carries CWR.
pub const GSO_ECN: u8 = 0x80;

/// What kind of super-packet follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gso {
    /// An ordinary packet, or one that this crate treats as such.
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP (`UDP_SEGMENT`) over either.
    Udp,
}

/// The header's fields, in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VnetHeader {
    /// `NEEDS_CSUM`, `DATA_VALID`.
    pub flags: u8,
    /// Raw `gso_type`, with `GSO_ECN`.
    pub gso_type: u8,
    /// Bytes of all headers, from the start of the frame.
    pub header_length: u16,
    /// Payload bytes per segment.
    pub gso_size: u16,
    /// Where checksumming starts, from the start of the frame.
    pub csum_start: u16,
    /// Where the checksum lies, from `csum_start`.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// Reads the header; `None` if `bytes` is shorter than one.
    pub fn parse(bytes: &[u8]) -> Option<VnetHeader> {
        let b = bytes.get(..VNET_HEADER)?;
        let word = |at: usize| u16::from_ne_bytes([b[at], b[at + 1]]);
        Some(VnetHeader {
            flags: b[0],
            gso_type: b[1],
            header_length: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        })
    }

    /// The header's wire form.
    pub fn to_bytes(self) -> [u8; VNET_HEADER] {
        let mut out = [0; VNET_HEADER];
        out[0] = self.flags;
        out[1] = self.gso_type;
        for (at, value) in [
            (2, self.header_length),
            (4, self.gso_size),
            (6, self.csum_start),
            (8, self.csum_offset),
        ] {
            out[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        out
    }

    /// The kind of super-packet.
    pub fn gso(self) -> Gso {
        match self.gso_type & !GSO_ECN {
            1 => Gso::TcpV4,
            4 => Gso::TcpV6,
            5 => Gso::Udp,
            _ => Gso::None,
        }
    }
}
