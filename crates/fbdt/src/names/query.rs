//! One question to one name server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, TYPE};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::Network;
use crate::identity::fill_random;

/// How long each of the datagrams with a question is answered.
const ATTEMPTS: [Duration; 3] =
    [Duration::from_millis(1500), Duration::from_millis(2500), Duration::from_secs(4)];
/// Longest answer over UDP without EDNS (RFC 1035, section 4.2.1).
const LONGEST: usize = 512;

/// The address family that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ipv4,
    Ipv6,
}

impl Kind {
    const fn record(self) -> TYPE {
        match self {
            Self::Ipv4 => TYPE::A,
            Self::Ipv6 => TYPE::AAAA,
        }
    }
}

/// The addresses that a name server has for a name, asked through the network's own interface.
pub(super) async fn ask(
    network: &Network,
    server: SocketAddr,
    host: &str,
    kind: Kind,
) -> io::Result<Vec<IpAddr>> {
    let mut id = [0; 2];
    fill_random(&mut id).map_err(io::Error::other)?;
    let id = u16::from_ne_bytes(id);
    let question = question(id, host, kind)?;
    let socket = socket(network, server)?;
    for patience in ATTEMPTS {
        socket.send(&question).await?;
        if let Ok(answer) = timeout(patience, answer(&socket, id, host, kind)).await {
            return answer;
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn socket(network: &Network, server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if let Some(mark) = network.mark {
        socket.set_mark(mark)?;
    }
    socket.bind_device(Some(network.interface.as_bytes()))?;
    // Datagrams of others are not delivered to a connected socket.
    socket.connect(&server.into())?;
    UdpSocket::from_std(socket.into())
}

fn question(id: u16, host: &str, kind: Kind) -> io::Result<Vec<u8>> {
    let name = Name::new(host).map_err(io::Error::other)?;
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(name, kind.record().into(), CLASS::IN.into(), false));
    packet.build_bytes_vec().map_err(io::Error::other)
}

/// Waits for the answer; what is none, or another's, is passed over.
async fn answer(socket: &UdpSocket, id: u16, host: &str, kind: Kind) -> io::Result<Vec<IpAddr>> {
    let mut buffer = [0; LONGEST];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if let Some(found) = addresses(&buffer[..length], id, host, kind) {
            return Ok(found);
        }
    }
}

/// The addresses in the answer to a question; none where the name has none.
fn addresses(message: &[u8], id: u16, host: &str, kind: Kind) -> Option<Vec<IpAddr>> {
    let packet = Packet::parse(message).ok()?;
    let asked = packet.questions.first()?;
    let is_answer = packet.id() == id
        && packet.has_flags(PacketFlag::RESPONSE)
        && asked.qtype == kind.record().into()
        && asked.qname.to_string().eq_ignore_ascii_case(host.trim_end_matches('.'));
    let address = |data: &RData<'_>| match data {
        RData::A(record) => Some(IpAddr::V4(Ipv4Addr::from_bits(record.address))),
        RData::AAAA(record) => Some(IpAddr::V6(Ipv6Addr::from_bits(record.address))),
        _ => None,
    };
    is_answer.then(|| packet.answers.iter().filter_map(|record| address(&record.rdata)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::A;

    const HOST: &str = "server.example.org";

    fn reply(id: u16, host: &str, kind: Kind) -> Vec<u8> {
        let asked = question(id, host, kind).unwrap();
        let mut reply = Packet::parse(&asked).unwrap().into_reply();
        let name = Name::new_unchecked(HOST);
        let data = RData::A(A { address: Ipv4Addr::new(192, 0, 2, 7).to_bits() });
        reply.answers.push(ResourceRecord::new(name, CLASS::IN, 60, data));
        reply.set_flags(PacketFlag::RESPONSE);
        reply.build_bytes_vec().unwrap()
    }

    #[test]
    fn only_the_answer_to_the_question_counts() {
        let found = |message: &[u8]| addresses(message, 7, HOST, Kind::Ipv4);
        let address: IpAddr = [192, 0, 2, 7].into();
        assert_eq!(found(&reply(7, HOST, Kind::Ipv4)), Some(vec![address]));
        assert_eq!(found(&reply(7, "Server.Example.ORG", Kind::Ipv4)), Some(vec![address]));
        for other in [
            reply(8, HOST, Kind::Ipv4),
            reply(7, "other.example.org", Kind::Ipv4),
            reply(7, HOST, Kind::Ipv6),
            question(7, HOST, Kind::Ipv4).unwrap(),
        ] {
            assert_eq!(found(&other), None);
        }
        let whole = reply(7, HOST, Kind::Ipv4);
        for length in 0..whole.len() {
            assert_eq!(found(&whole[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn a_name_that_cannot_be_one_is_not_asked_for() {
        assert!(question(1, &"a".repeat(64), Kind::Ipv4).is_err());
    }
}
