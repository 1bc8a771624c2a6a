//! SOCKS5 UDP ASSOCIATE (RFC 1928 §7): a client's datagrams as messages of a stream, so that each
//! takes the path that delivers first, and the small ones a second one too.
//!
//! An association belongs to its TCP connection and ends with it. Only the client's own address may
//! use it, from the port that it named or sent its first datagram from.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fbdt::{Class, MessageError, MessageOptions, Messages};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::socks5::{self, Reply};
use crate::classes::{ClassRules, DatagramGuess};
use crate::service::{Answer, AssociateRequest, Datagram, Request, read_answer, write_request};
use crate::tunnel::{Tunnel, TunnelStream, Use};

/// Bytes in front of the address: two reserved ones and the fragment's number.
const PREFIX: usize = 3;
/// Largest datagram, in bytes.
const DATAGRAM_MAX: usize = 65_535;
/// A datagram that is older than this is worth nothing any more.
const LIFETIME: Duration = Duration::from_secs(1);
/// Longest time for the exit's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(25);

/// Why there is no association.
#[derive(Debug, thiserror::Error)]
enum AssociateError {
    #[error("{1}")]
    Refused(Reply, String),
    #[error("the association failed: {0}")]
    Io(#[from] io::Error),
}

fn refused(reply: Reply, words: impl ToString) -> AssociateError {
    AssociateError::Refused(reply, words.to_string())
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
        Err(AssociateError::Refused(reply, reason)) => {
            tracing::info!(reason, "no association");
            let _ = socks5::reply(&mut client, reply).await;
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
    let (stream, messages) = tokio::time::timeout(ANSWER_TIMEOUT, open(tunnel))
        .await
        .map_err(|_| refused(Reply::TtlExpired, "the server said nothing within 25 s"))??;
    let socket = UdpSocket::bind((client.local_addr()?.ip(), 0)).await?;
    socks5::bound(client, socket.local_addr()?).await?;
    let sender = Sender { peer, port, socket: &socket, messages: &messages, rules };
    sender.relay(client, stream).await
}

/// Asks the exit for an association.
async fn open<T: Tunnel>(tunnel: &T) -> Result<(T::Stream, Messages), AssociateError> {
    let general = |error: &dyn ToString| refused(Reply::GeneralFailure, error.to_string());
    let stream = tunnel.open(Use::Known(Class::Conversational)).await;
    let mut stream = stream.map_err(|error| refused(Reply::NetworkUnreachable, error))?;
    let Some(messages) = stream.messages() else {
        let words = "the server speaks wire version 1, which has no messages; update it";
        return Err(refused(Reply::CommandNotSupported, words));
    };
    let request = Request::Associate(AssociateRequest::default());
    write_request(&mut stream, &request).await.map_err(|error| general(&error))?;
    match read_answer(&mut stream).await.map_err(|error| general(&error))? {
        Answer::Ready(_) => Ok((stream, messages)),
        Answer::Refused { code, message } => Err(refused(code.into(), message)),
    }
}

/// One association at the client's end.
struct Sender<'a> {
    peer: IpAddr,
    port: u16,
    socket: &'a UdpSocket,
    messages: &'a Messages,
    rules: &'a ClassRules,
}

impl Sender<'_> {
    async fn relay<S: TunnelStream>(
        mut self,
        client: &mut TcpStream,
        mut stream: S,
    ) -> Result<(), AssociateError> {
        let mut datagram = vec![0; DATAGRAM_MAX];
        let (mut word, mut answer) = ([0; 256], [0; 256]);
        let (mut guess, mut known) = (DatagramGuess::default(), false);
        loop {
            tokio::select! {
                received = self.socket.recv_from(&mut datagram) => {
                    let (size, from) = received?;
                    if !self.admits(from) {
                        continue;
                    }
                    let Some(class) = self.forward(&datagram[..size])? else { continue };
                    let guessed = guess.sent(Instant::now(), size as u64);
                    let news = if known { None } else { class.or(guessed) };
                    if let (Some(class), Some(setter)) = (news, stream.class_setter()) {
                        setter.set(class);
                    }
                    // What a rule names holds for what comes back, too: the exit is told.
                    if let (Some(class), false) = (class, known) {
                        stream.write_all(&[class.to_wire()]).await?;
                        stream.flush().await?;
                        known = true;
                    }
                }
                message = self.messages.receive() => {
                    let message = message.map_err(io::Error::other)?;
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
                // Nor does the server on its stream.
                read = stream.read(&mut answer) => if matches!(read, Ok(0) | Err(_)) {
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

    /// Gives a datagram to the session; `None` if it is none or could not go, else the class that
    /// a rule names for where it goes.
    fn forward(&self, datagram: &[u8]) -> Result<Option<Option<Class>>, AssociateError> {
        let Some(message) = message_of(datagram, self.messages.longest()) else {
            return Ok(None);
        };
        let Ok(Datagram { destination, .. }) = Datagram::parse(message) else { return Ok(None) };
        let class = self.rules.class_of(&destination.host, destination.port);
        let options = MessageOptions { lifetime: Some(LIFETIME), ..MessageOptions::default() };
        match self.messages.try_send(Bytes::copy_from_slice(message), options) {
            Ok(()) => Ok(Some(class)),
            Err(MessageError::Blocked | MessageError::TooLong { .. }) => Ok(None),
            Err(error) => Err(io::Error::other(error).into()),
        }
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
