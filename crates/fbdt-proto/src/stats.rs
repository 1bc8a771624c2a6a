//! Counters and gauges for people and metrics.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::path::Health;
use crate::units::{Class, Direction, PathId, Priority, StreamId};

/// Why a path sends no data now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhyIdle {
    /// It is sending.
    #[default]
    Sending,
    /// It has no subflow.
    NoSubflow,
    /// It is suspect: only probes go out.
    Suspect,
    /// A path of a better priority is active (F15).
    Standby,
    /// TCP has not said anything of it yet.
    Unmeasured,
    /// It holds as much as it may (F7).
    CommitLimit,
    /// No stream has unsent bytes.
    NothingToSend,
    /// The peer's limits allow no more.
    FlowControl,
    /// Its bytes would arrive after the others have sent everything there is
    /// room for (F3b).
    TooLate,
    /// All windows are open and handed over (F5).
    WindowsFull,
    /// The scheduler's rule leaves the bytes to another path.
    LeftToAnother,
}

impl WhyIdle {
    /// Words for reports.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::NoSubflow => "no subflow",
            Self::Suspect => "suspect: silent for too long, only probes go out",
            Self::Standby => "stands by: a path of a better priority is active",
            Self::Unmeasured => "just connected: TCP has not measured it yet",
            Self::CommitLimit => "holds as much as it may",
            Self::NothingToSend => "nothing to send",
            Self::FlowControl => "the receiver's limit is reached",
            Self::TooLate => "its bytes would come later than the others' can do it",
            Self::WindowsFull => "all windows are open and handed over",
            Self::LeftToAnother => "the scheduler leaves the bytes to another path",
        }
    }
}

/// One path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStats {
    /// The path.
    pub id: PathId,
    /// The client's name for it.
    pub name: String,
    /// Whether it can be relied on.
    pub health: Health,
    /// How it is used beside the others (F15).
    pub priority: Priority,
    /// From which end it sends.
    pub direction: Direction,
    /// Why it sends no data now.
    pub why_idle: WhyIdle,
    /// Estimated rate of the link, bytes per second.
    pub rate: f64,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// Smallest RTT.
    pub min_rtt: Duration,
    /// Bytes that it holds (commit).
    pub commit: u64,
    /// Most bytes that it may hold.
    pub commit_limit: u64,
    /// Paths with which it is thought to share a bottleneck (F16).
    pub shares_with: Vec<PathId>,
    /// Stream bytes sent for the first time.
    pub new_bytes: u64,
    /// Stream bytes sent again because their subflow was lost.
    pub resent_lost: u64,
    /// Copies of bytes that a suspect path owes.
    pub copied_suspect: u64,
    /// Copies of overdue bytes.
    pub copied_overdue: u64,
    /// Copies sent because this path had nothing else to do.
    pub copied_idle: u64,
    /// Copies that the scheduler's own rule asks for.
    pub copied_scheduled: u64,
    /// Stream bytes received, duplicates included.
    pub received: u64,
    /// Of those, what had been received before.
    pub duplicate: u64,
    /// Share of TCP's bytes that it sent again, over all subflows.
    pub retransmitted_share: f64,
    /// Subflows that it has had.
    pub subflows: u64,
    /// Times it became suspect.
    pub suspected: u64,
}

impl PathStats {
    /// Stream bytes sent a second time, for whatever reason.
    #[must_use]
    pub const fn redundant(&self) -> u64 {
        self.resent_lost
            + self.copied_suspect
            + self.copied_overdue
            + self.copied_idle
            + self.copied_scheduled
    }
}

/// One stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamStats {
    /// The stream.
    pub id: StreamId,
    /// Its traffic class.
    pub class: Class,
    /// Bytes written by the application.
    pub written: u64,
    /// Bytes of those that the peer acknowledged in order.
    pub acknowledged: u64,
    /// Bytes received in order.
    pub received: u64,
    /// Memory held for receiving, in bytes.
    pub receive_memory: u64,
    /// Most bytes ever held out of order.
    pub receive_buffer_peak: u64,
    /// Time from arrival to delivery: median, 99th percentile, maximum.
    pub in_order_delay: [Duration; 3],
    /// Longest time between two deliveries.
    pub longest_stall: Duration,
    /// Offset that the peer may be sent up to.
    pub send_limit: u64,
    /// Open transmission windows.
    pub open_windows: usize,
}

/// A session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionStats {
    /// Every path, by number.
    pub paths: Vec<PathStats>,
    /// Every open stream, by number.
    pub streams: Vec<StreamStats>,
    /// Streams opened so far, by this end and by the peer.
    pub opened: (u64, u64),
    /// Stream bytes sent for the first time.
    pub new_bytes: u64,
    /// Stream bytes sent a second time.
    pub redundant_bytes: u64,
    /// Stream bytes received, each once.
    pub received_bytes: u64,
    /// Stream bytes received a second time.
    pub duplicate_bytes: u64,
    /// Memory held for receiving, in bytes.
    pub receive_memory: u64,
    /// Most bytes that any stream ever held out of order.
    pub receive_buffer_peak: u64,
    /// Name of the scheduler.
    pub scheduler: &'static str,
    /// Name of the coupling (F16).
    pub coupling: &'static str,
}
