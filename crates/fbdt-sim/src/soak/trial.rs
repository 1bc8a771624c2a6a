//! One plan from start to end, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fbdt_proto::{Class, MessageOptions, OpenError, StreamId};

use super::fault::Fault;
use super::plan::{MOST_PATHS, Operation, Plan, PlanError};
use crate::coverage::Coverage;
use crate::link::LinkChange;
use crate::simulation::Simulation;
use crate::violation::Violation;

/// Once the faults are over, everything arrives within this time.
const SETTLING: Duration = Duration::from_secs(100);
/// Streams that are over are forgotten within this time.
const REAPING: Duration = Duration::from_secs(5);
/// A paced reader or writer acts this often.
const PACE: Duration = Duration::from_millis(5);
/// More than this is not written to fill a window.
const MOST_FILL: u64 = 1 << 20;

/// What one plan did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was broken, if anything.
    pub violation: Option<Violation>,
    /// How often each fault was injected, where there was something for it to meet.
    pub faults: BTreeMap<Fault, u64>,
    /// Bytes that applications read.
    pub delivered: u64,
    /// Virtual time that passed.
    pub elapsed: Duration,
    /// From the end of the faults to the first byte that a waiting reader got.
    pub recovery: Duration,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Which parts of the rules were at work.
    pub coverage: Coverage,
    /// Schedulers, by name, that spread new bytes over two or more paths.
    pub placed: BTreeSet<&'static str>,
    /// Everything that happened, if asked for.
    pub log: String,
}

/// Runs a plan; `log` keeps everything that happens.
///
/// # Errors
/// A plan that names what does not exist. A broken invariant is in the outcome.
pub fn run_plan(plan: &Plan, log: bool) -> Result<Outcome, PlanError> {
    let simulation = Simulation::new(plan.scenario(log)?)?;
    let mut trial =
        Trial { simulation, plan, paths: plan.links.len(), outcome: Outcome::default() };
    // A panic is a violation like any other; what it leaves is only reported.
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| trial.run()));
    let violation = run.unwrap_or_else(|panic| Err(Violation::Panic(words(&panic)))).err();
    let Trial { mut simulation, mut outcome, .. } = trial;
    simulation.look();
    outcome.violation = violation;
    outcome.delivered = simulation.delivered().iter().sum();
    outcome.elapsed = simulation.elapsed();
    outcome.coverage = simulation.coverage();
    outcome.placed.clone_from(simulation.placed());
    outcome.sessions += 1;
    outcome.log = simulation.log().to_owned();
    Ok(outcome)
}

fn words(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default().to_owned()
}

struct Trial<'a> {
    simulation: Simulation,
    plan: &'a Plan,
    paths: usize,
    outcome: Outcome,
}

