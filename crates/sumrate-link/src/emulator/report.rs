//! The emulator's counters as JSON.

use serde::Serialize;

use super::lateness::LatenessReport;
use crate::config::parameters::Description;
use crate::direction::counters::Counters;
use crate::radio::RadioCounters;

/// Everything that the emulator counted. `version` changes when a field changes its meaning or goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// 1.
    pub version: u32,
    /// Seconds since the start.
    pub uptime_s: f64,
    /// Seed of every random decision.
    pub seed: u64,
    /// Triggers so far.
    pub triggers: u64,
    /// Processor time of the emulator's process, seconds.
    pub cpu_user_s: f64,
    /// The same in the kernel.
    pub cpu_system_s: f64,
    /// Lateness since the start.
    pub lateness: LatenessReport,
    /// Lateness since the last `stats --reset`.
    pub lateness_since_reset: LatenessReport,
    /// Packets that a device gave up with an error.
    pub receive_errors: u64,
    /// Each link.
    pub links: Vec<LinkReport>,
}

/// One link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// Its radio.
    pub radio: RadioCounters,
    /// From a to b.
    pub a_to_b: DirectionReport,
    /// From b to a.
    pub b_to_a: DirectionReport,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionReport {
    /// Parameters in force.
    pub parameters: Description,
    /// Counts since the start.
    pub counters: Counters,
    /// Bytes that wait now.
    pub queue_bytes: u64,
}
