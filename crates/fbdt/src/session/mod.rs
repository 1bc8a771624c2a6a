//! Sessions and streams for applications, and the state behind them.

mod events;
mod inner;
mod messages;
mod paths;
mod shared;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fbdt_proto::{
    Class, CloseReason, OpenError, PathPolicy, PathStats, Role, SessionStats, StreamId,
};
use tokio::time::timeout;

use crate::identity::CredentialInfo;
use crate::memory::MemoryReservation;

pub use events::{SessionEvent, SessionEvents};
pub use messages::Messages;
pub use paths::{PathError, PathInfo};
pub use stream::{ClassHandle, RecvStream, SendStream, Stream};

pub(crate) use inner::{Inner, SubflowIo};
pub(crate) use shared::{CLOSE_TIME, Shared};

/// An authenticated association of a client and a server over one or more paths.
///
/// Clones are handles to the same session. It closes when it is told to, when the peer closes it, or
/// when all paths have been down for the linger time. When the last handle and the last [`Stream`]
/// are gone, it closes once finished streams are delivered, or after the linger time; streams that the
/// peer opens meanwhile are refused. That takes a runtime that goes on: before the end of a program call
/// [`Session::shutdown`].
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
    anchor: Arc<Anchor>,
    role: Role,
    id: [u8; 16],
    credential: Option<Arc<CredentialInfo>>,
}

/// Shuts the session down when nobody can use it any more.
pub(crate) struct Anchor(Arc<Shared>);

impl Drop for Anchor {
    fn drop(&mut self) {
        self.0.update(|inner, now| inner.forsake(now));
    }
}

/// A session ended before the peer had everything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes were not delivered before the session ended: {reason}")]
#[non_exhaustive]
pub struct Undelivered {
    /// What the peer has not acknowledged; the end of a stream counts as one byte.
    pub bytes: u64,
    /// Why the session ended.
    pub reason: CloseReason,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("role", &self.role)
            .field("credential", &self.credential.as_ref().map(|c| c.id))
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(
        shared: Arc<Shared>,
        role: Role,
        id: [u8; 16],
        credential: Option<CredentialInfo>,
    ) -> Self {
        Self {
            anchor: Arc::new(Anchor(shared.clone())),
            shared,
            role,
            id,
            credential: credential.map(Arc::new),
        }
    }

    /// Opens a stream of a class; waits while as many are open as the peer allows. The peer is told at
    /// once: its [`Session::accept_stream`] returns before the first byte. Dropping the future opens
    /// nothing.
    ///
    /// # Errors
    /// [`OpenError::Closed`]: the session is over, or shuts down.
    pub async fn open_stream(&self, class: Class) -> Result<Stream, OpenError> {
        let id = self.shared.open(class).await?;
        Ok(Stream::new(self.shared.clone(), self.anchor.clone(), id))
    }

    /// Opens a stream as [`Session::open_stream`] does, without waiting.
    ///
    /// # Errors
    /// [`OpenError`], also if as many streams are open as the peer allows.
    pub fn try_open_stream(&self, class: Class) -> Result<Stream, OpenError> {
        let id = self.shared.update(|inner, now| inner.protocol.open_stream(now, class))?;
        Ok(Stream::new(self.shared.clone(), self.anchor.clone(), id))
    }

    /// The next stream that the peer opened; `None` when the session is over. Dropping the future
    /// loses none.
    pub async fn accept_stream(&self) -> Option<Stream> {
        let id = self.shared.accept().await?;
        Some(Stream::new(self.shared.clone(), self.anchor.clone(), id))
    }

    /// Whether both ends speak the version of the wire format that has messages (F16); without
    /// it there are streams only.
    pub fn has_messages(&self) -> bool {
        self.shared.inspect(|inner| inner.protocol.has_messages())
    }

    /// Counters and measurements of the session and its paths.
    pub fn stats(&self) -> SessionStats {
        self.shared.inspect(|inner| inner.protocol.stats())
    }

    /// The counters of the paths alone, and the classes of the newest open streams, at most `most`:
    /// cheap, however many streams there are.
    pub fn path_stats(&self, most: usize) -> (Vec<PathStats>, Vec<(StreamId, Class)>) {
        self.shared
            .inspect(|inner| (inner.protocol.path_stats(), inner.protocol.newest_classes(most)))
    }

    /// On a client: has a path be used as `policy` says, from now on. The path is dialled anew, so
    /// that the server knows it too. Says whether the session has such a path. Later sessions ask
    /// [`ClientConfig::policies`](crate::ClientConfig::policies).
    pub fn set_path_policy(&self, name: &str, policy: PathPolicy) -> bool {
        self.shared.update(|inner, now| inner.set_policy(now, name, policy))
    }

    /// On a client: takes a path out of use altogether, or lets it back.
    pub fn withhold_path(&self, name: &str, withheld: bool) {
        self.shared.update(|inner, now| inner.withhold(now, name, withheld));
    }

    /// On a server: counts `bytes` of memory for what the application does for this session, with
    /// what the session holds itself. `None` where no memory is left for it
    /// ([`AcceptLimits::max_memory`](crate::AcceptLimits::max_memory)).
    pub fn reserve_memory(&self, bytes: u64) -> Option<MemoryReservation> {
        self.shared.reserve(bytes)
    }

    /// Every path that the session has or had.
    pub fn paths(&self) -> Vec<PathInfo> {
        self.shared.inspect(|inner| inner.paths.list())
    }

    /// Opens no more streams, waits until the peer has everything that was written, and closes the
    /// session; at most so long as `within` says. Streams that were not finished end with an error
    /// then. Dropping the future does not take it back.
    ///
    /// # Errors
    /// [`Undelivered`]: the session ended before.
    pub async fn shutdown(&self, within: Duration) -> Result<(), Undelivered> {
        self.shared.update(|inner, now| inner.protocol.shutdown(now, within));
        let reason = self.shared.closed().await;
        let bytes = self.shared.inspect(|inner| inner.protocol.undelivered());
        // Each subflow bounds its own close; the margin covers their start.
        let _ = timeout(CLOSE_TIME * 3 / 2, self.shared.drained()).await;
        if bytes == 0 { Ok(()) } else { Err(Undelivered { bytes, reason }) }
    }

    /// What happens to the paths from now on, as it happens.
    pub fn events(&self) -> SessionEvents {
        self.shared.inspect(|inner| inner.paths.events())
    }

    /// Closes the session at once: streams end with an error on both sides, and what was not delivered
    /// yet is dropped ([`Session::shutdown`] waits for it). Returns when the peer has been told, or after
    /// about a second. Codes from 0x100 on are the application's.
    pub async fn close(&self, code: u32, reason: &str) {
        self.shared.close(code, reason);
        // Each subflow bounds its own close; the margin covers their start.
        let _ = timeout(CLOSE_TIME * 3 / 2, self.shared.drained()).await;
    }

    /// Waits until the session is over.
    pub async fn closed(&self) -> CloseReason {
        self.shared.closed().await
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        self.shared.inspect(|inner| inner.closed().is_some())
    }

    /// Which end this is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The session's id, the same on both ends; not a secret.
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// On a server: the credential that opened the session, and its limits. This crate does not
    /// enforce them; whoever serves the streams does.
    pub fn credential(&self) -> Option<&CredentialInfo> {
        self.credential.as_deref()
    }
}
