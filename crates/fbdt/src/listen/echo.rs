//! The server's answers to probes of paths: none to strangers, and no state.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fbdt_proto::PathId;
use fbdt_proto::handshake::SessionId;

use crate::auth::ProofKey;
use crate::echo::{ANSWER, EchoKey, PROBE, Tag, tag_of};
use crate::socket::{EchoSocket, SocketOptions};

/// Pause after the system could not receive.
const PAUSE: Duration = Duration::from_millis(100);

/// The keys of all paths that a session has or had, by the tag of their probes.
#[derive(Default)]
pub(super) struct EchoKeys(Mutex<HashMap<Tag, (SessionId, EchoKey)>>);

impl EchoKeys {
    fn lock(&self) -> MutexGuard<'_, HashMap<Tag, (SessionId, EchoKey)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path was let into a session with this key.
    pub(super) fn insert(&self, session: SessionId, key: &ProofKey, path: PathId) {
        let key = EchoKey::new(key, path);
        self.lock().insert(key.tag(), (session, key));
    }

    /// A session is over.
    pub(super) fn remove(&self, session: &SessionId) {
        self.lock().retain(|_, (other, _)| other != session);
    }

    /// The answer to a datagram; `None` if it is no probe of a session that there is.
    pub(super) fn answer(&self, datagram: &[u8]) -> Option<[u8; ANSWER]> {
        let (tag, probe) = tag_of(datagram)?;
        let key = self.lock().get(&tag)?.1.clone();
        key.answer(probe)
    }
}

/// Sockets for probes, one for each address that is listened on. Where one cannot be had, clients dial.
pub(super) fn sockets(addresses: &[SocketAddr], options: &SocketOptions) -> Vec<EchoSocket> {
    let socket = |address: &SocketAddr| {
        EchoSocket::bind(*address, options)
            .inspect_err(|error| {
                tracing::warn!(
                    "UDP {address} cannot be used ({error}): clients find a path that was silent later"
                );
            })
            .ok()
    };
    addresses.iter().filter_map(socket).collect()
}

/// Answers probes for ever.
pub(super) async fn echo_loop(socket: EchoSocket, keys: Arc<EchoKeys>) {
    let mut buffer = [0; PROBE];
    loop {
        match socket.receive(&mut buffer).await {
            Ok((PROBE, asker)) => {
                if let Some(answer) = keys.answer(&buffer) {
                    // A client asks again.
                    let _ = socket.answer(&answer, &asker);
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "a probe cannot be received");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UdpSocket;

    use super::*;
    use crate::identity::Secret;
    use crate::socket::{LocalBinding, probing};

    const SESSION: SessionId = [1; 16];

    fn session_key() -> ProofKey {
        ProofKey::of_credential(&Secret::from_bytes([7; 32])).of_session(&SESSION, &[2; 32])
    }

    /// A server at an address, its keys, and a socket of a client that asks another address of it.
    fn served(address: [u8; 4], asked: [u8; 4]) -> (Arc<EchoKeys>, UdpSocket) {
        let socket = EchoSocket::bind((address, 0).into(), &SocketOptions::default()).unwrap();
        let port = socket.local_addr().unwrap().port();
        let keys = Arc::new(EchoKeys::default());
        keys.insert(SESSION, &session_key(), PathId(3));
        tokio::spawn(echo_loop(socket, keys.clone()));
        let client = probing(&LocalBinding::Any, (asked, port).into(), None).unwrap();
        (keys, client)
    }

    async fn answered(client: &UdpSocket, key: &EchoKey) -> Option<u64> {
        let mut bytes = [0; 64];
        let length = client.recv(&mut bytes).await.unwrap();
        key.answered(&bytes[..length])
    }

    #[tokio::test]
    async fn f19_strangers_and_wrong_probes_get_nothing() {
        let (_, client) = served([127, 0, 0, 1], [127, 0, 0, 1]);
        let key = EchoKey::new(&session_key(), PathId(3));
        let mut changed = key.probe(5);
        changed[PROBE - 1] ^= 1;
        let stranger = EchoKey::new(&session_key(), PathId(4)).probe(5);
        let longer = [&key.probe(5)[..], &[0]].concat();
        for wrong in [&[][..], &[0; PROBE], &changed, &stranger, &key.probe(5)[1..], &longer] {
            client.send(wrong).await.unwrap();
        }
        client.send(&key.probe(6)).await.unwrap();
        assert_eq!(answered(&client, &key).await, Some(6), "the first answer is to the only probe");
    }

    #[tokio::test]
    async fn f19_the_answer_comes_from_the_address_that_was_asked() {
        let (_, client) = served([0, 0, 0, 0], [127, 0, 0, 3]);
        let key = EchoKey::new(&session_key(), PathId(3));
        client.send(&key.probe(6)).await.unwrap();
        // The socket is connected: it takes nothing from another address.
        let answer = tokio::time::timeout(Duration::from_secs(10), answered(&client, &key)).await;
        assert_eq!(answer, Ok(Some(6)));
    }

    #[test]
    fn f19_a_session_that_is_over_gets_no_answer() {
        let keys = EchoKeys::default();
        let probe = EchoKey::new(&session_key(), PathId(3)).probe(1);
        assert_eq!(keys.answer(&probe), None);
        keys.insert(SESSION, &session_key(), PathId(3));
        assert!(keys.answer(&probe).is_some());
        keys.remove(&[9; 16]);
        assert!(keys.answer(&probe).is_some(), "another session's end");
        keys.remove(&SESSION);
        assert_eq!(keys.answer(&probe), None);
    }
}
