//! The sessions of a client: the one that new streams go by, and those before it that still carry
//! streams of their own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fbdt::Session;
use tokio::sync::watch;

/// How often a stopping client looks whether everything has arrived.
const LOOK: Duration = Duration::from_millis(10);

/// What the list has to know of a session.
pub trait Member: Clone {
    /// Whether it still carries streams: there are some, and it is not over.
    fn is_busy(&self) -> bool;
}

impl Member for Session {
    fn is_busy(&self) -> bool {
        !self.is_closed() && !self.stats().streams.is_empty()
    }
}

/// The sessions of a client.
#[derive(Debug)]
pub struct Sessions<S = Session> {
    newest: watch::Sender<Option<S>>,
    /// Those that were replaced, and not accounted for since their last stream ended.
    earlier: Mutex<Vec<S>>,
}

impl<S: Member> Sessions<S> {
    /// Begins with one, or, where none can be had yet, with none.
    pub fn new(first: Option<S>) -> Self {
        Self { newest: watch::Sender::new(first), earlier: Mutex::default() }
    }

    fn earlier(&self) -> MutexGuard<'_, Vec<S>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that new streams go by, now and later.
    pub fn subscribe(&self) -> watch::Receiver<Option<S>> {
        self.newest.subscribe()
    }

    /// New streams go by this one; the one before carries its own to their end.
    pub fn replace(&self, next: Option<S>) {
        let mut earlier = self.earlier();
        earlier.extend(self.newest.send_replace(next));
    }

    /// The newest, and behind it those before it that still carry streams, later ones first.
    pub fn live(&self) -> Vec<S> {
        let earlier = self.earlier();
        let newest = self.newest.borrow().clone();
        let busy = earlier.iter().rev().filter(|session| session.is_busy()).cloned();
        newest.into_iter().chain(busy).collect()
    }

    /// Accounts for all, and forgets those whose last stream had ended before.
    pub fn settle(&self, account: impl FnOnce(&[S])) {
        let all: Vec<S> = {
            let mut earlier = self.earlier();
            let (busy, ended): (Vec<S>, Vec<S>) = earlier.drain(..).partition(S::is_busy);
            let newest = self.newest.borrow().clone();
            earlier.clone_from(&busy);
            newest.into_iter().chain(busy).chain(ended).collect()
        };
        account(&all);
    }

    /// Waits until the peers have everything that was written on streams of all sessions.
    pub async fn delivered(&self) {
        while self.live().iter().any(Member::is_busy) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// There are none any more: all that there were.
    pub fn take(&self) -> Vec<S> {
        self.replace(None);
        std::mem::take(&mut *self.earlier())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Debug, Clone)]
    struct Fake(&'static str, Arc<AtomicBool>);

    impl Fake {
        fn busy(name: &'static str) -> Self {
            Self(name, Arc::new(AtomicBool::new(true)))
        }

        fn end(&self) {
            self.1.store(false, Ordering::Relaxed);
        }
    }

    impl Member for Fake {
        fn is_busy(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }
    }

    fn names(sessions: &[Fake]) -> Vec<&'static str> {
        sessions.iter().map(|session| session.0).collect()
    }

    fn settled(sessions: &Sessions<Fake>) -> Vec<&'static str> {
        let mut seen = Vec::new();
        sessions.settle(|all| seen = names(all));
        seen
    }

    #[tokio::test]
    async fn a_session_lives_until_its_last_stream_has_ended_and_is_accounted_for_once_more() {
        let (one, two, three) = (Fake::busy("one"), Fake::busy("two"), Fake::busy("three"));
        let sessions = Sessions::new(Some(one.clone()));
        sessions.replace(Some(two.clone()));
        sessions.replace(Some(three.clone()));
        assert_eq!(names(&sessions.live()), ["three", "two", "one"]);
        assert_eq!(settled(&sessions), ["three", "one", "two"]);
        one.end();
        assert_eq!(names(&sessions.live()), ["three", "two"]);
        assert_eq!(settled(&sessions), ["three", "two", "one"], "what it carried last counts");
        assert_eq!(settled(&sessions), ["three", "two"]);
        // The newest is there with or without streams; the stop waits for all of them.
        three.end();
        assert_eq!(names(&sessions.live()), ["three", "two"]);
        let delivered = tokio::time::timeout(LOOK * 3, sessions.delivered());
        assert!(delivered.await.is_err(), "an earlier session has streams");
        two.end();
        sessions.delivered().await;
        assert_eq!(names(&sessions.take()), ["two", "three"]);
        assert!(sessions.live().is_empty() && sessions.subscribe().borrow().is_none());
    }

    #[test]
    fn a_session_that_was_lost_is_accounted_for_once_more() {
        let lost = Fake::busy("lost");
        let sessions = Sessions::new(Some(lost.clone()));
        lost.end();
        sessions.replace(None);
        assert!(sessions.live().is_empty());
        assert_eq!(settled(&sessions), ["lost"]);
        assert!(settled(&sessions).is_empty());
    }
}
