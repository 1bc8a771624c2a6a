//! The state that a session's tasks share, behind one lock.
//!
//! Whoever holds the lock calls the protocol; [`Shared::update`] then fires what is due, hands out
//! the protocol's events and, once the lock is free, wakes exactly those who have something to do.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fbdt_proto::{
    Class, CloseReason, Instant, OpenError, PathId, PathLabel, Session as Protocol, StreamId,
    SubflowId,
};
use tokio::sync::{Notify, watch};

use super::inner::{Inner, Wakes};
use super::paths::Addresses;
use crate::clock::Clock;
use crate::memory::{Lease, MemoryReservation};
use crate::socket::SessionSockets;
use crate::subflow::{Established, SubflowTask};

/// How long close frames and unsent bytes may take to leave.
pub(crate) const CLOSE_TIME: Duration = Duration::from_secs(1);

/// One session, as its tasks and handles see it.
pub(crate) struct Shared {
    clock: Clock,
    inner: Mutex<Inner>,
    /// The protocol's next deadline came nearer.
    deadline_moved: Notify,
    /// A stream was opened by the peer, or the session is over.
    accepts: Notify,
    /// More streams may be opened, or the session is over.
    opens: Notify,
    closed: watch::Sender<Option<CloseReason>>,
    /// Subflow tasks that run.
    tasks: watch::Sender<usize>,
    max_frame: u32,
    sockets: SessionSockets,
}

impl Shared {
    pub(crate) fn new(
        clock: Clock,
        protocol: Protocol,
        max_frame: u32,
        sockets: SessionSockets,
    ) -> Self {
        Self {
            clock,
            inner: Mutex::new(Inner::new(protocol, sockets.automatic)),
            deadline_moved: Notify::new(),
            accepts: Notify::new(),
            opens: Notify::new(),
            closed: watch::Sender::new(None),
            tasks: watch::Sender::new(0),
            max_frame,
            sockets,
        }
    }

    /// Counts this session's memory in `lease`.
    pub(crate) fn leased(self, lease: Lease) -> Self {
        self.lock().set_lease(lease);
        self
    }

    /// Memory for what the application does for the session, if there is some.
    pub(super) fn reserve(&self, bytes: u64) -> Option<MemoryReservation> {
        self.lock().reserve(bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic of another task leaves the protocol's state as consistent as its last call did.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Looks without changing anything.
    pub(crate) fn inspect<R>(&self, look: impl FnOnce(&Inner) -> R) -> R {
        look(&self.lock())
    }

    /// Changes the session, then does what follows from the change.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut Inner, Instant) -> R) -> R {
        self.update_except(None, change)
    }

    /// Changes the session by the task of a subflow, which is not woken.
    pub(crate) fn update_except<R>(
        &self,
        caller: Option<SubflowId>,
        change: impl FnOnce(&mut Inner, Instant) -> R,
    ) -> R {
        let mut inner = self.lock();
        let now = self.clock.now();
        let result = change(&mut inner, now);
        let wakes = inner.settle(now, caller);
        drop(inner);
        self.wake(wakes);
        result
    }

    fn wake(&self, wakes: Wakes) {
        if wakes.deadline {
            self.deadline_moved.notify_one();
        }
        if wakes.accepts {
            self.accepts.notify_waiters();
        }
        if wakes.opens {
            self.opens.notify_waiters();
        }
        for subflow in wakes.subflows {
            subflow.notify.notify_one();
        }
        for waker in wakes.streams {
            waker.wake();
        }
        if let Some(reason) = wakes.closed {
            self.accepts.notify_waiters();
            self.opens.notify_waiters();
            self.deadline_moved.notify_one();
            self.closed.send_replace(Some(reason));
        }
    }

    /// Adds a connection that passed its handshake, and runs it.
    pub(crate) fn add_subflow(
        self: &Arc<Self>,
        path: PathId,
        label: &PathLabel,
        established: Established,
    ) -> Option<SubflowId> {
        let addresses = Addresses {
            local: established.connection.local_addr(),
            remote: established.connection.peer_addr(),
        };
        let socket = established.connection.socket().clone();
        self.sockets.add(socket.as_fd());
        let (id, io) =
            self.update(|inner, now| inner.add_subflow(now, path, label, addresses, socket))?;
        self.tasks.send_modify(|count| *count += 1);
        let task = SubflowTask::new(self.clone(), id, io, established, self.max_frame);
        tokio::spawn(async move {
            let shared = task.run().await;
            shared.tasks.send_modify(|count| *count -= 1);
        });
        Some(id)
    }

    /// Closes the session; nothing happens if it is closed already.
    pub(crate) fn close(&self, code: u32, reason: &str) {
        self.update(|inner, now| {
            if inner.closed().is_none() {
                inner.protocol.close(now, code, reason);
            }
        });
    }

    /// Waits until the session is over.
    pub(crate) async fn closed(&self) -> CloseReason {
        let mut watch = self.closed.subscribe();
        loop {
            if let Some(reason) = watch.borrow_and_update().clone() {
                return reason;
            }
            if watch.changed().await.is_err() {
                return CloseReason::Local { code: 0, reason: String::new() };
            }
        }
    }

    /// Waits until every subflow's task has ended.
    pub(crate) async fn drained(&self) {
        let mut watch = self.tasks.subscribe();
        // The sender lives as long as `self`: no error.
        let _ = watch.wait_for(|count| *count == 0).await;
    }

    /// Opens a stream as soon as the peer allows one.
    pub(crate) async fn open(&self, class: Class) -> Result<StreamId, OpenError> {
        loop {
            let mut changed = std::pin::pin!(self.opens.notified());
            changed.as_mut().enable();
            match self.update(|inner, now| inner.protocol.open_stream(now, class)) {
                Err(OpenError::Limit(_)) => changed.await,
                result => return result,
            }
        }
    }

    /// The next stream that the peer opened; `None` when the session is over.
    pub(crate) async fn accept(&self) -> Option<StreamId> {
        loop {
            let mut changed = std::pin::pin!(self.accepts.notified());
            changed.as_mut().enable();
            {
                let mut inner = self.lock();
                if let Some(id) = inner.next_opened() {
                    return Some(id);
                }
                if inner.closed().is_some() {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// The machine was suspended: timers stood still, and paths may be gone.
    pub(crate) fn resume(&self) {
        self.update(|inner, now| inner.probe_paths(now));
        self.deadline_moved.notify_one();
    }

    /// Runs the protocol's timers until the session is over.
    pub(crate) async fn drive(self: Arc<Self>) {
        loop {
            let (deadline, closed) =
                self.update(|inner, _| (inner.arm(), inner.closed().is_some()));
            if closed {
                return;
            }
            let moved = self.deadline_moved.notified();
            match deadline {
                Some(at) => tokio::select! {
                    () = moved => {}
                    () = tokio::time::sleep_until(self.clock.to_tokio(at)) => {}
                },
                None => moved.await,
            }
        }
    }
}
