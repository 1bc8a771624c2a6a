//! Probes of a path without a connection: a datagram that the server echoes (F19).
//!
//! A probe is known by its tag and its MAC, under a key of the session and path. The answer is shorter, and
//! under the same key. Nobody else gets one.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use fbdt_proto::PathId;

use crate::auth::ProofKey;
use crate::identity::{Secret, fill_random};

/// Length of a probe and of its answer, in bytes.
pub(crate) const PROBE: usize = TAG + NONCE + MAC;
pub(crate) const ANSWER: usize = NONCE + MAC;

const TAG: usize = 8;
const NONCE: usize = 8;
const MAC: usize = 16;

/// Says which session and path a probe belongs to; no stranger knows whose it is.
pub(crate) type Tag = [u8; TAG];

/// What probes of one session and path are made with.
#[derive(Clone)]
pub(crate) struct EchoKey {
    tag: Tag,
    key: hmac::Key,
}

impl EchoKey {
    /// The key of a path of the session that has this key.
    pub(crate) fn new(session: &ProofKey, path: PathId) -> Self {
        let (tag, key) = session.echo(path);
        let tag = *tag.first_chunk().unwrap_or(&[0; TAG]);
        Self { tag, key: hmac::Key::new(hmac::HMAC_SHA256, &key) }
    }

    /// A key that no server has.
    pub(crate) fn of_nobody() -> Self {
        let mut secret = [0; Secret::LENGTH];
        // Without randomness it is still nobody's.
        let _ = fill_random(&mut secret);
        Self::new(&ProofKey::of_credential(&Secret::from_bytes(secret)), PathId(0))
    }

    pub(crate) const fn tag(&self) -> Tag {
        self.tag
    }

    /// The probe with this number.
    pub(crate) fn probe(&self, nonce: u64) -> [u8; PROBE] {
        let mut bytes = [0; PROBE];
        bytes[..TAG].copy_from_slice(&self.tag);
        bytes[TAG..].copy_from_slice(&self.signed(b"probe", nonce));
        bytes
    }

    /// The answer to a probe, if it is one.
    pub(crate) fn answer(&self, probe: &[u8; PROBE]) -> Option<[u8; ANSWER]> {
        let nonce = u64::from_be_bytes(*probe[TAG..].first_chunk()?);
        verify_slices_are_equal(&self.probe(nonce), probe).ok()?;
        Some(self.signed(b"answer", nonce))
    }

    /// The number of the probe that these bytes answer, if they do.
    pub(crate) fn answered(&self, bytes: &[u8]) -> Option<u64> {
        let nonce = u64::from_be_bytes(*bytes.first_chunk()?);
        verify_slices_are_equal(&self.signed(b"answer", nonce), bytes).ok()?;
        Some(nonce)
    }

    fn signed(&self, what: &[u8], nonce: u64) -> [u8; ANSWER] {
        let nonce = nonce.to_be_bytes();
        let mut context = hmac::Context::with_key(&self.key);
        context.update(what);
        context.update(&nonce);
        let mut bytes = [0; ANSWER];
        bytes[..NONCE].copy_from_slice(&nonce);
        bytes[NONCE..].copy_from_slice(&context.sign().as_ref()[..MAC]);
        bytes
    }
}

/// The tag that a datagram of the right length begins with.
pub(crate) fn tag_of(datagram: &[u8]) -> Option<(Tag, &[u8; PROBE])> {
    let probe: &[u8; PROBE] = datagram.try_into().ok()?;
    Some((*probe.first_chunk()?, probe))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Secret;

    fn key(secret: u8, path: u8) -> EchoKey {
        let credential = ProofKey::of_credential(&Secret::from_bytes([secret; 32]));
        EchoKey::new(&credential.of_session(&[1; 16], &[2; 32]), PathId(path))
    }

    #[test]
    fn f19_the_answer_is_shorter_and_no_probe() {
        let key = key(7, 0);
        let probe = key.probe(42);
        let (tag, whole) = tag_of(&probe).unwrap();
        assert_eq!((tag, whole), (key.tag(), &probe));
        let answer = key.answer(&probe).unwrap();
        assert_eq!(key.answered(&answer), Some(42));
        assert!(ANSWER < PROBE && tag_of(&answer).is_none());
        assert_eq!(key.answered(&probe[TAG..]), None, "a probe that comes back is no answer");
    }

    #[test]
    fn f19_every_changed_bit_is_refused() {
        let key = key(7, 0);
        let (probe, answer) = (key.probe(42), key.answer(&key.probe(42)).unwrap());
        for bit in 0..PROBE * 8 {
            let mut changed = probe;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.answer(&changed), None, "bit {bit}");
        }
        for bit in 0..ANSWER * 8 {
            let mut changed = answer;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.answered(&changed), None, "bit {bit}");
        }
        assert!(tag_of(&probe[..PROBE - 1]).is_none());
        assert_eq!(key.answered(&[]), None);
    }

    #[test]
    fn f19_sessions_and_paths_have_keys_and_tags_of_their_own() {
        let probe = key(7, 0).probe(1);
        for other in [key(8, 0), key(7, 1)] {
            assert_ne!(other.tag(), key(7, 0).tag());
            assert_eq!(other.answer(&probe), None);
        }
    }
}
