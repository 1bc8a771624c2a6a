//! What happens to a session's paths, as it happens.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::paths::PathInfo;

/// So many events wait for a slow listener; then the oldest are dropped.
pub(super) const WAITING: usize = 64;

/// Something happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// A path's connection, health or last error changed; it is like this now.
    Path(PathInfo),
    /// The listener was slow: so many events are missing. [`Session::paths`](crate::Session::paths) says how
    /// things are.
    Lagged(u64),
}

/// The events of a session from the time at which this was made.
#[derive(Debug)]
pub struct SessionEvents(pub(super) Option<broadcast::Receiver<SessionEvent>>);

impl SessionEvents {
    /// The next event; `None` once the session is over. Dropping the future loses none.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        match self.0.as_mut()?.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missing)) => Some(SessionEvent::Lagged(missing)),
            Err(RecvError::Closed) => None,
        }
    }
}
