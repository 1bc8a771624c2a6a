//! Packets as they come from a device: one `virtio_net_hdr`, a link header, IP. A GSO super-packet holds many segments
//! and is kept whole until a loss or the rate asks for a part of it.

pub mod buffer;
pub mod checksum;
pub mod layout;
pub mod slice;
#[cfg(test)]
mod tests;
pub mod vnet;

use std::ops::Range;
use std::rc::Rc;

use buffer::Buffer;
use layout::Layout;
use slice::Head;
use vnet::VNET_HEADER;

/// A packet on its way through the emulator.
#[derive(Clone, Debug)]
pub struct Packet {
    buffer: Rc<Buffer>,
    layout: Option<Layout>,
    wire: usize,
}

impl Packet {
    /// Examines a received packet whose frames have `link_header` bytes before IP (14 on Ethernet, 0 on TUN).
    pub fn new(buffer: Rc<Buffer>, link_header: usize) -> Packet {
        let layout = Layout::parse(buffer.as_slice(), link_header);
        let wire = buffer.as_slice().len().saturating_sub(VNET_HEADER + link_header);
        Packet { buffer, layout, wire }
    }

    /// Segments that this packet is on the wire: 1 unless it is a super-packet.
    pub fn segments(&self) -> usize {
        self.layout.map_or(1, |layout| layout.segments)
    }

    /// Bytes of IP (headers included, no link header) of segments `range` on the wire.
    pub fn wire_bytes(&self, range: &Range<usize>) -> usize {
        match &self.layout {
            None => self.wire * range.len(),
            Some(layout) => {
                let payload = layout.payload_range(range.start, range.end).len();
                layout.header_bytes() * range.len() + payload
            }
        }
    }

    /// The frame that carries segments `range`.
    pub fn frame(&self, range: Range<usize>) -> Frame {
        let wire = self.wire_bytes(&range);
        let whole = 0..self.segments();
        match &self.layout {
            Some(layout) if range != whole => Frame {
                head: Some(Box::new(slice::head(
                    self.buffer.as_slice(),
                    layout,
                    range.start,
                    range.end,
                ))),
                body: layout.payload_range(range.start, range.end),
                buffer: Rc::clone(&self.buffer),
                segments: range.len(),
                wire,
            },
            _ => Frame {
                head: None,
                body: 0..self.buffer.as_slice().len(),
                buffer: Rc::clone(&self.buffer),
                segments: self.segments(),
                wire,
            },
        }
    }
}

/// What is written to a device at once: rewritten headers, if any, and a part of a received packet.
#[derive(Clone, Debug)]
pub struct Frame {
    head: Option<Box<Head>>,
    body: Range<usize>,
    buffer: Rc<Buffer>,
    segments: usize,
    wire: usize,
}

impl Frame {
    /// Rewritten headers (may be empty) and the bytes that follow them.
    pub fn parts(&self) -> [&[u8]; 2] {
        let head = self.head.as_ref().map_or(&[][..], |head| head.as_slice());
        [head, &self.buffer.as_slice()[self.body.clone()]]
    }

    /// Segments on the wire.
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// Bytes of IP on the wire.
    pub fn wire_bytes(&self) -> usize {
        self.wire
    }
}
