//! Connections come, carry bytes and go; each end learns of it in its own time.

use std::fmt::Write as _;
use std::time::Duration;

use fbdt_proto::{FrameDecoder, Instant, PathId, SubflowId};

use super::{CLIENT, SERVER, Simulation};
use crate::growth::TcpGrowth;
use crate::link::Link;
use crate::subflow::TcpDirection;
use crate::violation::Violation;

/// An answer to a Join is waited for this long.
const PATIENCE: Duration = Duration::from_secs(1);
/// Crossings before the server has a connection whose TCP is Linux's: of TCP's handshake and of TLS's,
/// which wait in the link's queues. Their sizes in bytes, from the client's first on.
const CROSSINGS: [usize; 5] = [60, 60, 400, 2500, 300];
/// And of the answer.
const ANSWER: usize = 100;
/// Such an attempt is kept this long, and for its crossings.
const KEPT: Duration = Duration::from_secs(3);
/// A reset that a dark link swallowed is found out this much later, and a crossing is tried again.
const RESET_AGAIN: Duration = Duration::from_millis(200);
/// A SYN, or its answer, is tried again after this time.
const SYN_AGAIN: Duration = Duration::from_secs(1);
/// The SYN's and its answer's crossings.
const SYN_CROSSINGS: usize = 2;
/// The crossing that carries the Join, of which the client sends one at a time.
const JOIN_CROSSING: usize = 4;
/// How often the next one is looked at meanwhile.
const JOIN_WAIT: Duration = Duration::from_millis(1);
/// After its session has closed, an end waits this long for the peer to see it.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// One TCP connection, as far as at least one end has it.
#[derive(Debug)]
pub(super) struct Connection {
    /// Numbers at client and server while they have it as a subflow.
    pub(super) ids: [Option<SubflowId>; 2],
    begun: Instant,
    /// When an end gets it as a subflow.
    up_at: [Option<Instant>; 2],
    /// When an end learns that it is gone.
    gone_at: [Option<Instant>; 2],
    /// When the client gives the attempt up, while it waits for an answer.
    patience: Option<Instant>,
    /// Crossings that are done; `None` if the handshake is one round trip without queues.
    crossings: Option<usize>,
    /// From client, from server.
    pub(super) directions: [TcpDirection; 2],
    decoders: [FrameDecoder; 2],
    /// What has arrived at an end that did not take it yet.
    inbox: [Vec<u8>; 2],
    /// Something happened since the end's session had nothing to send.
    pub(super) poll: [bool; 2],
}

impl Connection {
    /// An attempt whose SYN is answered within `patience`, or never.
    pub(super) fn new(
        now: Instant,
        links: &mut [Link; 2],
        growth: TcpGrowth,
        paced: bool,
        patience: Duration,
    ) -> Self {
        let [up, down] = [0, 1].map(|way: usize| links[way].parameters.delay);
        let crosses = matches!(growth, TcpGrowth::Linux | TcpGrowth::Bbr);
        let [first, second] = links;
        let rtts = match crosses {
            true => [first.handshake(second, now), second.handshake(first, now)],
            false => [up + down; 2],
        };
        let patience = if crosses { patience } else { up + down + PATIENCE };
        Self {
            ids: [None; 2],
            begun: now,
            up_at: [None, Some(if crosses { now } else { now + up })],
            gone_at: [None; 2],
            patience: Some(now + patience),
            crossings: crosses.then_some(0),
            directions: rtts.map(|rtt| TcpDirection::new(now, rtt, growth).paced(paced)),
            decoders: [FrameDecoder::new(64 << 10), FrameDecoder::new(64 << 10)],
            inbox: [Vec::new(), Vec::new()],
            poll: [true; 2],
        }
    }

    /// Whether both ends have it.
    pub(super) const fn is_up(&self) -> bool {
        self.ids[CLIENT].is_some() && self.ids[SERVER].is_some()
    }

    /// Whether the client waits for an answer.
    pub(super) const fn is_attempt(&self) -> bool {
        self.patience.is_some()
    }

    /// When what was lost of its handshake is sent again.
    fn again(&self) -> Duration {
        match self.crossings {
            Some(done) if done < SYN_CROSSINGS => SYN_AGAIN,
            _ => RESET_AGAIN,
        }
    }

    /// Whether its Join is on its way, or has arrived.
    fn is_joining(&self) -> bool {
        self.is_attempt() && self.crossings.is_some_and(|done| done > JOIN_CROSSING)
    }

    const fn is_known_to(&self, end: usize) -> bool {
        let attempted = end == CLIENT && self.patience.is_some();
        self.ids[end].is_some() || self.up_at[end].is_some() || attempted
    }

    /// Whether nobody has it or will have it.
    const fn is_gone(&self) -> bool {
        !self.is_known_to(CLIENT) && !self.is_known_to(SERVER)
    }

