//! Two sessions, their paths, and time.

use std::fmt::Write as _;
use std::time::Duration;

use fbdt_proto::wire::FrameDecoder;
use fbdt_proto::{
    Class, Config, Event, Instant, OpenError, PathId, Role, Session, SessionStats, StreamId,
    SubflowId,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::application::Application;
use crate::link::{Link, LinkChange, LinkParameters};
use crate::subflow::TcpDirection;
use crate::violation::Violation;

/// While bytes are on their way, TCP is asked this often.
const SAMPLE: Duration = Duration::from_millis(1);
/// Attempts of a redial follow each other this fast.
const REDIAL: Duration = Duration::from_millis(50);

/// Where a simulation starts.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seeds every link's losses.
    pub seed: u64,
    /// One link per path.
    pub links: Vec<LinkParameters>,
    /// Configuration of client and server.
    pub config: (Config, Config),
}

impl Scenario {
    /// Default configuration at both ends.
    #[must_use]
    pub fn new(seed: u64, links: Vec<LinkParameters>) -> Self {
        Self { seed, links, config: (Config::default(), Config::default()) }
    }
}

/// One live TCP connection.
#[derive(Debug)]
struct Connection {
    /// Numbers at client and server.
    ids: [SubflowId; 2],
    /// From client, from server.
    directions: [TcpDirection; 2],
    decoders: [FrameDecoder; 2],
}

#[derive(Debug)]
struct SimulatedPath {
    /// Client to server, server to client.
    links: [Link; 2],
    connection: Option<Connection>,
    /// Next attempt to connect.
    dial_at: Option<Instant>,
    removed: bool,
}

/// A client and a server in virtual time.
#[derive(Debug)]
pub struct Simulation {
    now: Instant,
    ends: [Session; 2],
    applications: [Application; 2],
    paths: Vec<SimulatedPath>,
    next_sample: Instant,
    log: String,
    budget: (f64, u64),
    last_progress: (Instant, u64),
}

impl Simulation {
    /// Builds both ends; the paths are dialled at once.
    ///
    /// # Errors
    /// A configuration that a session refuses.
    pub fn new(scenario: Scenario) -> Result<Self, fbdt_proto::ConfigError> {
        let now = Instant::from_nanos(1_000_000_000);
        let (client, server) = scenario.config;
        let budget = (client.overdue_budget, client.overdue_allowance);
        let limits = (client.limits, server.limits);
        let ends = [
            Session::new(now, Role::Client, client, limits.1)?,
            Session::new(now, Role::Server, server, limits.0)?,
        ];
        let mut simulation = Self {
            now,
            ends,
            applications: [Application::new(true), Application::new(false)],
            paths: Vec::new(),
            next_sample: now,
            log: String::new(),
            budget,
            last_progress: (now, 0),
        };
        for (index, parameters) in scenario.links.into_iter().enumerate() {
            simulation.add_path(parameters, scenario.seed.wrapping_add(index as u64 * 1000));
        }
        Ok(simulation)
    }

