//! Datagrams of programs: each address and port that they come from has an association with the exit
//! while it is in use, as a client of the SOCKS5 proxy has one. Questions to name servers go over TCP.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sumrate_capture::tun::{Datagram, Datagrams, Replies};
use tokio::sync::mpsc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::dns;
use crate::classes::ClassRules;
use crate::proxy::{Association, Carrier};
use crate::service;
use crate::tunnel::Tunnel;

/// The port of name servers.
pub(super) const DNS_PORT: u16 = 53;
/// An association that has been silent for so long ends, as at the exit.
const IDLE: Duration = Duration::from_secs(120);
/// For so long after the exit has refused an association the program's datagrams are refused without
/// asking again.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// Most associations at a time; the one whose program was silent longest goes. The exit grants a session
/// 256 and a credential 512, and clients of the SOCKS5 proxy have theirs, too.
const ASSOCIATIONS_MAX: usize = 192;
/// Bytes of one program that may wait for its association, with what follows for each datagram; of
/// more, the newest is lost.
const WAITING_BYTES_MAX: usize = 128 << 10;
/// What a datagram costs beside its bytes.
const DATAGRAM_COST: usize = 64;
/// Most places that one association talks to at a time, as at the exit; the one that was used longest ago
/// goes.
const PEERS_MAX: usize = 256;

/// Carries what comes out of a device.
pub(super) struct Outlet<T> {
    tunnel: T,
    rules: Arc<ClassRules>,
    name_server: Option<SocketAddr>,
    questions: dns::Questions,
    associations: Mutex<HashMap<SocketAddr, Entry>>,
    stop: CancellationToken,
    /// Every association, and every question.
    work: TaskTracker,
}

/// A program's end of an association.
struct Entry {
    queue: mpsc::UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
    last: Instant,
    /// Ends the association.
    _end: DropGuard,
}

/// A datagram, and its part of what may wait of its program.
struct Waiting(Datagram, OwnedSemaphorePermit);

impl<T> Outlet<T> {
    /// Questions go to `name_server`, if there is one. Once `stop` is cancelled every association ends and
    /// nothing more is taken; of `work` the last is then soon done.
    pub(super) fn new(
        tunnel: T,
        rules: Arc<ClassRules>,
        name_server: Option<SocketAddr>,
        stop: CancellationToken,
        work: TaskTracker,
    ) -> Self {
        Self {
            tunnel,
            rules,
            name_server,
            questions: dns::Questions::default(),
            associations: Mutex::default(),
            stop,
            work,
        }
    }
}

impl<T: Tunnel> Outlet<T> {
    fn ask(&self, datagram: Datagram, replies: &Replies) {
        let asked = self.name_server.unwrap_or(datagram.destination);
        let (tunnel, replies) = (self.tunnel.clone(), replies.clone());
        let questions = self.questions.clone();
        self.work.spawn(async move {
            if let Some(answer) = questions.answer(&datagram.payload, asked, &tunnel).await {
                replies.answer(&datagram, &answer);
            }
        });
    }

    /// Gives a datagram to the association of its program, which is begun if there is none.
    fn pass_on(&self, datagram: Datagram, replies: &Replies) {
        let (source, now) = (datagram.source, Instant::now());
        let mut associations = self.associations.lock().unwrap_or_else(PoisonError::into_inner);
        let mut first = datagram;
        if let Some(entry) = associations.get_mut(&source) {
            entry.last = now;
            match give(&entry.queue, &entry.room, first) {
                Given::Queued => return,
                Given::Full(bytes) => {
                    self.tunnel.flows().iter().for_each(|flows| flows.dropped(bytes));
                    return;
                }
                Given::Closed(again) => first = again,
            }
        }
        make_room(&mut associations);
        let (queue, queued) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(WAITING_BYTES_MAX));
        // An empty queue has room for any datagram.
        give(&queue, &room, first);
        let ended = self.stop.child_token();
        let end = ended.clone().drop_guard();
        associations.insert(source, Entry { queue, room, last: now, _end: end });
        drop(associations);
        let (tunnel, rules, replies) =
            (self.tunnel.clone(), Arc::clone(&self.rules), replies.clone());
        self.work.spawn(async move {
            tokio::select! {
                () = serve(source, queued, &tunnel, &rules, &replies) => {}
                () = ended.cancelled() => {}
            }
        });
    }
}

impl<T: Tunnel> Datagrams for Outlet<T> {
    fn carry(&self, datagram: Datagram, replies: &Replies) -> bool {
        if self.stop.is_cancelled() {
            return false;
        }
        match datagram.destination.port() {
            DNS_PORT => self.ask(datagram, replies),
            _ => self.pass_on(datagram, replies),
        }
        true
    }
}

