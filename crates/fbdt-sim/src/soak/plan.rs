//! What one seed does: a setup, links, and operations in order; data that can
//! be kept in a file.

use std::time::Duration;

use fbdt_proto::{
    Class, Config, Limits, PathPolicy, Priority, Redundancy, SchedulerKind, WindowMode,
};
use serde::{Deserialize, Serialize};

use crate::link::LinkParameters;
use crate::simulation::Scenario;

/// Most paths of one plan, those that are added included.
pub const MOST_PATHS: usize = 8;

/// How both ends are configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Placement of client and server, by name.
    pub placement: [String; 2],
    /// Window mode, by name.
    pub window_mode: String,
    /// Redundancy, by name.
    pub redundancy: String,
    /// Smallest and largest transmission window, KiB.
    pub window_kib: [u64; 2],
    /// Open windows per stream.
    pub window_depth: usize,
    /// Largest frame payload, KiB.
    pub frame_kib: u32,
    /// Receive window of a new stream, of the session, and largest of a stream, KiB.
    pub receive_kib: [u64; 3],
    /// Streams that the peer may have open.
    pub streams: u32,
    /// How long a session lives without a path, ms.
    pub linger_ms: u64,
    /// How often TCP is asked, microseconds.
    pub sample_us: u64,
    /// How far each end's clock is ahead, ms.
    pub clocks_ms: [u64; 2],
}

/// One link, the same in both directions at first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// Rate, kbit/s.
    pub kbps: u64,
    /// Base RTT, microseconds.
    pub rtt_us: u64,
    /// Longest wait in the queue, microseconds.
    pub queue_us: u64,
    /// Loss of segments, per million.
    pub loss_ppm: u32,
    /// Priority of its path: 0 primary, 1 to 9 backup.
    #[serde(default, skip_serializing_if = "is_primary")]
    pub backup: u8,
    /// Classes that its path never carries, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<usize>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes it so
const fn is_primary(backup: &u8) -> bool {
    *backup == 0
}

/// Which directions of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
    /// Both.
    Both,
}

impl Way {
    pub(crate) const fn up_down(self) -> (bool, bool) {
        (!matches!(self, Self::Down), !matches!(self, Self::Up))
    }
}

/// One thing that an application, a network or a machine does. Numbers of
/// paths and streams are taken modulo what there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs)] // the fields' names say it
pub enum Operation {
    /// A stream is opened.
    Open { client: bool, class: usize },
    /// Bytes are written.
    Write { client: bool, stream: usize, bytes: u64 },
    /// A message is sent, worth nothing after so many ms; 0: for ever.
    Message { client: bool, stream: usize, bytes: u64, ms: u64 },
    /// A stream's writer says that this was all.
    Finish { client: bool, stream: usize },
    /// A stream's writer gives up.
    ResetStream { client: bool, stream: usize },
    /// A stream's reader gives up.
    StopStream { client: bool, stream: usize },
    /// A stream's handle is dropped.
    ReleaseStream { client: bool, stream: usize },
    /// The session is closed.
    Close { client: bool },
    /// Time passes.
    Advance { us: u64 },
    /// So many segments per million are lost.
    Loss { path: usize, way: Way, ppm: u32 },
    /// What is sent waits.
    Stall { path: usize, way: Way, ms: u64 },
    /// Nothing gets through.
    Blackout { path: usize },
    /// Nothing gets through in one direction.
    AsymmetricCut { path: usize, up: bool },
    /// A proxy on the way acknowledges bytes and keeps them.
    Held { path: usize, way: Way },
    /// The path's links work again.
    Heal { path: usize },
    /// Connections are reset at both ends.
    Reset { path: usize },
    /// Connections are reset; one end learns of it from the other.
    HalfReset { path: usize, client: bool },
    /// The path's delay jumps, so that others overtake it.
    Reorder { path: usize, way: Way, us: u64 },
    /// The path's rate changes.
    Rate { path: usize, way: Way, kbps: u64 },
    /// A reader takes so many bytes each 5 ms; 0: none at all.
    SlowReader { client: bool, bytes: u64 },
    /// A writer writes so many bytes each 5 ms.
    SlowWriter { client: bool, bytes: u64 },
    /// Readers and writers go at full speed again.
    FullSpeed { client: bool },
    /// A clock is suddenly later.
    ClockJump { client: bool, ms: u64 },
    /// A process does not run for a while.
    Suspend { client: bool, ms: u64 },
    /// A path is added.
    AddPath { link: LinkPlan },
    /// A path's interface disappears; both ends see it, or the client only.
    RemovePath { path: usize, told: bool },
    /// A path's interface comes back.
    RestorePath { path: usize },
    /// A path comes back with another address over another link.
    ReaddressPath { path: usize, link: LinkPlan },
    /// The server is killed and started anew.
    RestartPeer,
    /// A reader stops, and the peer writes more than may be held.
    FillMemory { client: bool },
}