    /// Virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now.saturating_since(Instant::from_nanos(1_000_000_000))
    }

    /// Everything that happened, a line each.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    /// What client and server would show.
    #[must_use]
    pub fn stats(&self) -> [SessionStats; 2] {
        [self.ends[0].stats(), self.ends[1].stats()]
    }

    /// Bytes that the client's and the server's application have read.
    #[must_use]
    pub const fn delivered(&self) -> [u64; 2] {
        [self.applications[0].delivered, self.applications[1].delivered]
    }

    /// One more path, dialled at once.
    pub fn add_path(&mut self, parameters: LinkParameters, seed: u64) {
        let rng = |salt: u64| ChaCha8Rng::seed_from_u64(seed ^ (salt << 40));
        let links = [Link::new(parameters.clone(), rng(1)), Link::new(parameters, rng(2))];
        let path =
            SimulatedPath { links, connection: None, dial_at: Some(self.now), removed: false };
        self.paths.push(path);
    }

    /// The path's interface disappears.
    pub fn remove_path(&mut self, path: usize) {
        self.reset_path(path);
        if let Some(path) = self.paths.get_mut(path) {
            path.removed = true;
            path.dial_at = None;
        }
    }

    /// The path's interface is back.
    pub fn restore_path(&mut self, path: usize) {
        let now = self.now;
        if let Some(path) = self.paths.get_mut(path)
            && path.removed
        {
            path.removed = false;
            path.dial_at = Some(now);
        }
    }

    /// The path's TCP connection is reset at both ends.
    pub fn reset_path(&mut self, path: usize) {
        let now = self.now;
        let Some(state) = self.paths.get_mut(path) else { return };
        if let Some(connection) = state.connection.take() {
            let _ = writeln!(self.log, "{} path {path} reset", now.as_nanos());
            for (end, id) in self.ends.iter_mut().zip(connection.ids) {
                end.subflow_down(now, id);
            }
            state.dial_at = Some(now + REDIAL);
        }
    }

    /// Changes a link; `up` client to server, `down` server to client.
    pub fn change(&mut self, path: usize, change: &LinkChange, up: bool, down: bool) {
        let Some(path) = self.paths.get_mut(path) else { return };
        for (link, wanted) in path.links.iter_mut().zip([up, down]) {
            if wanted {
                change.apply(&mut link.parameters);
            }
        }
    }

    /// Opens a stream at the client (`true`) or the server.
    ///
    /// # Errors
    /// As [`Session::open_stream`].
    pub fn open(&mut self, client: bool, class: Class) -> Result<StreamId, OpenError> {
        let end = usize::from(!client);
        self.applications[end].open(self.now, &mut self.ends[end], class)
    }

    /// `client` (or the server) will write `bytes` more on the stream.
    pub fn write(&mut self, client: bool, stream: StreamId, bytes: u64) {
        self.applications[usize::from(!client)].want(stream, bytes);
    }

    /// And then ends it.
    pub fn finish(&mut self, client: bool, stream: StreamId) {
        self.applications[usize::from(!client)].finish(stream);
    }

    /// Gives the stream up at this end.
    pub fn abandon(&mut self, client: bool, stream: StreamId) {
        let end = usize::from(!client);
        self.applications[end].abandon(stream);
        self.ends[end].reset(self.now, stream, 9);
    }

    /// Streams that this end knows.
    #[must_use]
    pub fn streams(&self, client: bool) -> Vec<StreamId> {
        self.applications[usize::from(!client)].streams()
    }

    /// Whether this end's application reads.
    pub fn set_reading(&mut self, client: bool, reading: bool) {
        self.applications[usize::from(!client)].reading = reading;
    }

    /// Whether everything that was promised has arrived.
    #[must_use]
    pub fn is_done(&self) -> bool {
        [(0, 1), (1, 0)].iter().all(|&(from, to)| {
            let (from, to) = (&self.applications[from], &self.applications[to]);
            from.streams().iter().all(|id| {
                let (wanted, finish) = from.promised(id.0);
                let (read, ended) = to.received(id.0);
                from.is_abandoned(id.0) || (read == wanted && (ended || !finish))
            })
        })
    }

    /// Runs for `time`.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn run(&mut self, time: Duration) -> Result<(), Violation> {
        let end = self.now + time;
        while self.now < end {
            self.step(end)?;
        }
        Ok(())
    }

    /// Runs until everything has arrived; says whether it has within `time`.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn run_until_done(&mut self, time: Duration) -> Result<bool, Violation> {
        let end = self.now + time;
        while self.now < end {
            if self.is_done() {
                return Ok(true);
            }
            self.step(end)?;
        }
        Ok(self.is_done())
    }

    fn step(&mut self, end: Instant) -> Result<(), Violation> {
        self.now = self.next_event().unwrap_or(end).clamp(self.now, end);
        self.dial();
        for index in 0..self.paths.len() {
            self.carry(index)?;
        }
        for end in &mut self.ends {
            if end.poll_timeout().is_some_and(|at| at <= self.now) {
                end.handle_timeout(self.now);
            }
        }
        self.sample();
        let [client, server] = &mut self.applications;
        client.run(self.now, &mut self.ends[0], server)?;
        server.run(self.now, &mut self.ends[1], client)?;
        self.transmit();
        self.handle_events();
        self.check()
    }

    fn next_event(&self) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut consider = |at: Option<Instant>| {
            if let Some(at) = at {
                // Nothing happens twice at the same instant.
                let at = at.max(self.now + Duration::from_nanos(1));
                next = Some(next.map_or(at, |n| n.min(at)));
            }
        };
        for path in &self.paths {
            consider(path.dial_at);
            if let Some(connection) = &path.connection {
                let [up, down] = &connection.directions;
                consider(up.next_event(&path.links[1]));
                consider(down.next_event(&path.links[0]));
                if connection.directions.iter().any(|d| d.sample().outstanding() > 0) {
                    consider(Some(self.next_sample));
                }
            }
        }
        for end in &self.ends {
            consider(end.poll_timeout());
        }
        next
    }

    /// Connects paths whose time has come and whose link lets them.
    fn dial(&mut self) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if path.removed || path.dial_at.is_none_or(|at| at > self.now) {
                continue;
            }
            if path.links.iter().any(|l| l.parameters.blackout || l.parameters.held) {
                path.dial_at = Some(self.now + REDIAL);
                continue;
            }
            path.dial_at = None;
            let rtt: Duration = path.links.iter().map(|l| l.parameters.delay).sum();
            let name = format!("path{index}");
            let id = PathId(index as u8);
            let ids = [
                self.ends[0].subflow_up(self.now, id, &name),
                self.ends[1].subflow_up(self.now, id, &name),
            ];
            let _ = writeln!(self.log, "{} path {index} up", self.now.as_nanos());
            path.connection = Some(Connection {
                ids,
                directions: [TcpDirection::new(self.now, rtt), TcpDirection::new(self.now, rtt)],
                decoders: [FrameDecoder::new(64 << 10), FrameDecoder::new(64 << 10)],
            });
        }
    }

    /// Moves bytes over one path and hands them to the sessions.
    fn carry(&mut self, index: usize) -> Result<(), Violation> {
        let path = &mut self.paths[index];
        let Some(connection) = &mut path.connection else { return Ok(()) };
        let [up, down] = &mut path.links;
        connection.directions[0].advance(self.now, up, down);
        connection.directions[1].advance(self.now, down, up);
        for from in 0..2 {
            let mut bytes = Vec::new();
            let link = if from == 0 { &*up } else { &*down };
            connection.directions[from].deliver(self.now, link, &mut bytes);
            let to = 1 - from;
            let mut input = &bytes[..];
            while !input.is_empty() {
                let frame = connection.decoders[to]
                    .push(&mut input)
                    .map_err(|e| Violation::Refused(e.to_string()))?;
                if let Some(frame) = frame {
                    let _ = writeln!(self.log, "{} {to} {}", self.now.as_nanos(), brief(&frame));
                    self.ends[to]
                        .handle_frame(self.now, connection.ids[to], frame)
                        .map_err(|e| Violation::Refused(e.to_string()))?;
                }
            }
        }
        Ok(())
    }

    fn sample(&mut self) {
        if self.now < self.next_sample {
            return;
        }
        self.next_sample = self.now + SAMPLE;
        for path in &self.paths {
            let Some(connection) = &path.connection else { continue };
            for end in 0..2 {
                let sample = connection.directions[end].sample();
                self.ends[end].handle_sample(self.now, connection.ids[end], &sample);
            }
        }
    }

    /// Takes frames from both sessions in turn, path by path.
    fn transmit(&mut self) {
        let mut out = Vec::new();
        let mut moved = true;
        while moved {
            moved = false;
            for path in &mut self.paths {
                let Some(connection) = &mut path.connection else { continue };
                for end in 0..2 {
                    out.clear();
                    if connection.directions[end].has_room()
                        && self.ends[end].poll_transmit(self.now, connection.ids[end], &mut out)
                    {
                        connection.directions[end].write(&out);
                        moved = true;
                    }
                    connection.directions[end].pump(self.now, &mut path.links[end]);
                }
            }
        }
    }

    fn handle_events(&mut self) {
        for end in 0..2 {
            while let Some(event) = self.ends[end].poll_event() {
                let _ = writeln!(self.log, "{} {end} {event:?}", self.now.as_nanos());
                match event {
                    Event::StreamOpened(id) => self.applications[end].join(id),
                    Event::Redial { path } => {
                        if let Some(path) = self.paths.get_mut(usize::from(path.0))
                            && path.dial_at.is_none()
                            && !path.removed
                        {
                            path.dial_at = Some(self.now + REDIAL);
                        }
                    }
                    Event::RedialCancelled { path } => {
                        if let Some(path) = self.paths.get_mut(usize::from(path.0))
                            && path.connection.is_some()
                        {
                            path.dial_at = None;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn check(&mut self) -> Result<(), Violation> {
        for end in &self.ends {
            if let Some(reason) = end.close_reason() {
                return Err(Violation::Refused(reason.to_string()));
            }
            let allowed = end.config().limits.session_window + (8 << 20);
            let held = end.receive_memory();
            if held > allowed {
                return Err(Violation::Memory { held, allowed });
            }
            let (new, copied) = end.overdue_copies();
            let allowed = (new as f64 * self.budget.0) as u64 + self.budget.1 + 65536;
            if copied > allowed {
                return Err(Violation::Budget { copied, allowed });
            }
        }
        self.check_progress()
    }

    /// With a path that works and a reader that reads, bytes move.
    fn check_progress(&mut self) -> Result<(), Violation> {
        let delivered = self.applications.iter().map(|a| a.delivered).sum();
        let reading = self.applications.iter().all(|a| a.reading);
        let works = self.paths.iter().any(|p| {
            p.connection.is_some()
                && p.links.iter().all(|l| !l.parameters.blackout && l.parameters.loss < 0.2)
        });
        if delivered != self.last_progress.1 || !works || !reading || self.is_done() {
            self.last_progress = (self.now, delivered);
        }
        let silent = self.now.saturating_since(self.last_progress.0);
        if silent > Duration::from_secs(10) {
            return Err(Violation::Stuck { silent_ms: silent.as_millis() as u64 });
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