impl Trial<'_> {
    fn run(&mut self) -> Result<(), Violation> {
        for operation in &self.plan.operations {
            self.next_session()?;
            if let Some(fault) = operation.fault().filter(|_| self.meets_something(operation)) {
                *self.outcome.faults.entry(fault).or_default() += 1;
            }
            self.simulation.look();
            self.apply(operation)?;
        }
        self.settle()?;
        self.probe()
    }

    /// Whether there is something that the operation can happen to: a stream to close, say.
    fn meets_something(&self, operation: &Operation) -> bool {
        let stands = |path: usize| self.simulation.path_stands(path % self.paths);
        match *operation {
            Operation::Finish { client, .. }
            | Operation::ResetStream { client, .. }
            | Operation::StopStream { client, .. }
            | Operation::ReleaseStream { client, .. } => {
                !self.simulation.streams(client).is_empty()
            }
            Operation::FillMemory { client } => !self.simulation.streams(!client).is_empty(),
            Operation::AddPath { .. } => self.paths < MOST_PATHS,
            Operation::Reset { path } | Operation::HalfReset { path, .. } => stands(path).1,
            Operation::Loss { path, .. }
            | Operation::Stall { path, .. }
            | Operation::Blackout { path }
            | Operation::AsymmetricCut { path, .. }
            | Operation::Held { path, .. }
            | Operation::Reorder { path, .. }
            | Operation::Rate { path, .. }
            | Operation::RemovePath { path, .. } => stands(path).0,
            _ => true,
        }
    }

    /// Where a session has ended, the client opens another one.
    fn next_session(&mut self) -> Result<(), Violation> {
        if self.simulation.is_over() {
            self.outcome.sessions += 1;
            self.simulation.reconnect().map_err(|error| Violation::Refused(error.to_string()))?;
        }
        Ok(())
    }

    fn apply(&mut self, operation: &Operation) -> Result<(), Violation> {
        match *operation {
            Operation::Advance { us } => return self.simulation.run(Duration::from_micros(us)),
            Operation::Open { client, class } => self.open(client, class)?,
            Operation::Close { client } => self.simulation.close(client, 0x100),
            Operation::ClockJump { client, ms } => {
                self.simulation.jump_clock(client, Duration::from_millis(ms));
            }
            Operation::Suspend { client, ms } => {
                self.simulation.suspend(client, Duration::from_millis(ms));
            }
            Operation::RestartPeer => self.simulation.restart_server(),
            Operation::SlowReader { client, bytes } => {
                self.simulation.pace_reading(client, Some((bytes, PACE)));
                self.simulation.set_reading(client, bytes > 0);
            }
            Operation::SlowWriter { client, bytes } => {
                self.simulation.pace_writing(client, Some((bytes, PACE)));
            }
            Operation::FullSpeed { client } => self.full_speed(client),
            Operation::FillMemory { client } => self.fill_memory(client),
            Operation::Write { client, stream, .. }
            | Operation::Message { client, stream, .. }
            | Operation::Finish { client, stream }
            | Operation::ResetStream { client, stream }
            | Operation::StopStream { client, stream }
            | Operation::ReleaseStream { client, stream } => {
                self.use_stream(operation, client, stream);
            }
            _ => self.change_path(operation),
        }
        Ok(())
    }

    fn open(&mut self, client: bool, class: usize) -> Result<(), Violation> {
        match self.simulation.open(client, Class::ALL[class % Class::ALL.len()]) {
            Ok(_) | Err(OpenError::Limit(_) | OpenError::Closed) => Ok(()),
        }
    }

    fn use_stream(&mut self, operation: &Operation, client: bool, index: usize) {
        let streams = self.simulation.streams(client);
        if streams.is_empty() {
            return;
        }
        let id: StreamId = streams[index % streams.len()];
        let simulation = &mut self.simulation;
        match *operation {
            Operation::Write { bytes, .. } => simulation.write(client, id, bytes),
            Operation::Message { bytes, ms, .. } => {
                let lifetime = (ms > 0).then_some(Duration::from_millis(ms));
                let options = MessageOptions { lifetime, ..MessageOptions::default() };
                // Too many may wait, or the stream be over.
                let _ = simulation.send_message(client, id, bytes as usize, options);
            }
            Operation::Finish { .. } => simulation.finish(client, id),
            Operation::ResetStream { .. } => simulation.abandon(client, id),
            Operation::StopStream { .. } => simulation.stop(client, id),
            _ => simulation.release(client, id),
        }
    }

    fn change_path(&mut self, operation: &Operation) {
        let simulation = &mut self.simulation;
        let seed = self.plan.seed.wrapping_add(self.paths as u64 * 77);
        let count = self.paths;
        let mut change = |path: usize, change: LinkChange, (up, down): (bool, bool)| {
            simulation.change(path % count, &change, up, down);
        };
        const BOTH: (bool, bool) = (true, true);
        match operation {
            Operation::Loss { path, way, ppm } => {
                change(*path, LinkChange::Loss(f64::from(*ppm) / 1e6), way.up_down());
            }
            Operation::Stall { path, way, ms } => {
                change(*path, LinkChange::Stall(Duration::from_millis(*ms)), way.up_down());
            }
            Operation::Blackout { path } => change(*path, LinkChange::Blackout(true), BOTH),
            Operation::AsymmetricCut { path, up } => {
                change(*path, LinkChange::Blackout(true), (*up, !*up));
            }
            Operation::Held { path, way } => change(*path, LinkChange::Held(true), way.up_down()),
            Operation::Reorder { path, way, us } => {
                change(*path, LinkChange::Delay(Duration::from_micros(*us)), way.up_down());
            }
            Operation::Rate { path, way, kbps } => {
                change(*path, LinkChange::Rate(*kbps as f64 * 125.0), way.up_down());
            }
            Operation::Heal { path } => {
                change(*path, LinkChange::Blackout(false), BOTH);
                change(*path, LinkChange::Held(false), BOTH);
                change(*path, LinkChange::Loss(0.0), BOTH);
            }
            Operation::Reset { path } => simulation.reset_path(path % count),
            Operation::HalfReset { path, client } => {
                simulation.reset_path_at(path % count, *client);
            }
            Operation::RemovePath { path, told: true } => simulation.remove_path(path % count),
            Operation::RemovePath { path, told: false } => {
                simulation.lose_interface(path % count);
            }
            Operation::RestorePath { path } => simulation.restore_path(path % count),
            Operation::ReaddressPath { path, link } => {
                simulation.readdress_path(path % count, link.parameters(), seed);
            }
            Operation::AddPath { link } if count < MOST_PATHS => {
                simulation.add_path(link.parameters(), seed);
                self.paths += 1;
            }
            _ => {}
        }
    }

    fn full_speed(&mut self, client: bool) {
        self.simulation.pace_reading(client, None);
        self.simulation.pace_writing(client, None);
        self.simulation.set_reading(client, true);
    }

    /// One end stops reading, and the other writes more than may be held.
    fn fill_memory(&mut self, client: bool) {
        let bytes = (self.plan.setup.receive_kib[1] << 10).min(MOST_FILL);
        self.simulation.set_reading(client, false);
        for id in self.simulation.streams(!client) {
            self.simulation.write(!client, id, bytes);
        }
    }

    /// Ends all faults and waits for everything.
    fn settle(&mut self) -> Result<(), Violation> {
        for path in 0..self.paths {
            for change in [
                LinkChange::Blackout(false),
                LinkChange::Held(false),
                LinkChange::Loss(0.0),
                LinkChange::Rate(2.5e7),
                LinkChange::Delay(Duration::from_millis(5)),
                LinkChange::Stall(Duration::ZERO),
            ] {
                self.simulation.change(path, &change, true, true);
            }
            self.simulation.restore_path(path);
        }
        for client in [true, false] {
            self.full_speed(client);
        }
        self.simulation.finish_all();
        self.measure_recovery()?;
        self.finish_everything(SETTLING)
    }

    fn measure_recovery(&mut self) -> Result<(), Violation> {
        if self.simulation.is_done() {
            return Ok(());
        }
        let (start, before) = (self.simulation.elapsed(), self.simulation.delivered());
        self.simulation
            .run_until(SETTLING, |s| s.delivered() != before || s.is_done() || s.is_over())?;
        if !self.simulation.is_ending() {
            self.outcome.recovery = self.simulation.elapsed() - start;
        }
        Ok(())
    }

    /// All streams end, or the session does if it was told to.
    fn finish_everything(&mut self, time: Duration) -> Result<(), Violation> {
        let start = self.simulation.elapsed();
        let ended = |s: &Simulation| if s.is_ending() { s.is_over() } else { s.is_done() };
        let done = self.simulation.run_until(time, ended)?;
        if !done {
            let waited_ms = (self.simulation.elapsed() - start).as_millis() as u64;
            return Err(Violation::Missing { waited_ms, missing: self.simulation.missing() });
        }
        Ok(())
    }

    /// Nothing has leaked: streams are forgotten, and more than a window goes
    /// both ways once more.
    fn probe(&mut self) -> Result<(), Violation> {
        self.check_leaks()?;
        self.next_session()?;
        let bytes = (self.plan.setup.receive_kib[1] << 10).min(MOST_FILL / 4) + 1000;
        for client in [true, false] {
            self.write_more(client, bytes)?;
        }
        self.simulation.finish_all();
        self.finish_everything(SETTLING)?;
        self.check_leaks()
    }

    /// Opens a stream, as soon as that is allowed, and writes to it.
    fn write_more(&mut self, client: bool, bytes: u64) -> Result<(), Violation> {
        let start = self.simulation.elapsed();
        loop {
            match self.simulation.open(client, Class::Interactive) {
                Ok(id) => {
                    self.simulation.write(client, id, bytes);
                    return Ok(());
                }
                Err(error) if self.simulation.elapsed() - start > REAPING => {
                    return Err(Violation::Refused(error.to_string()));
                }
                Err(_) => self.simulation.run(Duration::from_millis(10))?,
            }
        }
    }

    fn check_leaks(&mut self) -> Result<(), Violation> {
        if self.simulation.is_over() {
            return Ok(());
        }
        self.simulation.run_until(REAPING, |s| s.check_leaks().is_ok())?;
        self.simulation.check_leaks()
    }
}
