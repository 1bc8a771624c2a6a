//! Encoded frames on their way to a subflow's socket.

use alloc::vec::Vec;

use bytes::Bytes;

/// Payloads below this are copied: a slice of its own would cost the socket
/// and the encryption more.
const SMALL: usize = 1024;

/// Bytes in the order in which they go to the socket. Large payloads are
/// shared with the stream that they belong to and not copied.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Headers, small payloads and frames without payload.
    own: Vec<u8>,
    /// Shared payloads, each with the length of `own` before which it stands.
    shared: Vec<(usize, Bytes)>,
    shared_len: usize,
}

impl Outgoing {
    /// Bytes in all.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.own.len() + self.shared_len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all bytes and keeps the memory.
    pub fn clear(&mut self) {
        self.own.clear();
        self.shared.clear();
        self.shared_len = 0;
    }

    /// Where to append what is encoded.
    pub const fn encoder(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    /// Appends a payload.
    pub fn put(&mut self, payload: Bytes) {
        if payload.len() < SMALL {
            self.own.extend_from_slice(&payload);
        } else {
            self.shared_len += payload.len();
            self.shared.push((self.own.len(), payload));
        }
    }

    /// The bytes, in pieces that lie together; none is empty.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = core::iter::once(0).chain(self.shared.iter().map(|(at, _)| *at));
        let ends = self.shared.iter().map(|(at, _)| *at).chain([self.own.len()]);
        let own = starts.zip(ends).map(|(from, to)| &self.own[from..to]);
        let shared = self.shared.iter().map(|(_, bytes)| &bytes[..]).chain([&[][..]]);
        own.zip(shared).flat_map(|(own, shared)| [own, shared]).filter(|piece| !piece.is_empty())
    }

    /// The bytes in one vector, for drivers that have no use for pieces.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        self.pieces().for_each(|piece| all.extend_from_slice(piece));
        all
    }
}

impl From<Vec<u8>> for Outgoing {
    fn from(own: Vec<u8>) -> Self {
        Self { own, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is encoded or put comes out in order, and counts.
        #[test]
        fn pieces_are_in_order(parts in prop::collection::vec((any::<bool>(), 0..3000usize), 0..12)) {
            let (mut out, mut all) = (Outgoing::default(), Vec::new());
            for (i, (shared, size)) in parts.iter().enumerate() {
                let bytes: Vec<u8> = (0..*size).map(|j| (i * 31 + j * 7) as u8).collect();
                all.extend_from_slice(&bytes);
                if *shared {
                    out.put(bytes.into());
                } else {
                    out.encoder().extend_from_slice(&bytes);
                }
            }
            prop_assert_eq!(out.len(), all.len());
            prop_assert_eq!(out.to_vec(), all);
            prop_assert!(out.pieces().all(|piece| !piece.is_empty()));
            out.clear();
            prop_assert!(out.is_empty() && out.pieces().next().is_none());
        }
    }
}
