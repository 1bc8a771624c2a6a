//! FBDT in virtual time: two [`fbdt_proto::Session`]s in one thread, over
//! emulated TCP subflows whose links have a rate, a delay, a queue, loss,
//! blackouts and traces, and if asked for jitter, token buckets, policers,
//! bursts of losses, rate steps and radio sleep ([`Impairments`]). Several
//! paths, and plain TCPs beside them, may share a bottleneck. [`PlainPath`] is
//! one TCP over one path without FBDT.
//!
//! The same seed and the same commands give the same event log, byte for
//! byte. After every event the invariants of the protocol are checked
//! ([`Violation`]).

use fbdt_proto::Instant;

mod application;
mod coverage;
mod delivery_rate;
mod growth;
mod link;
mod plain;
mod simulation;
pub mod soak;
mod subflow;
mod violation;

pub use coverage::{Coverage, Mark};
pub use growth::TcpGrowth;
pub use link::{Impairments, LinkChange, LinkParameters, Sleep};
pub use plain::{PlainOptions, PlainPath};
pub use simulation::{Arrival, Scenario, Simulation};
pub use violation::Violation;

/// Where virtual time begins.
const START: Instant = Instant::from_nanos(1_000_000_000);
