//! FBDT in virtual time: two [`fbdt_proto::Session`]s in one thread, over
//! emulated TCP subflows whose links have a rate, a delay, a queue, loss,
//! blackouts and traces. Several paths, and plain TCPs beside them, may share
//! a bottleneck.
//!
//! The same seed and the same commands give the same event log, byte for
//! byte. After every event the invariants of the protocol are checked
//! ([`Violation`]).

mod application;
mod coverage;
mod delivery_rate;
mod growth;
mod link;
mod simulation;
pub mod soak;
mod subflow;
mod violation;

pub use coverage::{Coverage, Mark};
pub use growth::TcpGrowth;
pub use link::{LinkChange, LinkParameters};
pub use simulation::{Arrival, Scenario, Simulation};
pub use violation::Violation;
