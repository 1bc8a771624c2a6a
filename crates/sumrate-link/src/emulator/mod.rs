//! The run loop: one thread that waits for packets, deadlines and commands.

pub mod lateness;
pub mod report;
pub mod timeline;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeSpec;

use crate::config::parameters::{WrittenUpdate, check_together};
use crate::config::{Config, Direction, Directions, ScheduleEntry};
use crate::control::protocol::{Answer, Request};
use crate::control::server::Server;
use crate::device::{self, Device, Sent};
use crate::direction::{Pipeline, generator};
use crate::interfaces::{Interfaces, SetupError};
use crate::packet::Packet;
use crate::packet::buffer::Pool;
use crate::radio::Radio;
use crate::time::{Clock, Nanos, whole};
use lateness::Lateness;
use report::{DirectionReport, LinkReport, Report};
use timeline::Timeline;

/// Packets read from one device before the others and the deadlines get their turn.
const BATCH: usize = 32;

/// Why the loop ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Waiting failed.
    #[error("waiting for packets failed: {0}")]
    Wait(#[from] nix::Error),
}

#[derive(Debug)]
struct Link {
    name: String,
    /// By `Direction::index`: the pipeline that begins at side a is first.
    pipelines: [Pipeline; 2],
    radio: Radio,
    timeline: Timeline,
}

impl Link {
    /// Takes in a packet that goes in `direction`.
    fn arrive(&mut self, now: Nanos, direction: Direction, packet: Packet) {
        for pipeline in &mut self.pipelines {
            pipeline.advance(now);
        }
        if let Some(awake) = self.radio.hear(now, self.busy_until()) {
            for pipeline in &mut self.pipelines {
                pipeline.pause(awake);
            }
        }
        self.pipelines[direction.index()].arrive(now, packet);
    }

    /// When both directions had sent everything; `None` while they have not.
    fn busy_until(&self) -> Option<Nanos> {
        let [one, other] = self.pipelines.each_ref().map(Pipeline::busy_until);
        one.zip(other).map(|(one, other)| one.max(other))
    }
}

/// A running emulator. Not `Send`: make it on the thread that runs it.
#[derive(Debug)]
pub struct Emulator {
    clock: Clock,
    config: Config,
    links: Vec<Link>,
    interfaces: Interfaces,
    pool: Pool,
    scratch: Vec<u8>,
    /// Since the start, and since the last reset.
    lateness: [Lateness; 2],
    triggers: u64,
    receive_errors: u64,
}

impl Emulator {
    /// Brings the links up.
    pub fn start(config: Config) -> Result<Emulator, SetupError> {
        let interfaces = Interfaces::set_up(&config)?;
        let clock = Clock::start();
        let now = clock.now();
        let links = config.links.iter().map(|link| Link {
            name: link.name.clone(),
            pipelines: Direction::ALL.map(|direction| {
                let random = generator(config.seed, &link.name, direction);
                Pipeline::new(now, link.parameters[direction.index()].clone(), random)
            }),
            radio: Radio::new(now, link.sleep),
            timeline: Timeline::new(link.schedule.clone(), now),
        });
        let pool = Pool::default();
        Ok(Emulator {
            clock,
            links: links.collect(),
            interfaces,
            scratch: pool.scratch(),
            pool,
            config,
            lateness: [Lateness::default(); 2],
            triggers: 0,
            receive_errors: 0,
        })
    }

    /// Runs until `stop` becomes readable or is closed at its other end.
    pub fn run(
        &mut self,
        stop: BorrowedFd<'_>,
        mut control: Option<&mut Server>,
    ) -> Result<(), RunError> {
        // Best effort: without it timers are up to 50 us later.
        let _ = nix::sys::prctl::set_timerslack(1);
        device::request_prompt_scheduling();
        let mut ready = Vec::new();
        loop {
            let deadline = self.work();
            if self.wait(stop, control.as_deref(), deadline, &mut ready)? {
                return Ok(());
            }
            if let Some(server) = control.as_deref_mut()
                && ready.get(self.links.len() * 2).copied().unwrap_or(false)
            {
                server.serve(&mut |request| self.answer(request));
            }
            for link in 0..self.links.len() {
                for direction in Direction::ALL {
                    if ready[link * 2 + direction.index()] {
                        self.receive(link, direction);
                    }
                }
            }
        }
    }

    /// The counters.
    pub fn report(&self) -> Report {
        let now = self.clock.now();
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
        let seconds =
            |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        Report {
            version: 1,
            uptime_s: now as f64 / 1e9,
            seed: self.config.seed,
            triggers: self.triggers,
            cpu_user_s: usage.map_or(0.0, |usage| seconds(usage.user_time())),
            cpu_system_s: usage.map_or(0.0, |usage| seconds(usage.system_time())),
            lateness: self.lateness[0].report(),
            lateness_since_reset: self.lateness[1].report(),
            receive_errors: self.receive_errors,
            links: self.links.iter().map(|link| link_report(link, now)).collect(),
        }
    }

    /// Does everything that is due; returns when something will be next.
    fn work(&mut self) -> Option<Nanos> {
        self.run_schedules();
        let mut next: Option<Nanos> = None;
        for (link, devices) in self.links.iter_mut().zip(&self.interfaces.devices) {
            for direction in Direction::ALL {
                let pipeline = &mut link.pipelines[direction.index()];
                let target = &devices[direction.reverse().index()];
                let deadline = deliver(pipeline, target, &self.clock, &mut self.lateness);
                next = earliest(next, deadline);
            }
            next = earliest(next, link.timeline.next_time());
        }
        next
    }

