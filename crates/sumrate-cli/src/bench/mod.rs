//! The measurement of `sumrate bench`, on both ends. Goodput is counted where the bytes arrive; each
//! end observes its own session, and the server reports what it saw over the control stream.

mod client;
mod host;
mod messages;
mod meter;
mod observer;
mod pattern;
mod report;
mod run;
mod transfer;

pub use client::{BenchError, measure};
pub use host::BenchHost;
pub use messages::{
    MESSAGE_BENCH_SCHEMA, MESSAGE_LEAST, MESSAGE_MOST, MessageBenchReport, MessagePlan,
    measure_messages,
};
pub use report::{
    BENCH_SCHEMA, BenchPath, BenchReport, CpuReport, EndReport, IntervalReport, SendingReport,
    StreamGoodput, WindowReport,
};
pub use run::{Plan, PlanError, STREAMS_MAX};
