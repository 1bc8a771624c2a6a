//! Simulation at scale: a seed is a plan of work and faults; many seeds are a
//! soak; what fails is shrunk and kept as data.

mod fault;
mod many;
mod plan;
mod shrink;
mod swarm;
mod trial;

pub use fault::Fault;
pub use many::{Failure, FaultTotals, MarkTotals, Report, SchedulerTotals, Soak};
pub use plan::{LinkPlan, MOST_PATHS, Operation, Plan, PlanError, Setup, Way};
pub use shrink::{shrink, shrink_while};
pub use trial::{Outcome, run_plan};