    fn run_schedules(&mut self) {
        let now = self.clock.now();
        for link in &mut self.links {
            while let Some((time, entry)) = link.timeline.pop_due(now) {
                let ScheduleEntry { directions, update, .. } = entry;
                for direction in directions.list() {
                    link.pipelines[direction.index()].apply(time, &update);
                }
            }
        }
    }

    /// Waits for packets, a command or the deadline; true: told to stop. `ready` has the devices in order, then control.
    fn wait(
        &self,
        stop: BorrowedFd<'_>,
        control: Option<&Server>,
        deadline: Option<Nanos>,
        ready: &mut Vec<bool>,
    ) -> Result<bool, RunError> {
        let devices = self.interfaces.devices.iter().flatten();
        let mut descriptors: Vec<PollFd<'_>> = std::iter::once(stop)
            .chain(devices.map(Device::as_fd))
            .chain(control.into_iter().flat_map(Server::descriptors))
            .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN))
            .collect();
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_sub(self.clock.now());
            TimeSpec::from_duration(Duration::from_nanos(left))
        });
        match ppoll(&mut descriptors, timeout, None) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut events = descriptors.iter().map(|descriptor| descriptor.any().unwrap_or(false));
        let stopped = events.next().unwrap_or(false);
        ready.clear();
        ready.extend(events.by_ref().take(self.links.len() * 2));
        ready.push(events.any(|event| event));
        Ok(stopped)
    }

    /// Reads a batch of packets that go in `direction`.
    fn receive(&mut self, link: usize, direction: Direction) {
        let device = &self.interfaces.devices[link][direction.index()];
        let link = &mut self.links[link];
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = self.clock.now();
        for _ in 0..BATCH {
            match device.receive(&mut self.scratch, wall) {
                Ok(Some(received)) => {
                    let buffer = self.pool.keep(&mut self.scratch, received.length);
                    let packet = Packet::new(buffer, device.link_header());
                    // A step of the wall clock must not take packets far back.
                    let age = whole(received.age).min(crate::time::SECOND);
                    link.arrive(now.saturating_sub(age), direction, packet);
                }
                Ok(None) => return,
                Err(_) => {
                    self.receive_errors += 1;
                    return;
                }
            }
        }
    }

    fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Stats { reset } => {
                let report = self.report();
                if reset {
                    self.lateness[1] = Lateness::default();
                }
                Answer::result(&report)
            }
            Request::Trigger => {
                let now = self.clock.now();
                self.triggers += 1;
                let begun =
                    self.links.iter_mut().map(|link| usize::from(link.timeline.trigger(now)));
                let schedules: usize = begun.sum();
                Answer::result(
                    &serde_json::json!({ "at_s": now as f64 / 1e9, "schedules": schedules }),
                )
            }
            Request::Set { link, direction, parameters } => {
                match self.set(&link, direction, &parameters) {
                    Ok(()) => Answer::result(
                        &serde_json::json!({ "at_s": self.clock.now() as f64 / 1e9 }),
                    ),
                    Err(error) => Answer::Refused { error },
                }
            }
        }
    }

    fn set(
        &mut self,
        name: &str,
        directions: Directions,
        written: &WrittenUpdate,
    ) -> Result<(), String> {
        let known =
            || self.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(index) = self.links.iter().position(|link| link.name == name) else {
            return Err(format!("no link is named {name:?}; there are: {}", known()));
        };
        let update = written.check(&self.config.directory).map_err(|error| error.to_string())?;
        let mtu = self.config.links[index].mtu;
        let link = &mut self.links[index];
        for direction in directions.list() {
            let mut together = link.pipelines[direction.index()].parameters().clone();
            together.apply(&update);
            check_together(&together, mtu).map_err(|error| error.to_string())?;
        }
        let now = self.clock.now();
        for direction in directions.list() {
            link.pipelines[direction.index()].apply(now, &update);
        }
        Ok(())
    }
}

/// Writes what is due in one direction; returns when something will be next.
fn deliver(
    pipeline: &mut Pipeline,
    target: &Device,
    clock: &Clock,
    lateness: &mut [Lateness; 2],
) -> Option<Nanos> {
    let mut now = clock.now();
    pipeline.advance(now);
    while let Some((due, frame)) = pipeline.pop_due(now) {
        let taken = target.send(&frame) == Sent::Taken;
        pipeline.sent(&frame, taken);
        for record in lateness.iter_mut() {
            record.record(due, now);
        }
        now = clock.now();
    }
    pipeline.next_deadline()
}

fn earliest(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn link_report(link: &Link, now: Nanos) -> LinkReport {
    let direction = |direction: Direction| {
        let pipeline = &link.pipelines[direction.index()];
        DirectionReport {
            parameters: pipeline.parameters().describe(),
            counters: pipeline.counters(),
            queue_bytes: pipeline.queue_bytes(now),
        }
    };
    LinkReport {
        name: link.name.clone(),
        radio: link.radio.counters(now, link.busy_until()),
        a_to_b: direction(Direction::AToB),
        b_to_a: direction(Direction::BToA),
    }
}
