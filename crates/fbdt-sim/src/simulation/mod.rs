//! Two sessions, their paths, and time.

mod beside;
mod check;
mod connection;
mod dialling;
mod faults;
mod talk;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use fbdt_proto::{
    Class, Config, Event, Instant, OpenError, Outgoing, PathId, PathPolicy, Role, Session,
    SessionStats, StreamId,
};

use self::connection::Connection;
use self::dialling::SimulatedPath;
pub use self::talk::Arrival;
use self::talk::Talk;
use crate::START;
use crate::application::Application;
use crate::coverage::Observer;
use crate::growth::TcpGrowth;
use crate::link::LinkParameters;
use crate::plain::PlainTcp;
use crate::violation::Violation;

/// While bytes are on their way, TCP is asked this often unless said otherwise.
const SAMPLE: Duration = Duration::from_millis(1);
/// Events that are believed: so many, and so many more in each millisecond.
const MOST_STEPS: u64 = 50_000;
const MOST_STEPS_PER_MS: u64 = 500;
/// Turns that subflows take at one instant.
const MOST_ROUNDS: u64 = 100_000;
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Where a simulation starts.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seeds every link's losses.
    pub seed: u64,
    /// One link per path.
    pub links: Vec<LinkParameters>,
    /// How the paths are used, in their order; those not listed are like any other.
    pub policies: Vec<PathPolicy>,
    /// Configuration of client and server.
    pub config: (Config, Config),
    /// How the subflows' congestion windows grow.
    pub tcp: TcpGrowth,
    /// Whether subflows spread what they send over the RTT.
    pub paced: bool,
    /// Whether everything that happens is written down.
    pub log: bool,
    /// While bytes are on their way, TCP is asked this often.
    pub sample: Duration,
    /// How far each end's clock is ahead of the world's.
    pub clocks: [Duration; 2],
    /// Whether applications drop the handles of streams that are over.
    pub tidy: bool,
    /// Whether a session may end because all paths were down for too long.
    pub lingering_allowed: bool,
    /// Whether probes of paths reach the server (F19).
    pub probes: bool,
}

impl Scenario {
    /// Default configuration at both ends.
    #[must_use]
    pub fn new(seed: u64, links: Vec<LinkParameters>) -> Self {
        Self {
            seed,
            links,
            policies: Vec::new(),
            config: (Config::default(), Config::default()),
            tcp: TcpGrowth::default(),
            paced: false,
            log: true,
            sample: SAMPLE,
            clocks: [Duration::ZERO; 2],
            tidy: false,
            lingering_allowed: false,
            probes: true,
        }
    }
}

/// A client and a server in virtual time.
#[derive(Debug)]
pub struct Simulation {
    now: Instant,
    config: (Config, Config),
    ends: [Session; 2],
    applications: [Application; 2],
    /// How far each end's clock is ahead of `now`.
    clocks: [Duration; 2],
    /// Ends that are not run before then.
    asleep: [Option<Instant>; 2],
    paths: Vec<SimulatedPath>,
    tcp: TcpGrowth,
    beside: Vec<PlainTcp>,
    paced: bool,
    sample: Duration,
    next_sample: Instant,
    steps: u64,
    /// Something may have been changed from outside since the last step.
    stirred: bool,
    log: Option<String>,
    observer: Observer,
    last_progress: (Instant, u64),
    /// Since when (by its own clock) an end has no subflow.
    down_since: [Option<Instant>; 2],
    /// Somebody was told to close the session, or the server lost it.
    over_expected: bool,
    /// Whether a session may end because all paths were down for too long.
    lingering_allowed: bool,
    policies: Vec<PathPolicy>,
    /// Whether probes of paths reach the server.
    probes: bool,
    /// The server does not know the session any more.
    forgotten: bool,
    /// When the ends closed, for the time that their sockets stay.
    closed_at: [Option<Instant>; 2],
    /// Bytes that sessions before this one delivered.
    delivered_before: [u64; 2],
    talk: Talk,
}

fn sessions(
    config: &(Config, Config),
    at: [Instant; 2],
) -> Result<[Session; 2], fbdt_proto::ConfigError> {
    let (client, server) = config;
    Ok([
        fbdt_baselines::session(at[CLIENT], Role::Client, client.clone(), server.limits)?
            .with_messages(),
        fbdt_baselines::session(at[SERVER], Role::Server, server.clone(), client.limits)?
            .with_messages(),
    ])
}

