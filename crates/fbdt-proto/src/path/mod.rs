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
pub(crate) use inflight::{Chunk, InFlight};
pub(crate) use limit::RateLimit;
pub(crate) use one_way::{OneWay, forward_delay};
pub(crate) use rate::RateEstimate;
pub use reliability::Reliability;
pub(crate) use scaling::window_factor;
pub(crate) use share::Share;
pub(crate) use state::{CopyReason, PathState, Subflow};
pub use view::{PathView, lead};

use core::time::Duration;

/// What TCP says about one subflow (TCP_INFO); sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubflowSample {
    /// Smoothed RTT.
    pub srtt: Duration,
    /// RTT variation.
    pub rttvar: Duration,
    /// Smallest RTT seen lately; zero if unknown.
    pub min_rtt: Duration,
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold; `u64::MAX` before the first loss, zero if
    /// unknown.
    pub ssthresh: u64,
    /// Maximum segment size.
    pub mss: u32,
    /// Sent and not cumulatively acknowledged.
    pub in_flight: u64,
    /// Of those, what the peer's TCP has by selective acknowledgement.
    pub sacked: u64,
    /// Handed over and not sent: in the socket and in TLS buffers.
    pub unsent: u64,
    /// Acknowledged since the connection began.
    pub acked_total: u64,
    /// TCP's newest delivery-rate sample, bytes per second.
    pub delivery_rate: u64,
    /// Whether that sample was limited by the application, not the network.
    pub app_limited: bool,
    /// Sent since the connection began, retransmissions included.
    pub sent_total: u64,
    /// Retransmitted since the connection began.
    pub retransmitted_total: u64,
    /// Received in order since the connection began.
    pub received_total: u64,
}

impl SubflowSample {
    /// The smallest RTT known, never zero.
    #[must_use]
    pub fn base_rtt(&self) -> Duration {
        let base = if self.min_rtt.is_zero() { self.srtt } else { self.min_rtt };
        base.max(Duration::from_micros(50))
    }

    /// Bytes that the path holds.
    #[must_use]
    pub const fn outstanding(&self) -> u64 {
        self.in_flight + self.unsent
    }
}