    pub(super) fn next_event(&self, links: &[Link; 2]) -> Option<Instant> {
        self.up_at
            .iter()
            .chain(&self.gone_at)
            .copied()
            .chain([self.patience, self.directions[0].next_event(&links[1])])
            .chain([self.directions[1].next_event(&links[0])])
            .flatten()
            .min()
    }

    /// `end` closes its socket by reset; the other end hears of it, if ever,
    /// after `delay`.
    pub(super) fn reset_by(&mut self, end: usize, other_hears: Instant) {
        self.ids[end] = None;
        self.up_at[end] = None;
        self.gone_at[end] = None;
        if end == CLIENT {
            self.patience = None;
        }
        self.directions[end].drop_unsent();
        self.lose_later(1 - end, other_hears);
    }

    /// `end` learns at that time that it is gone.
    pub(super) fn lose_later(&mut self, end: usize, hears: Instant) {
        if self.is_known_to(end) && self.gone_at[end].is_none() {
            self.gone_at[end] = Some(hears);
        }
    }
}

impl Simulation {
    /// Dials, and completes or gives up what was dialled.
    pub(super) fn connect(&mut self) {
        for index in 0..self.paths.len() {
            self.lose(index);
            self.establish(index);
            self.dial(index);
            self.paths[index].connections.retain(|connection| !connection.is_gone());
        }
    }

    /// The server takes what was dialled, and its answer reaches the client.
    fn establish(&mut self, index: usize) {
        for which in 0..self.paths[index].connections.len() {
            for end in [SERVER, CLIENT] {
                let now = self.now;
                let path = &mut self.paths[index];
                let connection = &mut path.connections[which];
                if connection.up_at[end].is_none_or(|at| at > now) {
                    continue;
                }
                if self.asleep[end].is_some() {
                    connection.up_at[end] = self.asleep[end];
                    continue;
                }
                let incoming = &path.links[1 - end];
                if incoming.is_dark(now) || incoming.parameters.held {
                    // What is on its way is lost; TCP tries again.
                    connection.up_at[end] = Some(now + connection.again());
                    continue;
                }
                if end == SERVER && self.cross(index, which) {
                    continue;
                }
                let path = &mut self.paths[index];
                let connection = &mut path.connections[which];
                connection.up_at[end] = None;
                if end == SERVER {
                    let back = &mut path.links[SERVER];
                    let plain = now + back.parameters.delay;
                    let crossed = connection.crossings.and_then(|_| back.crossed(now, ANSWER));
                    connection.up_at[CLIENT] = Some(crossed.unwrap_or(plain));
                }
                self.bring_up(index, which, end);
            }
        }
    }

    /// Takes a handshake over the links, as far as it crosses them; says whether it is not over.
    fn cross(&mut self, index: usize, which: usize) -> bool {
        let now = self.now;
        let path = &mut self.paths[index];
        let joining = path.connections.iter().any(Connection::is_joining);
        let connection = &mut path.connections[which];
        let Some(done) = connection.crossings else { return false };
        let Some(size) = CROSSINGS.get(done) else { return false };
        if done == SYN_CROSSINGS && connection.is_attempt() {
            let rtt = now.saturating_since(connection.begun);
            path.dialling.connected(now, rtt);
            connection.patience = Some(now + KEPT + rtt * 3);
        }
        if done == JOIN_CROSSING && joining {
            connection.up_at[SERVER] = Some(now + JOIN_WAIT);
            return true;
        }
        let arrives = path.links[done % 2].crossed(now, *size);
        let again = connection.again();
        connection.crossings = Some(done + usize::from(arrives.is_some()));
        connection.up_at[SERVER] = Some(arrives.unwrap_or(now + again));
        true
    }

    fn bring_up(&mut self, index: usize, which: usize, end: usize) {
        if self.ends[end].is_closed() {
            let hears = self.now + self.paths[index].links[end].parameters.delay;
            self.paths[index].connections[which].reset_by(end, hears);
            return;
        }
        let local = self.local(end);
        let name = format!("path{index}");
        let id = self.ends[end].subflow_up(local, PathId(index as u8), &name);
        let policy = self.policies.get(index).copied().unwrap_or_default();
        self.ends[end].set_policy(local, PathId(index as u8), policy);
        self.down_since[end] = None;
        let connection = &mut self.paths[index].connections[which];
        connection.ids[end] = Some(id);
        if !self.ends[end].is_paced(PathId(index as u8)) {
            connection.directions[end].pace(false);
        }
        if end == CLIENT {
            connection.patience = None;
            self.paths[index].dialling.up(self.now);
            self.give_up_attempts(index);
        }
        self.note(|log| write!(log, "{end} path {index} up"));
    }