/// What one seed does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Seeds the links' losses.
    pub seed: u64,
    /// How both ends are configured.
    pub setup: Setup,
    /// The paths that there are from the start.
    pub links: Vec<LinkPlan>,
    /// What happens.
    pub operations: Vec<Operation>,
}

/// A plan that names what does not exist.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A policy's name.
    #[error("{field} is {value:?}, which does not exist; use one of {allowed}")]
    Name {
        /// The field of [`Setup`].
        field: &'static str,
        /// The name found there.
        value: String,
        /// Names that exist.
        allowed: String,
    },
    /// No path, or too many.
    #[error("{0} links; use 1 to {MOST_PATHS}")]
    Links(usize),
    /// A configuration that a session refuses.
    #[error(transparent)]
    Config(#[from] fbdt_proto::ConfigError),
}

pub(crate) const WINDOW_MODES: [WindowMode; 2] = [WindowMode::Pipelined, WindowMode::Thesis];
pub(crate) const REDUNDANCIES: [Redundancy; 4] =
    [Redundancy::ExpectedArrival, Redundancy::RttWait, Redundancy::Off, Redundancy::Suspect];

fn named<T: Copy>(
    field: &'static str,
    value: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, PlanError> {
    all.iter().copied().find(|item| name(*item) == value).ok_or_else(|| PlanError::Name {
        field,
        value: value.to_owned(),
        allowed: all.iter().map(|item| name(*item)).collect::<Vec<_>>().join(", "),
    })
}

impl Setup {
    fn config(&self, end: usize) -> Result<Config, PlanError> {
        let [stream, session, max_stream] = self.receive_kib.map(|kib| kib << 10);
        let scheduler =
            named("placement", &self.placement[end], &SchedulerKind::ALL, SchedulerKind::name)?;
        Ok(Config {
            scheduler,
            // A baseline fills the TCP window, as published.
            commit: scheduler.commit(),
            window_mode: named("window_mode", &self.window_mode, &WINDOW_MODES, WindowMode::name)?,
            redundancy: named("redundancy", &self.redundancy, &REDUNDANCIES, Redundancy::name)?,
            window: (self.window_kib[0] << 10, self.window_kib[1] << 10),
            window_depth: self.window_depth,
            limits: Limits {
                max_frame: self.frame_kib << 10,
                stream_window: stream,
                session_window: session,
                max_streams: self.streams,
            },
            max_stream_window: max_stream,
            linger: Duration::from_millis(self.linger_ms),
            ..Config::default()
        })
    }
}

impl LinkPlan {
    fn policy(&self) -> PathPolicy {
        let class = |number: &usize| Class::ALL[number % Class::ALL.len()];
        PathPolicy {
            never: self.never.iter().map(class).collect(),
            ..PathPolicy::of_priority(Priority::new(self.backup).unwrap_or_default())
        }
    }

    pub(crate) fn parameters(&self) -> LinkParameters {
        LinkParameters {
            rate: self.kbps as f64 * 125.0,
            delay: Duration::from_micros(self.rtt_us / 2),
            queue: Duration::from_micros(self.queue_us),
            loss: f64::from(self.loss_ppm) / 1e6,
            ..LinkParameters::new(0.0, 0.0)
        }
    }
}

impl Plan {
    pub(crate) fn scenario(&self, log: bool) -> Result<Scenario, PlanError> {
        if !(1..=MOST_PATHS).contains(&self.links.len()) {
            return Err(PlanError::Links(self.links.len()));
        }
        Ok(Scenario {
            seed: self.seed,
            links: self.links.iter().map(LinkPlan::parameters).collect(),
            policies: self.links.iter().map(LinkPlan::policy).collect(),
            config: (self.setup.config(0)?, self.setup.config(1)?),
            tcp: crate::TcpGrowth::default(),
            paced: false,
            log,
            sample: Duration::from_micros(self.setup.sample_us.max(100)),
            clocks: self.setup.clocks_ms.map(Duration::from_millis),
            tidy: true,
            lingering_allowed: true,
            probes: self.seed.is_multiple_of(2),
        })
    }
}
