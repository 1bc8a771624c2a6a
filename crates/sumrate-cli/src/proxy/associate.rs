//! SOCKS5 UDP ASSOCIATE (RFC 1928 §7): a client's datagrams go through an association with the exit.
//!
//! An association belongs to its TCP connection and ends with it. Only the client's own address may
//! use it, from the port that it named or sent its first datagram from.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UdpSocket};

use super::association::{Association, Carrier};
use super::connect::ConnectFailure;
use super::socks5;
use crate::classes::ClassRules;
use crate::service::Datagram;
use crate::tunnel::Tunnel;

/// Bytes in front of the address: two reserved ones and the fragment's number.
const PREFIX: usize = 3;
/// Largest datagram, in bytes.
const DATAGRAM_MAX: usize = 65_535;

/// Why there is no association.
#[derive(Debug, thiserror::Error)]
enum AssociateError {
    #[error(transparent)]
    Refused(#[from] ConnectFailure),
    #[error("the association failed: {0}")]
    Io(#[from] io::Error),
}

/// Serves a client that asked for an association and will send from `port`, or from any for 0.
pub(super) async fn serve<T: Tunnel>(
    mut client: TcpStream,
    tunnel: &T,
    rules: &ClassRules,
    port: u16,
) {
    match associate(&mut client, tunnel, rules, port).await {
        Ok(()) => tracing::debug!("an association ended"),
        Err(AssociateError::Refused(failure)) => {
            tracing::info!(%failure, "UDP refused");
            let _ = socks5::reply(&mut client, failure.code.into()).await;
        }
        Err(error) => tracing::debug!(%error, "an association failed"),
    }
}

async fn associate<T: Tunnel>(
    client: &mut TcpStream,
    tunnel: &T,
    rules: &ClassRules,
    port: u16,
) -> Result<(), AssociateError> {
    let peer = client.peer_addr()?.ip();
    let association = Association::open(tunnel).await?;
    let socket = UdpSocket::bind((client.local_addr()?.ip(), 0)).await?;
    socks5::bound(client, socket.local_addr()?).await?;
    Ok(Sender { peer, port, socket: &socket, rules }.relay(client, association).await?)
}

/// One association at the client's end.
struct Sender<'a> {
    peer: IpAddr,
    port: u16,
    socket: &'a UdpSocket,
    rules: &'a ClassRules,
}

impl Sender<'_> {
    async fn relay(
        mut self,
        client: &mut TcpStream,
        mut association: impl Carrier,
    ) -> io::Result<()> {
        let (mut datagram, mut word) = (vec![0; DATAGRAM_MAX], [0; 256]);
        loop {
            tokio::select! {
                received = self.socket.recv_from(&mut datagram) => {
                    let (size, from) = received?;
                    if !self.admits(from) {
                        continue;
                    }
                    if let Some(message) = message_of(&datagram[..size], association.longest()) {
                        association.send(message, self.rules).await?;
                    }
                }
                message = association.receive() => {
                    let Some(message) = message? else { return Ok(()) };
                    let packet = [&[0; PREFIX][..], &message].concat();
                    // What the client does not take is lost, as datagrams are.
                    if self.port != 0 {
                        let _ = self.socket.send_to(&packet, (self.peer, self.port)).await;
                    }
                }
                // It says nothing more on its connection; the association ends with it.
                read = client.read(&mut word) => if matches!(read, Ok(0) | Err(_)) {
                    return Ok(());
                },
            }
        }
    }

    /// Whether the client sent this: the port of its first datagram becomes the association's.
    fn admits(&mut self, from: SocketAddr) -> bool {
        if from.ip() != self.peer || (self.port != 0 && from.port() != self.port) {
            return false;
        }
        self.port = from.port();
        true
    }
}

/// What of a client's datagram travels: all behind the prefix. Fragments are dropped, as RFC 1928
/// allows, and what is too long for a message.
pub(crate) fn message_of(datagram: &[u8], longest: usize) -> Option<&[u8]> {
    let (&[_, _, fragment], message) = datagram.split_first_chunk::<PREFIX>()?;
    (fragment == 0 && message.len() <= longest && Datagram::parse(message).is_ok())
        .then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_and_what_is_no_datagram_are_dropped() {
        let whole = b"\0\0\0\x01\x7f\0\0\x01\0\x35query";
        assert_eq!(message_of(whole, 100), Some(&whole[3..]));
        assert_eq!(message_of(whole, 11), None, "too long");
        for fragment in [1, 0x7f, 0x81] {
            let mut datagram = whole.to_vec();
            datagram[2] = fragment;
            assert_eq!(message_of(&datagram, 100), None);
        }
        for nothing in [&b""[..], b"\0\0", b"\0\0\0", b"\0\0\0\x05a", b"\0\0\0\x03\0\0\x35"] {
            assert_eq!(message_of(nothing, 100), None);
        }
    }
}
