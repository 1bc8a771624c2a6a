//! What is known of each path: rate, RTT, reliability, health, and how much
//! it may hold (F7, F9).

mod ack_aggregation;
mod congestion;
mod eta;
mod health;
mod inflight;
mod limit;
mod model;
mod one_way;
mod rate;
mod redials;
mod reliability;
mod response;
mod room;
mod scaling;
mod share;
mod state;
#[cfg(any(test, feature = "testing"))]
#[allow(unreachable_pub)] // the feature exports it
pub(crate) mod testing;
mod view;

pub(crate) use congestion::suggested_congestion_control;
pub use health::Health;
pub(crate) use health::{Answers, Progress};
pub(crate) use inflight::{Chunk, settle};
pub(crate) use limit::RateLimit;
pub(crate) use one_way::{OneWay, forward_delay};
pub(crate) use rate::RateEstimate;
pub use reliability::Reliability;
pub(crate) use scaling::window_factor;
pub(crate) use share::Share;
pub(crate) use state::{CopyReason, PathState, Subflow};
pub use view::{PathView, lead};
