//! What the session's lock guards: the protocol, and who waits for what.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

use fbdt_proto::{
    CloseReason, Event, Health, Instant, PathId, PathLabel, PathPolicy, Session as Protocol,
    StreamId, SubflowId,
};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};

use super::paths::{Addresses, PathError, PathInfo, PathTable};
use crate::memory::{Lease, MemoryReservation};
use crate::socket::{TcpInfo, pace, reset_on_close, set_congestion_control};

/// TCP_INFO is asked for at most once in this time.
const SAMPLE_INTERVAL: Duration = Duration::from_micros(200);

/// Memory of a subflow: its read buffer, and the state of TLS.
const SUBFLOW_MEMORY: u64 = 320 << 10;

/// What a subflow's task and the lock's holders share.
pub(crate) struct SubflowIo {
    pub(crate) socket: Arc<TcpStream>,
    /// Bytes taken from the protocol that the kernel does not have yet.
    pub(crate) held: AtomicUsize,
    /// There may be something to send, or the subflow is over.
    pub(crate) notify: Notify,
}

struct SubflowEntry {
    path: PathId,
    io: Arc<SubflowIo>,
    sampled: Option<Instant>,
    /// Outstanding bytes at the last sample.
    outstanding: u64,
}

#[derive(Default)]
struct StreamWakers {
    read: Option<Waker>,
    write: Option<Waker>,
    read_message: Option<Waker>,
    write_message: Option<Waker>,
}

/// Whom to wake once the lock is free.
#[derive(Default)]
pub(crate) struct Wakes {
    pub(crate) deadline: bool,
    pub(crate) accepts: bool,
    /// More streams may be opened.
    pub(crate) opens: bool,
    pub(crate) subflows: Vec<Arc<SubflowIo>>,
    pub(crate) streams: Vec<Waker>,
    pub(crate) closed: Option<CloseReason>,
}

/// Which of those who use a stream waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
    ReadMessage,
    WriteMessage,
}

impl StreamWakers {
    fn slot(&mut self, side: Side) -> &mut Option<Waker> {
        match side {
            Side::Read => &mut self.read,
            Side::Write => &mut self.write,
            Side::ReadMessage => &mut self.read_message,
            Side::WriteMessage => &mut self.write_message,
        }
    }
}

/// The guarded state.
pub(crate) struct Inner {
    pub(crate) protocol: Protocol,
    pub(crate) paths: PathTable,
    subflows: BTreeMap<SubflowId, SubflowEntry>,
    streams: HashMap<StreamId, StreamWakers>,
    opened: VecDeque<StreamId>,
    /// No handle is left: nobody takes what the peer opens.
    is_forsaken: bool,
    /// Those who wait on streams that are gone.
    orphans: Vec<Waker>,
    armed: Option<Instant>,
    closed: Option<CloseReason>,
    automatic_congestion_control: bool,
    /// Counts its memory; only servers have one.
    lease: Option<Lease>,
}

impl Inner {
    pub(super) fn new(protocol: Protocol, automatic_congestion_control: bool) -> Self {
        Self {
            protocol,
            paths: PathTable::default(),
            subflows: BTreeMap::new(),
            streams: HashMap::new(),
            opened: VecDeque::new(),
            is_forsaken: false,
            orphans: Vec::new(),
            armed: None,
            closed: None,
            automatic_congestion_control,
            lease: None,
        }
    }

    pub(super) fn set_lease(&mut self, lease: Lease) {
        self.lease = Some(lease);
    }

