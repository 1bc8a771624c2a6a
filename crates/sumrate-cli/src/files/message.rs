//! What the two ends of a copy say, as values and as bytes, and the limits of all of it.
//!
//! `u8` kind, `u32` length of the body, body; numbers are big-endian. Kinds below 16 are the sender's.

use std::io;

use bytes::Bytes;
use fbdt_proto::plain_text::plain;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::path::{EntryPath, PathError};

/// Bytes of a chunk: what has a hash of its own and is sent again whole.
pub const CHUNK: u64 = 1 << 20;
/// Most hashes in one message.
pub(super) const HASHES_MAX: usize = 1024;
/// Entries that may be offered and not settled.
pub(super) const WINDOW: usize = 256;
/// Largest file, in bytes.
pub(super) const SIZE_MAX: u64 = 1 << 60;
/// Longest explanation, in bytes.
const REASON_MAX: usize = 500;
/// Longest body.
const BODY_MAX: usize = CHUNK as usize + 64;
/// Permission bits that are kept; never set-user-id, set-group-id or sticky.
pub(super) const MODE_MASK: u32 = 0o777;

/// BLAKE3 of a chunk, or over the hashes of all chunks of a file.
pub type ChunkHash = [u8; 32];

/// What an entry is. Nothing else is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// An entry that the sender has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its number, counted from 0.
    pub id: u32,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits.
    pub mode: u32,
    /// Bytes of a file; 0 for a directory.
    pub size: u64,
    /// Last change: seconds since 1970-01-01 UTC, nanoseconds.
    pub modified: (i64, u32),
    /// Where it belongs.
    pub path: EntryPath,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// What the sender is going to offer.
    Total {
        /// Files.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// An entry.
    Offer(Offer),
    /// A chunk of the file that was wanted.
    Data {
        /// The file.
        id: u32,
        /// Which chunk, from 0; rising.
        index: u64,
        /// BLAKE3 of the bytes.
        hash: ChunkHash,
        /// The chunk, 1 byte to [`CHUNK`].
        bytes: Bytes,
    },
    /// Every chunk that the receiver lacks was sent.
    Finish {
        /// The file.
        id: u32,
        /// BLAKE3 over the hashes of all its chunks, in order.
        root: ChunkHash,
    },
    /// The sender cannot send the rest of a file.
    GaveUp {
        /// The file.
        id: u32,
        /// Why, for people.
        reason: String,
    },
    /// Something that is not copied: no file and no directory, or unreadable.
    Skipped {
        /// Where it is.
        path: EntryPath,
        /// Why, for people.
        reason: String,
    },
    /// Nothing more is offered.
    End,
    /// Chunks that the receiver has of a file, from `first` on.
    Have {
        /// The file.
        id: u32,
        /// The first chunk.
        first: u64,
        /// A hash for each, at least one.
        hashes: Vec<ChunkHash>,
    },
    /// The receiver wants what it did not say it has.
    Want {
        /// The file.
        id: u32,
    },
    /// The receiver has it already: same size and time of change.
    Same {
        /// The entry.
        id: u32,
    },
    /// It is in its place.
    Stored {
        /// The entry.
        id: u32,
    },
    /// It cannot be stored.
    Failed {
        /// The entry.
        id: u32,
        /// Why, for people.
        reason: String,
    },
    /// Everything is in its place: the answer to [`Message::End`].
    Done,
}

