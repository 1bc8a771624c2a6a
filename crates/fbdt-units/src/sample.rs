//! What the kernel measures of a subflow.

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