    /// Memory that it held when it was last counted, with its reservations, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.lease.as_ref().map_or(0, Lease::held)
    }

    /// Waits until the session's counted memory is free; `None` where its memory is not counted.
    pub(crate) fn released(&self) -> Option<impl Future<Output = ()> + use<>> {
        self.lease.as_ref().map(Lease::released)
    }

    /// Memory for what the application does for the session, if there is some.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<MemoryReservation> {
        match &self.lease {
            Some(lease) => lease.reserve(bytes),
            None => Some(MemoryReservation::uncounted()),
        }
    }

    /// Counts what the session holds, and tells the protocol by how much it may grow.
    fn count_memory(&mut self) {
        if let Some(lease) = &mut self.lease {
            let subflows = SUBFLOW_MEMORY * self.subflows.len() as u64;
            let held = self.protocol.memory() + subflows;
            self.protocol.set_room(lease.note(held, subflows));
        }
    }

    pub(crate) fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// Nobody uses the session any more: it ends once finished streams are delivered.
    pub(super) fn forsake(&mut self, now: Instant) {
        self.is_forsaken = true;
        for id in std::mem::take(&mut self.opened) {
            self.protocol.release_stream(now, id);
        }
        if !self.protocol.is_ending() {
            self.protocol.shutdown(now, self.protocol.config().linger);
        }
    }

    pub(super) fn next_opened(&mut self) -> Option<StreamId> {
        self.opened.pop_front()
    }

    /// A stream's task waits for an event of it.
    pub(crate) fn wait(&mut self, id: StreamId, side: Side, waker: &Waker) {
        let slot = self.streams.entry(id).or_default().slot(side);
        match slot {
            Some(known) => known.clone_from(waker),
            None => *slot = Some(waker.clone()),
        }
    }

    /// The application dropped its handle.
    pub(crate) fn forget(&mut self, id: StreamId) {
        if let Some(StreamWakers { read_message, write_message, .. }) = self.streams.remove(&id) {
            // Handles of its messages may outlive it.
            self.orphans.extend([read_message, write_message].into_iter().flatten());
        }
    }

    pub(super) fn add_subflow(
        &mut self,
        now: Instant,
        path: PathId,
        label: &PathLabel,
        addresses: Addresses,
        socket: Arc<TcpStream>,
    ) -> Option<(SubflowId, Arc<SubflowIo>)> {
        if self.closed.is_some() || self.paths.is_withheld(path) {
            return None;
        }
        let id = self.protocol.subflow_up(now, path, &label.name);
        // A client's own wish may be newer than what this subflow has told the server.
        let policy = self.paths.policy(path).unwrap_or(label.policy);
        self.protocol.set_policy(now, path, policy);
        if self.protocol.is_paced(path)
            && let Err(error) = pace(&socket)
        {
            tracing::debug!(path = path.0, %error, "the subflow is not paced");
        }
        let io = Arc::new(SubflowIo { socket, held: AtomicUsize::new(0), notify: Notify::new() });
        let entry = SubflowEntry { path, io: io.clone(), sampled: None, outstanding: 0 };
        self.subflows.insert(id, entry);
        self.paths.up(path, label, id, addresses);
        Some((id, io))
    }

    /// The subflow's socket failed with this error, or was closed.
    pub(crate) fn remove_subflow(&mut self, now: Instant, id: SubflowId, error: Option<PathError>) {
        if let Some(entry) = self.subflows.remove(&id) {
            self.protocol.subflow_down(now, id);
            self.path_down(entry.path, id);
            if let Some(error) = error {
                self.paths.failed(entry.path, error);
            }
        }
    }

    /// The path's interface is gone: its subflow is reset, nobody dials it until it is back.
    pub(crate) fn remove_path(&mut self, now: Instant, path: PathId) {
        self.protocol.path_removed(now, path);
        let ids: Vec<SubflowId> = self.subflows_of(path).collect();
        for id in ids {
            self.retire(id);
        }
        self.paths.set_wanted(path, false);
    }

    /// Has a path be used otherwise; a client has it dialled anew, so that the server knows. Says
    /// whether there is such a path.
    pub(crate) fn set_policy(&mut self, now: Instant, name: &str, policy: PathPolicy) -> bool {
        let Some(path) = self.paths.set_policy(name, policy) else { return false };
        self.protocol.set_policy(now, path, policy);
        true
    }

    /// Takes a path out of use, or lets it back.
    pub(crate) fn withhold(&mut self, now: Instant, name: &str, withheld: bool) {
        match self.paths.withhold(name, withheld) {
            Some(path) if withheld => self.remove_path(now, path),
            Some(path) => self.paths.set_wanted(path, self.paths.is_untold(path)),
            None => {}
        }
    }

    fn subflows_of(&self, path: PathId) -> impl Iterator<Item = SubflowId> {
        self.subflows.iter().filter(move |(_, entry)| entry.path == path).map(|(id, _)| *id)
    }

    /// Asks on every path whether it lives.
    pub(crate) fn probe_paths(&mut self, now: Instant) {
        self.protocol.probe_paths(now);
    }

    /// Whether the path has a subflow, and the last RTT that is known of it.
    pub(crate) fn seen_of(&self, path: PathId) -> (bool, Option<Duration>) {
        let stats = self.protocol.path_stats();
        let rtt = stats.iter().find(|stats| stats.id == path).map(|stats| stats.srtt);
        (self.subflows_of(path).next().is_some(), rtt.filter(|rtt| !rtt.is_zero()))
    }

    /// Whether another path than this one carries bytes.
    pub(crate) fn is_reached_beside(&self, path: PathId) -> bool {
        let active = |info: PathInfo| info.id != path && info.health == Health::Active;
        self.paths.list().into_iter().any(active)
    }

    /// Ends a subflow by reset; its task sees that it is gone.
    fn retire(&mut self, id: SubflowId) {
        if let Some(entry) = self.subflows.remove(&id) {
            reset_on_close(&entry.io.socket);
            entry.io.notify.notify_one();
            self.path_down(entry.path, id);
        }
    }

    /// Has a path dialled that lost its subflow, unless the peer has closed the session.
    fn path_down(&mut self, path: PathId, id: SubflowId) {
        self.paths.down(path, id);
        if self.protocol.is_left() {
            self.paths.set_wanted(path, false);
        }
    }

    pub(crate) fn has_subflow(&self, id: SubflowId) -> bool {
        self.subflows.contains_key(&id)
    }

    /// Gives the protocol a fresh TCP_INFO of the subflow if the last one is old enough.
    pub(crate) fn sample(&mut self, now: Instant, id: SubflowId) -> u64 {
        let Some(entry) = self.subflows.get_mut(&id) else {
            return 0;
        };
        let fresh = |at: Instant| now.saturating_since(at) < SAMPLE_INTERVAL;
        if entry.sampled.is_some_and(fresh) {
            return entry.outstanding;
        }
        entry.sampled = Some(now);
        // A socket that cannot be asked has failed; its task finds out by reading or writing.
        if let Ok(info) = TcpInfo::of(&*entry.io.socket) {
            let sample = info.sample(entry.io.held.load(Ordering::Relaxed));
            entry.outstanding = sample.outstanding();
            self.protocol.handle_sample(now, id, &sample);
        }
        self.subflows.get(&id).map_or(0, |entry| entry.outstanding)
    }

    /// Tells the path's dialler whether to dial: level, not edge.
    pub(crate) fn dial_signal(&mut self, path: PathId, name: &str) -> watch::Receiver<bool> {
        self.paths.dial_signal(path, name)
    }

    /// The deadline that the session's timer task sleeps for.
    pub(super) fn arm(&mut self) -> Option<Instant> {
        self.armed = self.protocol.poll_timeout();
        self.armed
    }

    /// Does what is due, hands out events, and says whom to wake.
    pub(super) fn settle(&mut self, now: Instant, caller: Option<SubflowId>) -> Wakes {
        let mut wakes = Wakes { streams: std::mem::take(&mut self.orphans), ..Wakes::default() };
        if self.protocol.poll_timeout().is_some_and(|at| at <= now) {
            self.handle_timeout(now);
        }
        while let Some(event) = self.protocol.poll_event() {
            self.handle_event(now, event, &mut wakes);
        }
        self.count_memory();
        let next = self.protocol.poll_timeout();
        if next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed)) {
            self.armed = next;
            wakes.deadline = true;
        }
        for (id, entry) in &self.subflows {
            let idle = entry.io.held.load(Ordering::Relaxed) == 0;
            let other = caller != Some(*id);
            if wakes.closed.is_some() || (other && idle && self.protocol.can_transmit(now, *id)) {
                wakes.subflows.push(entry.io.clone());
            }
        }
        wakes
    }

    /// Timers judge paths by their samples: after a stall of this process an old one would accuse
    /// a path that is well.
    fn handle_timeout(&mut self, now: Instant) {
        let ids: Vec<SubflowId> = self.subflows.keys().copied().collect();
        for id in ids {
            self.sample(now, id);
        }
        self.protocol.handle_timeout(now);
    }

    fn handle_event(&mut self, now: Instant, event: Event, wakes: &mut Wakes) {
        match event {
            Event::StreamOpened(id) if self.is_forsaken => self.protocol.release_stream(now, id),
            Event::StreamOpened(id) => {
                self.opened.push_back(id);
                wakes.accepts = true;
            }
            Event::StreamsAvailable => wakes.opens = true,
            Event::Readable(stream) | Event::StreamReset { stream, .. } => {
                self.wake_stream(stream, Side::Read, wakes);
            }
            Event::Writable(stream) | Event::StreamStopped { stream, .. } => {
                self.wake_stream(stream, Side::Write, wakes);
            }
            Event::MessageReadable(stream) => {
                self.wake_stream(stream, Side::ReadMessage, wakes);
            }
            Event::MessageWritable(stream) => {
                self.wake_stream(stream, Side::WriteMessage, wakes);
            }
            Event::Redial { path } => self.paths.set_wanted(path, true),
            Event::RedialCancelled { path } => {
                let untold = self.paths.is_untold(path);
                self.paths.set_wanted(path, untold);
            }
            Event::SubflowRetired(id) => self.retire(id),
            Event::PathHealth { path, health } => self.paths.set_health(path, health),
            Event::CongestionControl { subflow, algorithm } => {
                self.change_congestion_control(subflow, algorithm);
            }
            Event::Closed(reason) => self.handle_closed(reason, wakes),
        }
    }

    fn wake_stream(&mut self, id: StreamId, side: Side, wakes: &mut Wakes) {
        if let Some(wakers) = self.streams.get_mut(&id) {
            wakes.streams.extend(wakers.slot(side).take());
        }
    }

    fn handle_closed(&mut self, reason: CloseReason, wakes: &mut Wakes) {
        for wakers in std::mem::take(&mut self.streams).into_values() {
            let StreamWakers { read, write, read_message, write_message } = wakers;
            wakes.streams.extend([read, write, read_message, write_message].into_iter().flatten());
        }
        self.paths.close();
        self.closed = Some(reason.clone());
        wakes.closed = Some(reason);
    }

    fn change_congestion_control(&self, id: SubflowId, algorithm: &str) {
        let Some(entry) = self.subflows.get(&id) else {
            return;
        };
        if !self.automatic_congestion_control {
            return;
        }
        let socket = SockRef::from(&*entry.io.socket);
        if let Err(error) = set_congestion_control(&socket, algorithm) {
            tracing::debug!(path = entry.path.0, %error, "congestion control stays as it is");
        }
    }
}
