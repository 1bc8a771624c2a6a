//! What comes out of a draw: of a session, and of a plain TCP over one path.

use std::time::Duration;

use fbdt_proto::{Class, Config, SessionStats, StreamId};
use fbdt_sim::{PlainPath, Simulation};
use serde::{Deserialize, Serialize};

use crate::draw::{Draw, Work};
use crate::stage::{Alone, Stage, Timeline, beginning, plain, seconds, session};
use crate::{messages, transfers};

/// Deliveries are looked at this often; a stall is known to this precision.
pub(crate) const STEP: Duration = Duration::from_millis(1);
/// Bytes that are always enough to send.
const ENDLESS: u64 = 1 << 40;

/// What came out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Bytes that arrived per second, each counted once, from when the work began.
    pub goodput_mbps: f64,
    /// Longest time without delivery.
    pub stall_ms: f64,
    /// 99th percentile of the time from a byte's arrival to its delivery; 0 for a plain TCP.
    pub in_order_p99_ms: f64,
    /// Bytes sent a second time over all bytes sent.
    pub copies: f64,
    /// Mean time of short transfers.
    pub transfer_ms: f64,
    /// Median time from writing to delivery, of messages and a paced stream.
    pub latency_p50_ms: f64,
    /// 99th percentile of the same.
    pub latency_p99_ms: f64,
    /// Why the run ended early: an invariant that broke; the numbers above are zero then.
    pub violation: String,
}

/// What carries the work.
pub(crate) trait Bearer: Stage {
    /// Begins a transfer.
    fn begin(&mut self) -> Result<(), String>;
    /// The program writes so many bytes more.
    fn write(&mut self, bytes: u64);
    /// Bytes that the receiving program has.
    fn delivered(&self) -> u64;
    /// Bytes that the receiver has, also out of order.
    fn arrived(&self) -> u64;
    /// Sends a message; says whether it was taken.
    fn send_message(&mut self, bytes: u64) -> bool;
    /// Messages that have arrived, by their number.
    fn messages(&self, from: usize) -> Vec<u64>;
}

impl Bearer for Alone {
    fn begin(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn write(&mut self, bytes: u64) {
        self.tcp.write(bytes);
    }

    fn delivered(&self) -> u64 {
        self.tcp.delivered()
    }

    fn arrived(&self) -> u64 {
        self.tcp.delivered()
    }

    fn send_message(&mut self, bytes: u64) -> bool {
        self.tcp.write(bytes);
        true
    }

    fn messages(&self, _from: usize) -> Vec<u64> {
        Vec::new()
    }
}

/// A session, and the stream that it works with now.
pub(crate) struct Session {
    pub(crate) simulation: Simulation,
    upload: bool,
    class: Class,
    stream: Option<StreamId>,
}

impl Session {
    fn new(draw: &Draw, base: &Config, log: bool) -> Result<Self, String> {
        let class = match draw.work {
            Work::BulkDown | Work::BulkUp => Class::Background,
            Work::Short { .. } => Class::Interactive,
            Work::Stream { .. } | Work::Messages { .. } => Class::Streaming,
        };
        let (simulation, upload) = (session(draw, base, log)?, draw.work.is_upload());
        Ok(Self { simulation, upload, class, stream: None })
    }

    fn receiver(&self) -> SessionStats {
        let [client, server] = self.simulation.stats();
        if self.upload { server } else { client }
    }

    /// The sending end's numbers.
    pub(crate) fn sender(&self) -> SessionStats {
        let [client, server] = self.simulation.stats();
        if self.upload { client } else { server }
    }
}

impl Stage for Session {
    fn run(&mut self, time: Duration) -> Result<(), fbdt_sim::Violation> {
        self.simulation.run(time)
    }

    fn elapsed(&self) -> Duration {
        self.simulation.elapsed()
    }

    fn change(&mut self, path: usize, change: &fbdt_sim::LinkChange) {
        Stage::change(&mut self.simulation, path, change);
    }
}

impl Bearer for Session {
    fn begin(&mut self) -> Result<(), String> {
        if let Some(stream) = self.stream.take() {
            self.simulation.finish(self.upload, stream);
            self.simulation.finish(!self.upload, stream);
        }
        let stream = self.simulation.open(self.upload, self.class).map_err(|e| e.to_string())?;
        self.stream = Some(stream);
        Ok(())
    }

    fn write(&mut self, bytes: u64) {
        if let Some(stream) = self.stream {
            self.simulation.write(self.upload, stream, bytes);
        }
    }

    fn delivered(&self) -> u64 {
        self.simulation.delivered()[usize::from(self.upload)]
    }

    fn arrived(&self) -> u64 {
        self.receiver().received_bytes
    }