    /// Ends learn of resets; the client gives up attempts that get no answer.
    fn lose(&mut self, index: usize) {
        for which in 0..self.paths[index].connections.len() {
            let (now, asleep) = (self.now, self.asleep);
            let path = &mut self.paths[index];
            let connection = &mut path.connections[which];
            for end in [CLIENT, SERVER] {
                if connection.gone_at[end].is_none_or(|at| at > now) {
                    continue;
                }
                if let Some(until) = asleep[end] {
                    connection.gone_at[end] = Some(until);
                } else if path.links[1 - end].is_dark(now) {
                    connection.gone_at[end] = Some(now + RESET_AGAIN);
                } else {
                    self.note(|log| write!(log, "{end} path {index} reset"));
                    self.lost_by(index, which, end);
                }
                break;
            }
            let path = &mut self.paths[index];
            let connection = &mut path.connections[which];
            if connection.patience.is_some_and(|at| at <= now) {
                if connection.crossings.is_some_and(|done| done < SYN_CROSSINGS) {
                    path.dialling.vanished();
                }
                let hears = now + path.links[CLIENT].parameters.delay;
                connection.reset_by(CLIENT, hears);
                self.redial_if_down(index);
            }
        }
        self.finish_closing(index);
    }

    /// The socket of `end` failed.
    pub(super) fn lost_by(&mut self, index: usize, which: usize, end: usize) {
        let local = self.local(end);
        let connection = &mut self.paths[index].connections[which];
        connection.gone_at[end] = None;
        connection.up_at[end] = None;
        if end == CLIENT {
            connection.patience = None;
        }
        connection.directions[end].drop_unsent();
        if let Some(id) = connection.ids[end].take() {
            self.ends[end].subflow_down(local, id);
        }
        self.note_down(end);
        if end == CLIENT {
            self.redial_if_down(index);
        }
    }

    pub(super) fn note_down(&mut self, end: usize) {
        if self.down_since[end].is_none() && !self.paths.iter().any(|p| p.has_subflow(end)) {
            self.down_since[end] = Some(self.local(end));
        }
    }

    /// Sockets of ends that have closed go when the peer has seen it, or after
    /// a while.
    fn finish_closing(&mut self, index: usize) {
        for end in [CLIENT, SERVER] {
            let Some(since) = self.closed_at[end] else { continue };
            let late = self.now.saturating_since(since) >= CLOSE_TIME;
            let peer = self.ends[1 - end].is_closed();
            let path = &mut self.paths[index];
            for connection in &mut path.connections {
                let flushed = connection.directions[end].is_flushed() && !connection.poll[end];
                if connection.ids[end].is_some() && (late || (peer && flushed)) {
                    let hears = self.now + path.links[end].parameters.delay;
                    connection.reset_by(end, hears);
                }
            }
        }
    }

    /// The session has replaced or given up this subflow: its socket is reset.
    pub(super) fn retire(&mut self, end: usize, id: SubflowId) {
        let now = self.now;
        for path in &mut self.paths {
            let hears = now + path.links[end].parameters.delay;
            for connection in &mut path.connections {
                if connection.ids[end] == Some(id) {
                    connection.reset_by(end, hears);
                }
            }
        }
        self.note_down(end);
    }

    /// Moves bytes over one path and hands them to the sessions.
    pub(super) fn carry(&mut self, index: usize) -> Result<(), Violation> {
        let now = self.now;
        for which in 0..self.paths[index].connections.len() {
            let path = &mut self.paths[index];
            let connection = &mut path.connections[which];
            let [up, down] = &mut path.links;
            connection.directions[0].advance(now, up, down);
            connection.directions[1].advance(now, down, up);
            connection.directions[0].deliver(now, up, &mut connection.inbox[SERVER]);
            connection.directions[1].deliver(now, down, &mut connection.inbox[CLIENT]);
            for end in [SERVER, CLIENT] {
                self.take_in(index, which, end)?;
            }
        }
        Ok(())
    }

    /// An end that runs and has the connection reads what has arrived.
    fn take_in(&mut self, index: usize, which: usize, end: usize) -> Result<(), Violation> {
        let local = self.local(end);
        let awake = self.is_awake(end);
        let connection = &mut self.paths[index].connections[which];
        let Some(id) = connection.ids[end].filter(|_| awake) else { return Ok(()) };
        if connection.inbox[end].is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut connection.inbox[end]);
        connection.poll[end] = true;
        let mut input = &bytes[..];
        while !input.is_empty() {
            let frame = self.paths[index].connections[which].decoders[end]
                .push(&mut input)
                .map_err(|error| Violation::Refused(error.to_string()))?;
            let Some(frame) = frame else { continue };
            self.note(|log| write!(log, "{end} path {index} {}", brief(&frame)));
            self.observer.frame(end, index, &frame);
            self.ends[end]
                .handle_frame(local, id, frame)
                .map_err(|error| Violation::Refused(error.to_string()))?;
        }
        Ok(())
    }
}

fn brief(frame: &fbdt_proto::Frame) -> String {
    match frame {
        fbdt_proto::Frame::Data { stream, offset, fin, payload } => {
            format!("data {stream} {offset}+{} {fin}", payload.len())
        }
        other => format!("{other:?}"),
    }
}
