//! Proofs of the handshake: HMAC-SHA256 over what both ends know of one connection.
//!
//! Every proof covers the exporter of the TLS connection it is sent on (RFC 8446, section 7.5),
//! so that a proof taken from one connection is worth nothing on another (DESIGN §5). In the
//! plaintext lab mode the exporter is all zeros: proofs still show knowledge of the secret, but
//! do not prevent replay.

use aws_lc_rs::hmac;

use fbdt_proto::handshake::{Proof, SessionId, limits_bytes};
use fbdt_proto::{Limits, PathId};

use crate::identity::{RandomError, Secret, fill_random};

/// Keying material of one connection; zeros without TLS.
pub(crate) type Exporter = [u8; 32];

/// The label under which [`Exporter`]s are exported.
pub(crate) const EXPORTER_LABEL: &[u8] = b"EXPORTER-fbdt";

const HELLO: &[u8] = b"fbdt hello";
const SESSION: &[u8] = b"fbdt session";
const JOIN: &[u8] = b"fbdt join";
const WELCOME: &[u8] = b"fbdt welcome";
const ECHO_TAG: &[u8] = b"fbdt echo tag";
const ECHO: &[u8] = b"fbdt echo";

/// The proof does not match: the peer does not know the secret, or not on this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrongProof;

/// A key that proofs are made with: a credential's secret or a session's key.
#[derive(Clone)]
pub(crate) struct ProofKey(hmac::Key);

impl std::fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProofKey(<redacted>)")
    }
}

impl ProofKey {
    /// Key of a credential, for [`hello`](Self::hello).
    pub(crate) fn of_credential(secret: &Secret) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.expose()))
    }

    /// Key of a session, for [`join`](Self::join): known to who opened it, on that connection.
    pub(crate) fn of_session(&self, session: &SessionId, first: &Exporter) -> Self {
        let key = self.sign(&[SESSION, session, first]);
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    /// Proof that opens a session.
    pub(crate) fn hello(&self, exporter: &Exporter, path: PathId, limits: &Limits) -> Proof {
        self.sign(&[HELLO, exporter, &[path.0], &limits_bytes(limits)])
    }

    /// Proof that adds a subflow.
    pub(crate) fn join(&self, exporter: &Exporter, path: PathId) -> Proof {
        self.sign(&[JOIN, exporter, &[path.0]])
    }

    /// The server's proof in its answer to either.
    pub(crate) fn welcome(&self, exporter: &Exporter, session: &SessionId) -> Proof {
        self.sign(&[WELCOME, exporter, session])
    }

    /// Tag and key of a session's probes on a path (F19).
    pub(crate) fn echo(&self, path: PathId) -> (Proof, Proof) {
        (self.sign(&[ECHO_TAG, &[path.0]]), self.sign(&[ECHO, &[path.0]]))
    }

    fn sign(&self, parts: &[&[u8]]) -> Proof {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(part);
        }
        let mut proof = [0; 32];
        proof.copy_from_slice(context.sign().as_ref());
        proof
    }
}

/// Compares two proofs in constant time.
pub(crate) fn check(expected: &Proof, received: &Proof) -> Result<(), WrongProof> {
    aws_lc_rs::constant_time::verify_slices_are_equal(expected, received).map_err(|_| WrongProof)
}

/// Draws the id of a new session.
pub(crate) fn new_session_id() -> Result<SessionId, RandomError> {
    let mut id = [0; 16];
    fill_random(&mut id)?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Exporter = [1; 32];
    const TWO: Exporter = [2; 32];

    fn key(byte: u8) -> ProofKey {
        ProofKey::of_credential(&Secret::from_bytes([byte; 32]))
    }

    #[test]
    fn a_join_is_worth_nothing_on_another_connection_or_path() {
        let session = key(7).of_session(&[3; 16], &ONE);
        let proof = session.join(&TWO, PathId(1));
        assert_eq!(check(&session.join(&TWO, PathId(1)), &proof), Ok(()));
        assert_eq!(check(&session.join(&ONE, PathId(1)), &proof), Err(WrongProof));
        assert_eq!(check(&session.join(&TWO, PathId(2)), &proof), Err(WrongProof));
    }

    #[test]
    fn every_input_changes_a_hello() {
        let limits = Limits::default();
        let proof = key(7).hello(&ONE, PathId(0), &limits);
        let smaller = Limits { max_streams: limits.max_streams - 1, ..limits };
        assert_ne!(proof, key(8).hello(&ONE, PathId(0), &limits));
        assert_ne!(proof, key(7).hello(&TWO, PathId(0), &limits));
        assert_ne!(proof, key(7).hello(&ONE, PathId(1), &limits));
        assert_ne!(proof, key(7).hello(&ONE, PathId(0), &smaller));
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", key(7).of_session(&[3; 16], &ONE)), "ProofKey(<redacted>)");
    }

    #[test]
    fn session_keys_differ_by_session_and_first_connection() {
        let join = |session: &SessionId, first: &Exporter| {
            key(7).of_session(session, first).join(&TWO, PathId(0))
        };
        assert_ne!(join(&[3; 16], &ONE), join(&[4; 16], &ONE));
        assert_ne!(join(&[3; 16], &ONE), join(&[3; 16], &TWO));
    }

    #[test]
    fn hmac_matches_rfc_4231_case_2() {
        let key = ProofKey(hmac::Key::new(hmac::HMAC_SHA256, b"Jefe"));
        let tag = key.sign(&[b"what do ya want ", b"for nothing?"]);
        assert_eq!(tag[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }
}