    fn send_message(&mut self, bytes: u64) -> bool {
        let Some(stream) = self.stream else { return false };
        // Its number is eight bytes of it.
        let size = usize::try_from(bytes.saturating_sub(8)).unwrap_or(0);
        let options = fbdt_proto::MessageOptions::default();
        self.simulation.send_message(self.upload, stream, size, options).is_ok()
    }

    fn messages(&self, from: usize) -> Vec<u64> {
        self.simulation.messages()[from..].iter().map(|arrival| arrival.number).collect()
    }
}

/// Runs a draw as a session with these rules.
#[must_use]
pub fn run_session(draw: &Draw, base: &Config) -> Outcome {
    watch_session(draw, base, false, |_| {}).0
}

/// As [`run_session`]; `each` sees the session after each step. With its log, if wanted.
pub(crate) fn watch_session(
    draw: &Draw,
    base: &Config,
    log: bool,
    mut each: impl FnMut(&Session),
) -> (Outcome, String) {
    let mut session = match Session::new(draw, base, log) {
        Ok(session) => session,
        Err(error) => return (failed(&error), String::new()),
    };
    let outcome = measure(draw, &mut session, &mut each);
    let copies = {
        let sender = session.sender();
        let redundant = sender.redundant_bytes as f64;
        redundant / (redundant + sender.new_bytes as f64).max(1.0)
    };
    let streams = session.receiver().streams;
    let in_order = streams.iter().map(|stream| stream.in_order_delay[1]).max().unwrap_or_default();
    let outcome = outcome.map_or_else(
        |error| failed(&error),
        |outcome| Outcome { copies, in_order_p99_ms: in_order.as_secs_f64() * 1e3, ..outcome },
    );
    (outcome, session.simulation.log().to_owned())
}

/// Runs a draw as a plain TCP over the path with this number. Another `chance` has other losses and
/// jitter.
#[must_use]
pub fn run_alone(draw: &Draw, path: usize, chance: u64) -> Outcome {
    let tcp: PlainPath = plain(draw, path, chance);
    measure(draw, &mut Alone { tcp, path }, &mut |_| {}).unwrap_or_else(|error| failed(&error))
}

fn failed(error: &str) -> Outcome {
    Outcome { violation: error.to_owned(), ..Outcome::default() }
}

fn measure<B: Bearer>(
    draw: &Draw,
    bearer: &mut B,
    each: &mut impl FnMut(&B),
) -> Result<Outcome, String> {
    let mut timeline = Timeline::of(draw);
    let begins = beginning(draw);
    timeline.run_until(bearer, begins, begins, |_| false).map_err(|error| error.to_string())?;
    match draw.work {
        Work::BulkDown | Work::BulkUp => bulk(draw, bearer, &mut timeline, each),
        Work::Short { bytes } => transfers::measure(draw, bearer, &mut timeline, bytes, each),
        Work::Stream { bytes, every_ms } | Work::Messages { bytes, every_ms } => {
            let every = seconds(every_ms / 1e3);
            messages::measure(draw, bearer, &mut timeline, (bytes, every), each)
        }
    }
}

fn bulk<B: Bearer>(
    draw: &Draw,
    bearer: &mut B,
    timeline: &mut Timeline,
    each: &mut impl FnMut(&B),
) -> Result<Outcome, String> {
    bearer.begin()?;
    bearer.write(ENDLESS);
    let begins = bearer.elapsed();
    let (mut stalls, end) =
        (Stalls::new(begins, bearer.delivered()), begins + seconds(draw.time_s));
    timeline
        .run_until(bearer, end, STEP, |bearer| {
            stalls.note(bearer.elapsed(), bearer.delivered());
            each(bearer);
            false
        })
        .map_err(|error| error.to_string())?;
    stalls.end(end);
    let goodput_mbps = bearer.arrived() as f64 * 8e-6 / draw.time_s;
    Ok(Outcome { goodput_mbps, stall_ms: stalls.longest_ms(), ..Outcome::default() })
}

/// The longest time without delivery.
pub(crate) struct Stalls {
    since: Duration,
    delivered: u64,
    longest: Duration,
}

impl Stalls {
    pub(crate) const fn new(now: Duration, delivered: u64) -> Self {
        Self { since: now, delivered, longest: Duration::ZERO }
    }

    pub(crate) fn note(&mut self, now: Duration, delivered: u64) {
        if delivered > self.delivered {
            self.end(now);
            (self.since, self.delivered) = (now, delivered);
        }
    }

    pub(crate) fn end(&mut self, now: Duration) {
        self.longest = self.longest.max(now.saturating_sub(self.since));
    }

    pub(crate) fn longest_ms(&self) -> f64 {
        self.longest.as_secs_f64() * 1e3
    }
}
