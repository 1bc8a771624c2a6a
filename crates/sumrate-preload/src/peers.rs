//! Whom sockets were meant for, by the kernel's own number for a socket (SO_COOKIE), so that it is
//! right for copies of a descriptor and after `fork`, and nothing has to be known of `close`.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::address::{LONGEST, RawAddress};

/// Sockets that are remembered; of more, the oldest are forgotten.
const CAPACITY: usize = 4096;
/// An address and its length in whole words.
const WORDS: usize = (LONGEST + 1).div_ceil(8);

struct Entry {
    /// The socket, 0 while the words are being written.
    cookie: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// A table without locks. The kernel counts cookies up, so each entry is used in turn.
pub(crate) struct Peers {
    entries: [Entry; CAPACITY],
}

impl Peers {
    pub(crate) const fn new() -> Self {
        Self {
            entries: [const {
                Entry { cookie: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; WORDS] }
            }; CAPACITY],
        }
    }

    fn entry(&self, cookie: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(cookie % CAPACITY as u64).ok()?)
    }

    /// Remembers whom a socket was meant for.
    pub(crate) fn remember(&self, cookie: u64, address: &RawAddress) {
        let Some(entry) = self.entry(cookie) else { return };
        let mut bytes = [0_u8; WORDS * 8];
        bytes[..LONGEST].copy_from_slice(&address.bytes);
        bytes[LONGEST] = u8::try_from(address.length).unwrap_or(0);
        entry.cookie.store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        for (word, part) in entry.words.iter().zip(bytes.chunks(8)) {
            let part = part.first_chunk().copied().unwrap_or_default();
            word.store(u64::from_ne_bytes(part), Ordering::Relaxed);
        }
        entry.cookie.store(cookie, Ordering::Release);
    }

    /// Whom the socket was meant for, if it is known.
    pub(crate) fn recall(&self, cookie: u64) -> Option<RawAddress> {
        let entry = self.entry(cookie).filter(|_| cookie != 0)?;
        if entry.cookie.load(Ordering::Acquire) != cookie {
            return None;
        }
        let mut bytes = [0_u8; WORDS * 8];
        for (word, part) in entry.words.iter().zip(bytes.chunks_mut(8)) {
            part.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        fence(Ordering::SeqCst);
        if entry.cookie.load(Ordering::Relaxed) != cookie {
            return None;
        }
        let length = usize::from(bytes[LONGEST]);
        Some(RawAddress { bytes: bytes.first_chunk().copied()?, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn the_last_few_thousand_are_remembered() {
        static PEERS: Peers = Peers::new();
        let address = |port: u16| RawAddress::from(SocketAddr::from(([192, 0, 2, 1], port)));
        for cookie in 1..=5000_u16 {
            PEERS.remember(u64::from(cookie), &address(cookie));
        }
        assert_eq!(PEERS.recall(5000), Some(address(5000)));
        assert_eq!(PEERS.recall(905), Some(address(905)));
        assert_eq!(PEERS.recall(904), None);
        assert_eq!(PEERS.recall(0), None);
        assert_eq!(PEERS.recall(6000), None);
    }
}