fn applications(tidy: bool) -> [Application; 2] {
    let mut applications = [Application::new(true), Application::new(false)];
    for application in &mut applications {
        application.tidy = tidy;
    }
    applications
}

impl Simulation {
    /// Builds both ends; the paths are dialled at once.
    ///
    /// # Errors
    /// A configuration that a session refuses.
    pub fn new(scenario: Scenario) -> Result<Self, fbdt_proto::ConfigError> {
        let clocks = scenario.clocks;
        let mut simulation = Self {
            now: START,
            ends: sessions(&scenario.config, clocks.map(|ahead| START + ahead))?,
            config: scenario.config,
            applications: applications(scenario.tidy),
            clocks,
            asleep: [None; 2],
            paths: Vec::new(),
            tcp: scenario.tcp,
            beside: Vec::new(),
            paced: scenario.paced,
            sample: scenario.sample,
            next_sample: START,
            steps: 0,
            stirred: true,
            log: scenario.log.then(String::new),
            observer: Observer::default(),
            last_progress: (START, 0),
            down_since: clocks.map(|ahead| Some(START + ahead)),
            over_expected: false,
            lingering_allowed: scenario.lingering_allowed,
            policies: scenario.policies,
            probes: scenario.probes,
            forgotten: false,
            closed_at: [None; 2],
            delivered_before: [0; 2],
            talk: Talk::default(),
        };
        for (index, parameters) in scenario.links.into_iter().enumerate() {
            simulation.add_path(parameters, scenario.seed.wrapping_add(index as u64 * 1000));
        }
        Ok(simulation)
    }

