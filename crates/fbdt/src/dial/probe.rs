//! A client's probes of one path.

use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::net::UdpSocket;

use crate::config::PathSpec;
use crate::echo::{ANSWER, EchoKey};
use crate::identity::fill_random;
use crate::socket::{SocketError, probing};

/// Probes that may be under way; the answer to an older one counts no more.
const MOST: usize = 256;

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The server answered after this time.
    Server(Duration),
    /// Somebody said that nobody takes datagrams there.
    Nobody,
}

/// Sends probes of one path and waits for answers.
pub(super) struct Prober {
    key: EchoKey,
    mark: Option<u32>,
    socket: Option<(SocketAddr, UdpSocket)>,
    next: u64,
    sent: VecDeque<(u64, Instant)>,
}

impl Prober {
    pub(super) fn new(key: EchoKey, mark: Option<u32>) -> Self {
        let mut first = [0; 8];
        // Without randomness a number may come again, and its answer may be an old one.
        let _ = fill_random(&mut first);
        let next = u64::from_be_bytes(first);
        Self { key, mark, socket: None, next, sent: VecDeque::new() }
    }

    /// Sends a probe to the server.
    ///
    /// # Errors
    /// There is no socket for it. One that was not sent is like one that was lost.
    pub(super) fn send(&mut self, spec: &PathSpec, remote: SocketAddr) -> Result<(), SocketError> {
        if self.socket.as_ref().is_none_or(|(to, _)| *to != remote) {
            self.socket = Some((remote, probing(&spec.local, remote, self.mark)?));
        }
        self.next = self.next.wrapping_add(1);
        if self.sent.len() >= MOST {
            self.sent.pop_front();
        }
        self.sent.push_back((self.next, Instant::now()));
        if let Some((_, socket)) = &self.socket
            // By the system itself: tokio does not know yet that a new socket takes bytes.
            && SockRef::from(socket).send(&self.key.probe(self.next)).is_err()
        {
            // The address may have changed: the next probe has a socket of its own.
            self.socket = None;
        }
        Ok(())
    }

    /// No answer is waited for any more.
    pub(super) fn rest(&mut self) {
        self.socket = None;
        self.sent.clear();
    }

    /// Waits for what becomes of the probes.
    pub(super) async fn answer(&mut self) -> Answer {
        let Some((_, socket)) = &self.socket else { return pending().await };
        let mut bytes = [0; ANSWER + 1];
        loop {
            match socket.recv(&mut bytes).await {
                Ok(length) => {
                    let nonce = bytes.get(..length).and_then(|bytes| self.key.answered(bytes));
                    let sent = self.sent.iter().find(|(number, _)| Some(*number) == nonce);
                    if let Some((_, at)) = sent {
                        return Answer::Server(at.elapsed());
                    }
                }
                Err(_) => {
                    self.socket = None;
                    return Answer::Nobody;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fbdt_proto::PathId;

    use super::*;
    use crate::auth::ProofKey;
    use crate::echo::PROBE;
    use crate::identity::Secret;

    #[tokio::test]
    async fn f19_the_first_probe_of_a_socket_is_sent_and_its_answer_counts() {
        let session = ProofKey::of_credential(&Secret::from_bytes([7; 32]));
        let key = EchoKey::new(&session, PathId(0));
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut prober = Prober::new(key.clone(), None);
        prober.send(&PathSpec::default(), server.local_addr().unwrap()).unwrap();
        let mut probe = [0; PROBE];
        let (_, client) = server.recv_from(&mut probe).await.unwrap();
        // What was not asked is no answer, nor is the probe itself.
        server.send_to(&key.answer(&key.probe(1)).unwrap(), client).await.unwrap();
        server.send_to(&probe[..ANSWER], client).await.unwrap();
        server.send_to(&key.answer(&probe).unwrap(), client).await.unwrap();
        assert!(matches!(prober.answer().await, Answer::Server(_)));
    }

    #[tokio::test]
    async fn f19_a_port_that_nobody_has_is_found_out() {
        let key = EchoKey::new(&ProofKey::of_credential(&Secret::from_bytes([7; 32])), PathId(0));
        let gone = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let mut prober = Prober::new(key, None);
        prober.send(&PathSpec::default(), gone).unwrap();
        assert_eq!(prober.answer().await, Answer::Nobody);
    }
}
