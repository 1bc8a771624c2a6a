//! Any packet: what is made of it is a packet again, of the same kind and for the right end.
#![allow(clippy::panic, clippy::expect_used)] // this is what finds

use super::packet::{Packet, datagram, port_unreachable};

/// A packet as it comes out of the device.
pub fn packet(data: &[u8]) {
    let Some(packet) = Packet::parse(data) else { return };
    let said = data.get(packet.payload..packet.end).expect("the payload is within the packet");
    if let Some(answer) = datagram(packet.destination, packet.source, said) {
        let back = Packet::parse(&answer).expect("an answer is a packet");
        assert_eq!((back.source, back.destination), (packet.destination, packet.source));
        assert_eq!(&answer[back.payload..back.end], said);
    }
    let refused = port_unreachable(data, &packet).expect("a datagram can be refused");
    assert!(refused.len() <= 1280, "an ICMP error fits the least MTU of IPv6");
}