/// Why a message was refused.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The stream failed or ended within a message.
    #[error("the stream to the other end failed: {0}")]
    Io(#[from] io::Error),
    /// No kind that this version knows.
    #[error("a message has kind {0}, which this version does not know; upgrade this end")]
    UnknownKind(u8),
    /// Longer than the protocol allows.
    #[error("a message of {0} bytes is longer than the protocol allows")]
    TooLong(usize),
    /// The body ends early, has bytes left over or a value out of its range.
    #[error("a message of kind {kind} has a bad body: {what}")]
    Malformed {
        /// Its kind.
        kind: u8,
        /// What is wrong.
        what: &'static str,
    },
    /// A path that leads out.
    #[error("a path of the other end is refused: {0}")]
    Path(#[from] PathError),
}

/// Reads a message; `None` at an end between two.
///
/// # Errors
/// [`MessageError`]
pub async fn read_message<R: AsyncRead + Unpin>(
    reader: &mut R,
) -> Result<Option<Message>, MessageError> {
    let mut kind = [0];
    if reader.read(&mut kind).await? == 0 {
        return Ok(None);
    }
    let length = reader.read_u32().await? as usize;
    if length > BODY_MAX {
        return Err(MessageError::TooLong(length));
    }
    // Grows with what arrives, so that an announced length alone costs no memory.
    let mut body = Vec::new();
    reader.take(length as u64).read_to_end(&mut body).await?;
    if body.len() < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Message::decode(kind[0], Bytes::from(body)).map(Some)
}

/// Takes values off the front of a body.
struct Reader {
    kind: u8,
    rest: Bytes,
}

impl Reader {
    fn wrong(&self, what: &'static str) -> MessageError {
        MessageError::Malformed { kind: self.kind, what }
    }

    fn take(&mut self, count: usize) -> Result<Bytes, MessageError> {
        if self.rest.len() < count {
            return Err(self.wrong("it ends early"));
        }
        Ok(self.rest.split_to(count))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let mut array = [0; N];
        array.copy_from_slice(&self.take(N)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, MessageError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, MessageError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn index(&mut self) -> Result<u64, MessageError> {
        match self.u64()? {
            index if index <= SIZE_MAX / CHUNK => Ok(index),
            _ => Err(self.wrong("a chunk beyond the largest file")),
        }
    }

    fn reason(&mut self) -> Result<String, MessageError> {
        let bytes = std::mem::take(&mut self.rest);
        if bytes.len() > REASON_MAX {
            return Err(self.wrong("an explanation is too long"));
        }
        let text = String::from_utf8_lossy(&bytes);
        Ok(String::from_utf8_lossy(cut(&plain(&text))).into_owned())
    }

    fn offer(&mut self) -> Result<Offer, MessageError> {
        let id = self.u32()?;
        let [kind] = self.array()?;
        let kind = match kind {
            0 => EntryKind::File,
            1 => EntryKind::Directory,
            _ => return Err(self.wrong("an entry that is neither file nor directory")),
        };
        let (mode, size) = (self.u32()?, self.u64()?);
        let modified = (i64::from_be_bytes(self.array()?), self.u32()?);
        if mode & !MODE_MASK != 0 {
            return Err(self.wrong("more than permission bits"));
        }
        if size > SIZE_MAX || (kind == EntryKind::Directory && size != 0) {
            return Err(self.wrong("a size that no such entry has"));
        }
        if modified.1 >= 1_000_000_000 {
            return Err(self.wrong("a second of more than 10^9 ns"));
        }
        let path = EntryPath::new(&std::mem::take(&mut self.rest))?;
        Ok(Offer { id, kind, mode, size, modified, path })
    }

    fn hashes(&mut self) -> Result<Vec<ChunkHash>, MessageError> {
        let bytes = std::mem::take(&mut self.rest);
        let (hashes, over) = bytes.as_chunks::<32>();
        if hashes.is_empty() || hashes.len() > HASHES_MAX || !over.is_empty() {
            return Err(self.wrong("no whole number of hashes from 1 to 1024"));
        }
        Ok(hashes.to_vec())
    }

    fn data(&mut self) -> Result<Message, MessageError> {
        let (id, index, hash) = (self.u32()?, self.index()?, self.array()?);
        let bytes = std::mem::take(&mut self.rest);
        if bytes.is_empty() || bytes.len() as u64 > CHUNK {
            return Err(self.wrong("no chunk of 1 byte to 1 MiB"));
        }
        Ok(Message::Data { id, index, hash, bytes })
    }

    fn path(&mut self) -> Result<EntryPath, MessageError> {
        let length = u16::from_be_bytes(self.array()?);
        Ok(EntryPath::new(&self.take(usize::from(length))?)?)
    }
}

impl Message {
    /// Reads a body of a kind.
    ///
    /// # Errors
    /// [`MessageError`]
    pub fn decode(kind: u8, body: Bytes) -> Result<Self, MessageError> {
        let mut body = Reader { kind, rest: body };
        let message = match kind {
            1 => Self::Total { files: body.u64()?, bytes: body.u64()? },
            2 => Self::Offer(body.offer()?),
            3 => body.data()?,
            4 => Self::Finish { id: body.u32()?, root: body.array()? },
            5 => Self::GaveUp { id: body.u32()?, reason: body.reason()? },
            6 => Self::Skipped { path: body.path()?, reason: body.reason()? },
            7 => Self::End,
            17 => Self::Have { id: body.u32()?, first: body.index()?, hashes: body.hashes()? },
            18 => Self::Want { id: body.u32()? },
            19 => Self::Same { id: body.u32()? },
            20 => Self::Stored { id: body.u32()? },
            21 => Self::Failed { id: body.u32()?, reason: body.reason()? },
            22 => Self::Done,
            other => return Err(MessageError::UnknownKind(other)),
        };
        if body.rest.is_empty() { Ok(message) } else { Err(body.wrong("bytes are left over")) }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Total { .. } => 1,
            Self::Offer(_) => 2,
            Self::Data { .. } => 3,
            Self::Finish { .. } => 4,
            Self::GaveUp { .. } => 5,
            Self::Skipped { .. } => 6,
            Self::End => 7,
            Self::Have { .. } => 17,
            Self::Want { .. } => 18,
            Self::Same { .. } => 19,
            Self::Stored { .. } => 20,
            Self::Failed { .. } => 21,
            Self::Done => 22,
        }
    }

    /// Whether the sender of files says it.
    pub(super) fn is_senders(&self) -> bool {
        self.kind() < 16
    }

    /// The whole message as bytes; an explanation that is too long is cut.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.kind(), 0, 0, 0, 0];
        match self {
            Self::Total { files, bytes } => {
                out.extend(files.to_be_bytes());
                out.extend(bytes.to_be_bytes());
            }
            Self::Offer(offer) => encode_offer(&mut out, offer),
            Self::Data { id, index, hash, bytes } => {
                out.reserve(bytes.len() + 44);
                out.extend(id.to_be_bytes());
                out.extend(index.to_be_bytes());
                out.extend(hash);
                out.extend_from_slice(bytes);
            }
            Self::Finish { id, root } => {
                out.extend(id.to_be_bytes());
                out.extend(root);
            }
            Self::GaveUp { id, reason } | Self::Failed { id, reason } => {
                out.extend(id.to_be_bytes());
                out.extend(cut(reason));
            }
            Self::Skipped { path, reason } => {
                let bytes = path.as_bytes();
                out.extend(u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes());
                out.extend(bytes);
                out.extend(cut(reason));
            }
            Self::Have { id, first, hashes } => {
                out.extend(id.to_be_bytes());
                out.extend(first.to_be_bytes());
                out.extend(hashes.as_flattened());
            }
            Self::Want { id } | Self::Same { id } | Self::Stored { id } => {
                out.extend(id.to_be_bytes());
            }
            Self::End | Self::Done => {}
        }
        let length = u32::try_from(out.len() - 5).unwrap_or(u32::MAX);
        out[1..5].copy_from_slice(&length.to_be_bytes());
        out
    }
}

fn encode_offer(out: &mut Vec<u8>, offer: &Offer) {
    out.extend(offer.id.to_be_bytes());
    out.push(match offer.kind {
        EntryKind::File => 0,
        EntryKind::Directory => 1,
    });
    out.extend(offer.mode.to_be_bytes());
    out.extend(offer.size.to_be_bytes());
    out.extend(offer.modified.0.to_be_bytes());
    out.extend(offer.modified.1.to_be_bytes());
    out.extend(offer.path.as_bytes());
}

fn cut(reason: &str) -> &[u8] {
    let mut end = reason.len().min(REASON_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason.as_bytes()[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<Option<Message>, MessageError> {
        let mut bytes = bytes;
        block_on(read_message(&mut bytes))
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn path() -> EntryPath {
        EntryPath::new(b"a/b").unwrap()
    }

    fn every_message() -> Vec<Message> {
        let offer =
            |kind, size| Offer { id: 1, kind, mode: 0o640, size, modified: (-5, 7), path: path() };
        vec![
            Message::Total { files: 1, bytes: 2 },
            Message::Offer(offer(EntryKind::File, 9)),
            Message::Offer(offer(EntryKind::Directory, 0)),
            Message::Data { id: 1, index: 3, hash: [4; 32], bytes: Bytes::from_static(b"x") },
            Message::Finish { id: 1, root: [5; 32] },
            Message::GaveUp { id: 1, reason: "gone".to_owned() },
            Message::Skipped { path: path(), reason: "a socket".to_owned() },
            Message::End,
            Message::Have { id: 1, first: 2, hashes: vec![[1; 32], [2; 32]] },
            Message::Want { id: 1 },
            Message::Same { id: 1 },
            Message::Stored { id: 1 },
            Message::Failed { id: 1, reason: String::new() },
            Message::Done,
        ]
    }

    #[test]
    fn every_message_round_trips_and_no_prefix_is_one() {
        for message in every_message() {
            let bytes = message.encode();
            assert_eq!(read(&bytes).unwrap().as_ref(), Some(&message));
            for end in 1..bytes.len() {
                assert!(
                    matches!(read(&bytes[..end]), Err(MessageError::Io(_))),
                    "{message:?} {end}"
                );
            }
        }
        assert!(read(b"").unwrap().is_none());
    }

    #[test]
    fn limits_hold() {
        assert!(matches!(read(&[3, 0xff, 0xff, 0xff, 0xff]), Err(MessageError::TooLong(_))));
        assert!(matches!(read(&[99, 0, 0, 0, 0]), Err(MessageError::UnknownKind(99))));
        let bad = |message: &Message, change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = message.encode();
            change(&mut bytes);
            let length = u32::try_from(bytes.len() - 5).unwrap();
            bytes[1..5].copy_from_slice(&length.to_be_bytes());
            read(&bytes).unwrap_err()
        };
        let offer = &every_message()[1];
        for change in [
            &(|b: &mut Vec<u8>| b[9] = 2) as &dyn Fn(&mut Vec<u8>), // kind
            &|b| b[10] = 1,                                         // mode beyond 0o777
            &|b| b[12] |= 0x08,                                     // set-user-id
            &|b| b[14] = 0xff,                                      // size
            &|b| b[30] = 0xff,                                      // nanoseconds
        ] {
            assert!(matches!(bad(offer, change), MessageError::Malformed { kind: 2, .. }));
        }
        assert!(matches!(bad(offer, &|b| b.truncate(34)), MessageError::Path(PathError::Empty)));
        assert!(matches!(bad(offer, &|b| b.extend(b"/..")), MessageError::Path(PathError::Leads)));
        let data = &every_message()[3];
        assert!(matches!(bad(data, &|b| b.truncate(49)), MessageError::Malformed { .. }));
        let have = &every_message()[8];
        assert!(matches!(bad(have, &|b| b.push(0)), MessageError::Malformed { .. }));
        assert!(matches!(bad(&Message::Done, &|b| b.push(0)), MessageError::Malformed { .. }));
    }

    #[test]
    fn what_the_other_end_explains_is_plain_text() {
        use fbdt_proto::plain_text::is_hidden;
        let long = Message::Failed { id: 0, reason: "é\u{1b}\u{202e}".repeat(1000) };
        let Ok(Some(Message::Failed { reason, .. })) = read(&long.encode()) else { panic!() };
        assert!(reason.len() <= REASON_MAX && !reason.contains(is_hidden));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn what_is_read_is_what_was_written(kind in 0_u8..24, body in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Ok(message) = Message::decode(kind, Bytes::from(body)) {
                prop_assert_eq!(read(&message.encode()).unwrap(), Some(message));
            }
        }
    }
}