    /// Virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now.saturating_since(START)
    }

    /// Everything that happened, a line each; empty if not asked for.
    #[must_use]
    pub fn log(&self) -> &str {
        self.log.as_deref().unwrap_or_default()
    }

    /// Notes which parts of the protocol's rules are at work now.
    pub fn look(&mut self) {
        for end in &self.ends {
            self.observer.look(end);
        }
    }

    /// Which parts of the protocol's rules have been at work, as far as was
    /// noted.
    #[must_use]
    pub const fn coverage(&self) -> crate::Coverage {
        self.observer.coverage
    }

    /// Schedulers, by name, that spread new bytes over two or more paths.
    #[must_use]
    pub const fn placed(&self) -> &BTreeSet<&'static str> {
        &self.observer.placed
    }

    /// What client and server would show.
    #[must_use]
    pub fn stats(&self) -> [SessionStats; 2] {
        [self.ends[CLIENT].stats(), self.ends[SERVER].stats()]
    }

    /// Bytes that the client's and the server's application have read.
    #[must_use]
    pub const fn delivered(&self) -> [u64; 2] {
        [
            self.delivered_before[CLIENT] + self.applications[CLIENT].delivered,
            self.delivered_before[SERVER] + self.applications[SERVER].delivered,
        ]
    }

    /// Opens a stream at the client (`true`) or the server.
    ///
    /// # Errors
    /// As [`Session::open_stream`].
    pub fn open(&mut self, client: bool, class: Class) -> Result<StreamId, OpenError> {
        let end = usize::from(!client);
        let local = self.local(end);
        self.applications[end].open(local, &mut self.ends[end], class)
    }

    /// `client` (or the server) will write `bytes` more on the stream.
    pub fn write(&mut self, client: bool, stream: StreamId, bytes: u64) {
        self.applications[usize::from(!client)].want(stream, bytes);
    }

    /// And then ends it.
    pub fn finish(&mut self, client: bool, stream: StreamId) {
        self.applications[usize::from(!client)].finish(stream);
    }

    /// Both ends finish all streams, also those that they do not know yet.
    pub fn finish_all(&mut self) {
        for application in &mut self.applications {
            application.finish_all();
        }
    }

    /// Gives up sending on the stream at this end.
    pub fn abandon(&mut self, client: bool, stream: StreamId) {
        let end = usize::from(!client);
        if !self.applications[end].is_released(stream) {
            self.applications[end].abandon(stream);
            self.ends[end].reset(self.local(end), stream, 9);
        }
    }

    /// Gives up receiving on the stream at this end.
    pub fn stop(&mut self, client: bool, stream: StreamId) {
        let end = usize::from(!client);
        if !self.applications[end].is_released(stream) {
            self.applications[end].stop(stream);
            self.ends[end].stop_sending(self.local(end), stream, 9);
        }
    }

    /// Drops this end's handle of the stream.
    pub fn release(&mut self, client: bool, stream: StreamId) {
        let end = usize::from(!client);
        if !self.applications[end].is_released(stream) {
            self.applications[end].release(stream);
            self.ends[end].release_stream(self.local(end), stream);
        }
    }

    /// Closes the session at this end.
    pub fn close(&mut self, client: bool, code: u32) {
        let end = usize::from(!client);
        self.over_expected = true;
        self.ends[end].close(self.local(end), code, "told so");
    }

    /// Closes the session at this end once the other has everything, or after `within`.
    pub fn shutdown(&mut self, client: bool, within: Duration) {
        let end = usize::from(!client);
        self.over_expected = true;
        self.ends[end].shutdown(self.local(end), within);
    }

    /// Streams that this end knows and has not dropped.
    #[must_use]
    pub fn streams(&self, client: bool) -> Vec<StreamId> {
        let application = &self.applications[usize::from(!client)];
        let mut streams = application.streams();
        streams.retain(|id| !application.is_released(*id));
        streams
    }

    /// Whether this end's application reads.
    pub fn set_reading(&mut self, client: bool, reading: bool) {
        let application = &mut self.applications[usize::from(!client)];
        application.reading = reading;
        application.wake();
    }

    /// Whether everything that was promised has arrived, or was given up.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let [client, server] = &self.applications;
        client.has_reached(server) && server.has_reached(client)
    }

    /// Whether the session has ended at one end, so that it must at the other.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ends.iter().any(Session::is_closed)
    }

    /// Whether both ends' sessions are over and their readers know.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ends.iter().all(Session::is_closed)
            && self.applications.iter().all(Application::has_ended)
    }

    /// Runs for `time`.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn run(&mut self, time: Duration) -> Result<(), Violation> {
        let end = self.now + time;
        self.stirred = true;
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
        self.run_until(time, Self::is_done)
    }

    /// Runs until `done`; says whether that was within `time`.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn run_until(
        &mut self,
        time: Duration,
        done: impl Fn(&Self) -> bool,
    ) -> Result<bool, Violation> {
        let end = self.now + time;
        self.stirred = true;
        while self.now < end {
            if done(self) {
                return Ok(true);
            }
            self.step(end)?;
        }
        Ok(done(self))
    }

    /// Goes on to the next thing that happens, at most to `time` from now.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn run_one(&mut self, time: Duration) -> Result<(), Violation> {
        self.step(self.now + time)
    }

    /// The end's own clock.
    fn local(&self, end: usize) -> Instant {
        self.now + self.clocks[end]
    }

    fn is_awake(&self, end: usize) -> bool {
        self.asleep[end].is_none()
    }

    fn note(&mut self, line: impl FnOnce(&mut String) -> std::fmt::Result) {
        if let Some(log) = &mut self.log {
            let _ = write!(log, "{} ", self.now.as_nanos());
            let _ = line(log);
            log.push('\n');
        }
    }

    fn step(&mut self, end: Instant) -> Result<(), Violation> {
        self.steps += 1;
        if self.steps > MOST_STEPS + self.elapsed().as_millis() as u64 * MOST_STEPS_PER_MS {
            self.note_causes();
            return Err(self.livelock());
        }
        let soon = std::mem::take(&mut self.stirred).then_some(self.now);
        self.now = soon.or_else(|| self.next_event()).unwrap_or(end).clamp(self.now, end);
        self.wake();
        self.connect();
        for path in 0..self.paths.len() {
            self.carry(path)?;
        }
        for tcp in &mut self.beside {
            tcp.run(self.now);
        }
        self.run_timers();
        self.take_samples();
        for end in [CLIENT, SERVER] {
            self.run_application(end)?;
        }
        self.transmit()?;
        self.handle_events()?;
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
        let mut outstanding = false;
        for path in &self.paths {
            consider(path.next_dial().filter(|_| self.is_awake(CLIENT)));
            for connection in &path.connections {
                consider(connection.next_event(&path.links));
                outstanding |= connection.directions.iter().any(|d| d.outstanding() > 0);
            }
        }
        consider(outstanding.then_some(self.next_sample));
        self.beside.iter().for_each(|tcp| consider(tcp.next_event(self.now)));
        for end in [CLIENT, SERVER] {
            if let Some(until) = self.asleep[end] {
                consider(Some(until));
                continue;
            }
            // `now` corresponds to the end's clock less its lead.
            consider(self.ends[end].poll_timeout().map(|at| at - self.clocks[end]));
            consider(self.applications[end].next_event());
        }
        next
    }

    fn run_timers(&mut self) {
        for end in [CLIENT, SERVER] {
            let due = self.ends[end].poll_timeout().is_some_and(|at| at <= self.local(end));
            if due && self.is_awake(end) {
                // Timers judge paths by fresh samples, as the driver's do.
                self.sample_end(end);
                self.ends[end].handle_timeout(self.local(end));
            }
        }
    }

    fn take_samples(&mut self) {
        if self.now < self.next_sample {
            return;
        }
        self.next_sample = self.now + self.sample;
        for end in [CLIENT, SERVER] {
            if self.is_awake(end) {
                self.sample_end(end);
            }
        }
    }

    fn sample_end(&mut self, end: usize) {
        let local = self.local(end);
        for path in &mut self.paths {
            for connection in &mut path.connections {
                if let Some(id) = connection.ids[end] {
                    let sample = connection.directions[end].sample();
                    self.ends[end].handle_sample(local, id, &sample);
                    connection.poll[end] = true;
                }
            }
        }
    }

    fn run_application(&mut self, end: usize) -> Result<(), Violation> {
        if !self.is_awake(end) {
            return Ok(());
        }
        let local = self.local(end);
        let [client, server] = &mut self.applications;
        let (own, peer) = if end == CLIENT { (client, server) } else { (server, client) };
        own.run(self.now, local, &mut self.ends[end], peer)
    }

    /// Takes frames from both sessions in turn, path by path: where something
    /// came, or the session says that there is something, as the driver does.
    fn transmit(&mut self) -> Result<(), Violation> {
        let mut out = Outgoing::default();
        let mut moved = true;
        let mut rounds = 0;
        while moved {
            moved = false;
            rounds += 1;
            if rounds > MOST_ROUNDS {
                return Err(self.livelock());
            }
            for path in &mut self.paths {
                let links = &mut path.links;
                for connection in &mut path.connections {
                    for end in [CLIENT, SERVER] {
                        let Some(id) = connection.ids[end].filter(|_| self.asleep[end].is_none())
                        else {
                            continue;
                        };
                        let local = self.now + self.clocks[end];
                        let session = &mut self.ends[end];
                        let direction = &mut connection.directions[end];
                        let wanted = connection.poll[end] || session.can_transmit(local, id);
                        if wanted && direction.has_room() {
                            out.clear();
                            connection.poll[end] = session.poll_transmit(local, id, &mut out);
                            if connection.poll[end] {
                                out.pieces().for_each(|piece| direction.write(piece));
                                moved = true;
                            }
                        }
                        let [own, other] = links;
                        let (link, back) = if end == CLIENT { (own, other) } else { (other, own) };
                        direction.pump(self.now, link, back);
                    }
                }
            }
        }
        Ok(())
    }

    /// What would happen next, for the log.
    fn note_causes(&mut self) {
        let timeouts = [CLIENT, SERVER]
            .map(|end| self.ends[end].poll_timeout().map(|at| (at - self.clocks[end]).as_nanos()));
        let paths: Vec<_> = self
            .paths
            .iter()
            .map(|p| {
                (
                    p.next_dial(),
                    p.connections.iter().map(|c| c.next_event(&p.links)).collect::<Vec<_>>(),
                )
            })
            .collect();
        self.note(|log| write!(log, "next: timeouts {timeouts:?}, paths {paths:?}"));
    }

    fn livelock(&self) -> Violation {
        Violation::Livelock { steps: self.steps, elapsed_ms: self.elapsed().as_millis() as u64 }
    }

    fn handle_events(&mut self) -> Result<(), Violation> {
        for end in [CLIENT, SERVER] {
            while let Some(event) = self.ends[end].poll_event() {
                self.note(|log| write!(log, "{end} {event:?}"));
                self.observer.event(end, &event);
                self.applications[end].handle_event(&event);
                match event {
                    Event::Redial { path } => self.redial(path),
                    Event::RedialCancelled { path } => self.cancel_redial(path),
                    Event::SubflowRetired(id) => self.retire(end, id),
                    Event::Closed(_) => self.closed_at[end] = Some(self.now),
                    Event::MessageReadable(stream) => self.read_messages(end, stream)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn path_mut(&mut self, path: PathId) -> Option<&mut SimulatedPath> {
        self.paths.get_mut(usize::from(path.0))
    }
}