/// What became of a datagram.
enum Given {
    Queued,
    /// So many bytes did not fit.
    Full(usize),
    /// The association has ended.
    Closed(Datagram),
}

fn give(
    queue: &mpsc::UnboundedSender<Waiting>,
    room: &Arc<Semaphore>,
    datagram: Datagram,
) -> Given {
    let bytes = datagram.payload.len();
    let cost = u32::try_from(bytes + DATAGRAM_COST).unwrap_or(u32::MAX);
    let Ok(room) = Arc::clone(room).try_acquire_many_owned(cost) else {
        return Given::Full(bytes);
    };
    match queue.send(Waiting(datagram, room)) {
        Ok(()) => Given::Queued,
        Err(mpsc::error::SendError(Waiting(again, _))) => Given::Closed(again),
    }
}

/// Forgets associations that have ended, and if there is no room for one more, ends one.
fn make_room(associations: &mut HashMap<SocketAddr, Entry>) {
    associations.retain(|_, entry| !entry.queue.is_closed());
    if associations.len() >= ASSOCIATIONS_MAX {
        let oldest = associations.iter().min_by_key(|(_, entry)| entry.last);
        if let Some(oldest) = oldest.map(|(source, _)| *source) {
            associations.remove(&oldest);
        }
    }
}

/// An association's life, at the program's end.
async fn serve<T: Tunnel>(
    source: SocketAddr,
    mut queued: mpsc::UnboundedReceiver<Waiting>,
    tunnel: &T,
    rules: &ClassRules,
    replies: &Replies,
) {
    match Association::open(tunnel).await {
        Ok(association) => match relay(association, source, queued, rules, replies).await {
            Ok(()) => tracing::debug!(%source, "a program's association ended"),
            Err(error) => tracing::debug!(%source, %error, "a program's association failed"),
        },
        Err(failure) => {
            tracing::info!(%source, %failure, "UDP refused");
            let until = Instant::now() + REFUSED_FOR;
            while let Ok(Some(Waiting(datagram, _room))) = timeout_at(until, queued.recv()).await {
                replies.refuse(&datagram);
            }
            queued.close();
            while let Some(Waiting(datagram, _)) = queued.recv().await {
                replies.refuse(&datagram);
            }
        }
    }
}

/// Carries both ways until the program's end is dropped, the exit ends it, or nothing has moved for two
/// minutes.
async fn relay(
    mut carrier: impl Carrier,
    source: SocketAddr,
    mut queued: mpsc::UnboundedReceiver<Waiting>,
    rules: &ClassRules,
    replies: &Replies,
) -> io::Result<()> {
    let (mut peers, mut last) = (Peers::default(), Instant::now());
    loop {
        tokio::select! {
            waiting = queued.recv() => {
                let Some(Waiting(datagram, _room)) = waiting else { return Ok(()) };
                last = Instant::now();
                let (to, payload) = (datagram.destination, &datagram.payload);
                let message = service::Datagram::encode(to, payload);
                if message.len() > carrier.longest() {
                    replies.refuse(&datagram);
                    continue;
                }
                peers.remember(to);
                carrier.send(&message, rules).await?;
            }
            message = carrier.receive() => {
                let Some(message) = message? else { return Ok(()) };
                let Ok(datagram) = service::Datagram::parse(&message) else { continue };
                let Ok(address) = datagram.destination.host.parse::<IpAddr>() else { continue };
                let peer = SocketAddr::new(address, datagram.destination.port);
                if peers.know(peer) {
                    last = Instant::now();
                    replies.send(peer, source, datagram.data);
                }
            }
            () = tokio::time::sleep_until(last + IDLE) => return Ok(()),
        }
    }
}

/// Whom a program talks to: only from there does it get anything.
#[derive(Default)]
struct Peers(HashMap<SocketAddr, Instant>);

impl Peers {
    fn remember(&mut self, peer: SocketAddr) {
        if self.0.len() >= PEERS_MAX && !self.0.contains_key(&peer) {
            let oldest = self.0.iter().min_by_key(|(_, used)| **used).map(|(peer, _)| *peer);
            self.0.retain(|peer, _| Some(*peer) != oldest);
        }
        self.0.insert(peer, Instant::now());
    }

    fn know(&self, peer: SocketAddr) -> bool {
        self.0.contains_key(&peer)
    }
}

#[cfg(test)]
#[path = "datagrams_tests.rs"]
mod tests;
