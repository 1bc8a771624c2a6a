//! Connections of a session whose programs do not read: where memory is short, the one that has waited
//! longest gives way to a new connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use fbdt::ClassHandle;
use tokio::sync::Notify;

/// A program that has not read for so long in all may be asked to make room: a player pauses longer
/// between its pieces only if it has plenty.
const STALLED: Duration = Duration::from_secs(1);

/// The relayed connections of one session.
#[derive(Debug, Default)]
pub(crate) struct Readers(Mutex<Vec<Weak<Reader>>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    stream: ClassHandle,
    gives_way: Notify,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Reader>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a connection whose bytes leave on this stream.
    pub(crate) fn enter(&self, stream: ClassHandle) -> Arc<Reader> {
        let reader = Arc::new(Reader { stream, gives_way: Notify::new() });
        let mut all = self.lock();
        all.retain(|reader| reader.strong_count() > 0);
        all.push(Arc::downgrade(&reader));
        reader
    }

    /// Has the connection give way whose program has kept bytes waiting longest; for how long.
    pub(crate) fn make_room(&self) -> Option<Duration> {
        let mut all = self.lock();
        let waits = all.iter().enumerate().filter_map(|(index, reader)| {
            let reader = reader.upgrade()?;
            Some((reader.stream.reader_wait(), index, reader))
        });
        let (wait, index, reader) = waits.max_by_key(|(wait, ..)| *wait)?;
        if wait < STALLED {
            return None;
        }
        all.swap_remove(index);
        reader.gives_way.notify_one();
        Some(wait)
    }
}

impl Reader {
    /// Waits until it is to make room for another connection.
    pub(crate) async fn gave_way(&self) {
        self.gives_way.notified().await;
    }
}
