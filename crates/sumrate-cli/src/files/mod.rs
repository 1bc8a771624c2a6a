//! Copies files and directories over a stream (`sumrate cp`).
//!
//! One end sends, the other receives; which is which depends on the direction only. The sender walks
//! its tree (`walk`) and offers each entry; the receiver says what it has of it, by a hash for each
//! chunk; the sender sends the rest (`send`); the receiver writes it beside its place and renames it
//! when the hash of all chunks is right (`receive`; `destination` says where, `asked` which names). Offers run ahead of the
//! data, so that many small files cost no round trip each. `message` has what they say and its limits,
//! `path` what a path may be, `root` confines every access to one directory, `link` connects both to a
//! stream, and `host` is the server's part.

mod asked;
mod destination;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod host;
mod link;
mod message;
mod path;
mod receive;
mod root;
mod send;
mod tally;
#[cfg(test)]
mod tests;
mod walk;

pub use asked::{Asked, AskedError};
pub use destination::{Destination, Naming};
pub use host::{FilesHost, Transfers};
pub use link::{Limits, TransferError, receive_over, send_over};
pub use message::{CHUNK, ChunkHash, EntryKind, Message, MessageError, Offer, read_message};
pub use path::{EntryPath, PathError};
pub use root::{Root, RootError};
pub use tally::{Failure, Progress, Tally};
pub use walk::Source;
