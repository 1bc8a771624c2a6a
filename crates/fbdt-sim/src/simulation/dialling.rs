//! The client's attempts and probes, as its driver makes them.

use std::fmt::Write as _;

use fbdt_proto::{Dialling, Instant, PathId};

use super::connection::Connection;
use super::{CLIENT, SERVER, Simulation};
use crate::link::Link;

/// The close code of a client whose server does not know the session.
const FORGOTTEN: u32 = 0x21;
/// A probe's size on the link, and its answer's, in bytes.
const PROBE: [usize; 2] = [60, 52];

/// A probe that is on its way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    sent: Instant,
    arrives: Instant,
    /// Whether it is the answer.
    answer: bool,
}

/// A path's two links, all connections that it has now, and what its dialler does.
#[derive(Debug)]
pub(super) struct SimulatedPath {
    /// Client to server, server to client.
    pub(super) links: [Link; 2],
    pub(super) connections: Vec<Connection>,
    pub(super) dialling: Dialling,
    probes: Vec<Probe>,
    /// When attempts are given up that nobody answers.
    vanishing: Vec<Instant>,
    /// Attempts that were made.
    dialled: u32,
    pub(super) removed: bool,
}

impl SimulatedPath {
    /// A path that is dialled at once.
    pub(super) fn new(now: Instant, links: [Link; 2]) -> Self {
        let mut dialling = Dialling::default();
        dialling.begin(now, false);
        let (connections, probes, vanishing) = (Vec::new(), Vec::new(), Vec::new());
        Self { links, connections, dialling, probes, vanishing, dialled: 0, removed: false }
    }

    pub(super) fn has_subflow(&self, end: usize) -> bool {
        self.connections.iter().any(|c| c.ids[end].is_some())
    }

    /// The interface is gone: nobody dials.
    pub(super) fn remove(&mut self) {
        self.removed = true;
        self.dialling.cancel();
    }

    /// The interface is back.
    pub(super) fn restore(&mut self, now: Instant) {
        self.removed = false;
        self.dialling.moved(now);
        self.dialling.begin(now, false);
    }

    /// When an attempt or a probe is due next, or something becomes of one.
    pub(super) fn next_dial(&self) -> Option<Instant> {
        let (attempt, probe) = self.due();
        let probes = self.probes.iter().map(|probe| probe.arrives);
        let vanishing = self.vanishing.iter().copied();
        probes.chain(vanishing).chain(attempt).chain(probe).min()
    }

    fn due(&self) -> (Option<Instant>, Option<Instant>) {
        match self.removed {
            true => (None, None),
            false => (self.dialling.next_attempt(), self.dialling.next_probe()),
        }
    }

    /// Whether what is sent now stays on its way.
    fn is_blocked(&self, now: Instant) -> bool {
        let waits = |l: &Link| l.is_dark(now) || l.is_stalled(now) || l.parameters.held;
        self.links.iter().any(waits)
    }

    /// Takes probes on, and gives attempts up that nobody answered.
    fn advance(&mut self, now: Instant, answers: bool) {
        self.vanishing.retain(|at| {
            let over = *at <= now;
            if over {
                self.dialling.vanished();
            }
            !over
        });
        for probe in std::mem::take(&mut self.probes) {
            if probe.arrives > now {
                self.probes.push(probe);
            } else if probe.answer {
                self.dialling.answered(now, now.saturating_since(probe.sent));
            } else if answers && !self.is_blocked(now) {
                let arrives = self.links[SERVER].crossed(now, PROBE[1]);
                self.probes.extend(arrives.map(|arrives| Probe { arrives, answer: true, ..probe }));
            }
        }
        if self.due().1.is_some_and(|at| at <= now) {
            self.dialling.probe(now);
            if !self.is_blocked(now) {
                let arrives = self.links[CLIENT].crossed(now, PROBE[0]);
                let probe = |arrives| Probe { sent: now, arrives, answer: false };
                self.probes.extend(arrives.map(probe));
            }
        }
    }
}

impl Simulation {
    /// Attempts that the client has made on a path: SYNs that left.
    #[must_use]
    pub fn dialled(&self, path: usize) -> u32 {
        self.paths.get(path).map_or(0, |path| path.dialled)
    }

    /// Connects a path whose time has come and whose link lets it.
    pub(super) fn dial(&mut self, index: usize) {
        let now = self.now;
        let knows = !self.forgotten && !self.ends[SERVER].is_closed();
        let answers = self.probes && knows && self.asleep[SERVER].is_none();
        let open = !self.ends[CLIENT].is_closed();
        let path = &mut self.paths[index];
        if self.asleep[CLIENT].is_some() {
            return;
        }
        if !open {
            path.dialling.cancel();
        }
        path.advance(now, answers);
        if path.due().0.is_none_or(|at| at > now) {
            return;
        }
        let patience = path.dialling.attempt(now, 1, SPREAD);
        path.dialled += 1;
        self.note(|log| write!(log, "path {index} attempt"));
        let path = &mut self.paths[index];
        if path.is_blocked(now) {
            path.vanishing.push(now + patience);
            return;
        }
        if !knows {
            self.over_expected = true;
            self.ends[CLIENT].close(self.local(CLIENT), FORGOTTEN, "the server does not know it");
            return;
        }
        let connection = Connection::new(now, &mut path.links, self.tcp, self.paced, patience);
        path.connections.push(connection);
    }

    /// The client dials for ever what it has no subflow on.
    pub(super) fn redial_if_down(&mut self, index: usize) {
        let now = self.now;
        let path = &mut self.paths[index];
        if !path.removed && !path.has_subflow(CLIENT) {
            path.dialling.begin(now, false);
        }
    }

    pub(super) fn redial(&mut self, path: PathId) {
        let now = self.now;
        if let Some(path) = self.path_mut(path)
            && !path.removed
        {
            let rtt = path.links.iter().map(|link| link.parameters.delay).sum();
            path.dialling.measured(rtt);
            path.dialling.begin(now, path.has_subflow(CLIENT));
        }
    }

    /// The old subflow lives: attempts beside it are given up, even those that
    /// the server has taken already.
    pub(super) fn cancel_redial(&mut self, path: PathId) {
        let index = usize::from(path.0);
        if self.path_mut(path).is_some_and(|path| path.has_subflow(CLIENT)) {
            self.paths[index].dialling.cancel();
            self.give_up_attempts(index);
            self.redial_if_down(index);
        }
    }

    /// Attempts of the path end, however far they are.
    pub(super) fn give_up_attempts(&mut self, index: usize) {
        let path = &mut self.paths[index];
        let hears = self.now + path.links[CLIENT].parameters.delay;
        path.vanishing.clear();
        for connection in path.connections.iter_mut().filter(|c| c.is_attempt()) {
            connection.reset_by(CLIENT, hears);
        }
    }
}

/// The middle of the random spread of attempts.
const SPREAD: u8 = 128;
