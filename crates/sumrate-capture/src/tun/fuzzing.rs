//! Any packet: what is made of it is a packet again, of the same kind and for the right end.
#![allow(clippy::panic, clippy::expect_used)] // this is what finds

use std::net::SocketAddr;

use super::packet::{Packet, Transport, datagram, port_unreachable, refused_segment};
use super::peer;

/// A packet as it comes out of the device.
pub fn packet(data: &[u8]) {
    let Some(packet) = Packet::parse(data) else { return };
    match packet.transport {
        Transport::Tcp { .. } => segment(data, &packet),
        Transport::Udp { payload, end } => {
            let said = data.get(payload..end).expect("the payload is within the packet");
            if let Some(answer) = datagram(packet.destination, packet.source, said) {
                let back = Packet::parse(&answer).expect("an answer is a packet");
                assert_eq!((back.source, back.destination), (packet.destination, packet.source));
                let Transport::Udp { payload, end } = back.transport else { panic!("{back:?}") };
                assert_eq!(&answer[payload..end], said);
            }
            let refused = port_unreachable(data, &packet).expect("a datagram can be refused");
            assert!(refused.len() <= 1280, "an ICMP error fits the least MTU of IPv6");
        }
    }
}

fn segment(data: &[u8], packet: &Packet) {
    let peer = peer(usize::from(packet.source.is_ipv6()));
    let (source, destination) = (SocketAddr::new(peer, 1024), SocketAddr::new(peer, 1025));
    let mut bytes = data.to_vec();
    packet.readdress(&mut bytes, source, destination);
    let there = Packet::parse(&bytes).expect("it is still a packet");
    assert_eq!((there.source, there.destination), (source, destination));
    assert_eq!(there.transport, packet.transport);
    there.readdress(&mut bytes, packet.source, packet.destination);
    assert_eq!(Packet::parse(&bytes), Some(*packet), "and back");
    if let Some(reset) = refused_segment(data, packet) {
        let back = Packet::parse(&reset).expect("a reset is a packet");
        assert_eq!((back.source, back.destination), (packet.destination, packet.source));
        assert!(back.ends() && refused_segment(&reset, &back).is_none(), "no reset for a reset");
    }
}
