//! What can be done to a simulation from outside while it runs.

use std::fmt::Write as _;
use std::time::Duration;

use fbdt_proto::{ConfigError, PathId, PathPolicy};

use super::dialling::SimulatedPath;
use super::{CLIENT, SERVER, Simulation, applications, sessions};
use crate::application::Pace;
use crate::link::{Link, LinkChange, LinkParameters};

/// A peer that vanished without a word is found out by TCP after this time.
const VANISHED: Duration = Duration::from_secs(20);

impl Simulation {
    /// One more path, dialled at once.
    pub fn add_path(&mut self, parameters: LinkParameters, seed: u64) {
        self.add_path_of([parameters.clone(), parameters], seed);
    }

    /// One more path whose directions differ, client to server and server to client; dialled at once.
    pub fn add_path_of(&mut self, parameters: [LinkParameters; 2], seed: u64) {
        let links = Link::seeded_pair(parameters, seed);
        self.paths.push(SimulatedPath::new(self.now, links));
    }

    /// The path's interface disappears: both ends see its connections reset.
    pub fn remove_path(&mut self, path: usize) {
        self.reset_path(path);
        if let Some(path) = self.paths.get_mut(path) {
            path.remove();
        }
    }

    /// The client's interface disappears, and the server is not told.
    pub fn lose_interface(&mut self, index: usize) {
        let (now, local) = (self.now, self.local(CLIENT));
        let Some(path) = self.paths.get_mut(index) else { return };
        path.remove();
        for connection in &mut path.connections {
            connection.reset_by(CLIENT, now + VANISHED);
        }
        self.ends[CLIENT].path_removed(local, PathId(index as u8));
        self.note_down(CLIENT);
    }

    /// The path's interface is back.
    pub fn restore_path(&mut self, path: usize) {
        let now = self.now;
        if let Some(path) = self.paths.get_mut(path)
            && path.removed
        {
            path.restore(now);
        }
    }

    /// The path's interface is back with another address, over another link.
    pub fn readdress_path(&mut self, index: usize, parameters: LinkParameters, seed: u64) {
        self.lose_interface(index);
        if let Some(path) = self.paths.get_mut(index) {
            path.links = Link::seeded_pair([parameters.clone(), parameters], seed);
        }
        self.restore_path(index);
    }

    /// Whether the path has an interface, and whether a TCP connection over it stands.
    #[must_use]
    pub fn path_stands(&self, path: usize) -> (bool, bool) {
        let Some(path) = self.paths.get(path) else { return (false, false) };
        (!path.removed, path.connections.iter().any(super::Connection::is_up))
    }

    /// The path's TCP connections are reset at both ends.
    pub fn reset_path(&mut self, path: usize) {
        self.break_path(path, [true, true]);
    }

    /// The path's TCP connections are reset; only the client (`true`) or the
    /// server hears of it now, the other end when it hears from its peer.
    pub fn reset_path_at(&mut self, path: usize, client: bool) {
        self.break_path(path, [client, !client]);
    }

    fn break_path(&mut self, index: usize, seen: [bool; 2]) {
        let Some(path) = self.paths.get(index) else { return };
        let count = path.connections.len();
        let hears = [1, 0].map(|way: usize| self.now + path.links[way].parameters.delay);
        self.note(|log| write!(log, "path {index} reset"));
        for which in 0..count {
            for end in [CLIENT, SERVER] {
                if seen[end] {
                    self.lost_by(index, which, end);
                } else {
                    self.paths[index].connections[which].lose_later(end, hears[end]);
                }
            }
        }
    }

    /// Changes a link; `up` client to server, `down` server to client.
    pub fn change(&mut self, path: usize, change: &LinkChange, up: bool, down: bool) {
        let now = self.now;
        let Some(path) = self.paths.get_mut(path) else { return };
        for (link, wanted) in path.links.iter_mut().zip([up, down]) {
            if wanted {
                link.apply(now, change);
            }
        }
    }

    /// Both ends use a path otherwise from now on (F15).
    pub fn set_policy(&mut self, path: usize, policy: PathPolicy) {
        if self.policies.len() <= path {
            self.policies.resize(path + 1, PathPolicy::default());
        }
        self.policies[path] = policy;
        for end in [CLIENT, SERVER] {
            let now = self.local(end);
            self.ends[end].set_policy(now, PathId(path as u8), policy);
        }
    }

    /// This end's clock is suddenly this much later.
    pub fn jump_clock(&mut self, client: bool, ahead: Duration) {
        self.clocks[usize::from(!client)] += ahead;
    }

    /// This end's process does not run for `time`; its kernel goes on.
    pub fn suspend(&mut self, client: bool, time: Duration) {
        let end = usize::from(!client);
        let until = self.now + time;
        self.asleep[end] = Some(self.asleep[end].map_or(until, |at| at.max(until)));
    }

    /// Ends of suspensions.
    pub(super) fn wake(&mut self) {
        for end in [CLIENT, SERVER] {
            if self.asleep[end].is_some_and(|until| until <= self.now) {
                self.asleep[end] = None;
                self.applications[end].wake();
            }
        }
    }

    /// This end's application reads so many bytes so often; `None`: at once.
    pub fn pace_reading(&mut self, client: bool, pace: Option<(u64, Duration)>) {
        let application = &mut self.applications[usize::from(!client)];
        application.read_pace = pace.map(|(bytes, every)| Pace { bytes, every });
        application.wake();
    }

    /// This end's application writes so many bytes so often; `None`: at once.
    pub fn pace_writing(&mut self, client: bool, pace: Option<(u64, Duration)>) {
        let application = &mut self.applications[usize::from(!client)];
        application.write_pace = pace.map(|(bytes, every)| Pace { bytes, every });
        application.wake();
    }

    /// The server's process is killed and started anew: it knows no session.
    pub fn restart_server(&mut self) {
        self.forgotten = true;
        self.over_expected = true;
        let local = self.local(SERVER);
        for path in &mut self.paths {
            let hears = self.now + path.links[SERVER].parameters.delay;
            for connection in &mut path.connections {
                connection.reset_by(SERVER, hears);
            }
        }
        // What its applications had is gone with it; nobody is told.
        self.ends[SERVER].close(local, 0, "killed");
        self.note_down(SERVER);
    }

    /// The client opens a new session in the place of one that is over.
    ///
    /// # Errors
    /// A configuration that a session refuses.
    pub fn reconnect(&mut self) -> Result<(), ConfigError> {
        self.look();
        self.delivered_before = self.delivered();
        let at = [self.local(CLIENT), self.local(SERVER)];
        self.ends = sessions(&self.config, at)?;
        self.applications = applications(self.applications[CLIENT].tidy);
        self.down_since = at.map(Some);
        self.closed_at = [None; 2];
        self.over_expected = false;
        self.forgotten = false;
        self.last_progress = (self.now, 0);
        for path in &mut self.paths {
            path.connections.clear();
            if !path.removed {
                path.dialling.begin(self.now, false);
            }
        }
        Ok(())
    }
}
