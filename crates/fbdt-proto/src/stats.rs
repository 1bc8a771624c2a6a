//! Counters and gauges for people and metrics.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use fbdt_units::{Class, Direction, Instant, PathId, StreamId};
use fbdt_wire::PathPolicy;

use crate::path::Health;

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
    /// It has sent as fast as it may (F15).
    RateCap,
    /// It has carried its share and waits for paths that have not (F15).
    Weight,
    /// What waits is of classes that the user keeps off it (F15).
    KeptOff,
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
    /// Every reason with one word for machines and words for reports, in the order of the variants.
    const TABLE: [(Self, &'static str, &'static str); 14] = [
        (Self::Sending, "sending", "sending"),
        (Self::NoSubflow, "no-subflow", "not connected"),
        (Self::Suspect, "suspect", "no answer, probing"),
        (Self::Standby, "standby", "standby: a path of a better priority is active"),
        (Self::Unmeasured, "unmeasured", "just connected"),
        (Self::CommitLimit, "commit-limit", "link is full"),
        (Self::RateCap, "rate-cap", "at its rate limit"),
        (Self::Weight, "weight", "its share by weight is reached"),
        (Self::KeptOff, "kept-off", "pending data is of classes that it never carries"),
        (Self::NothingToSend, "nothing-to-send", "nothing to send"),
        (Self::FlowControl, "flow-control", "the receiving program reads too slowly"),
        (Self::TooLate, "too-late", "too slow for the present data"),
        (Self::WindowsFull, "windows-full", "all pending data is in flight"),
        (Self::LeftToAnother, "left-to-another", "the scheduler gives the data to another path"),
    ];

    /// Every reason, in the order in which times are counted.
    pub const ALL: [Self; Self::TABLE.len()] = {
        let mut all = [Self::Sending; Self::TABLE.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = Self::TABLE[index].0;
            index += 1;
        }
        all
    };

    /// One word for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    /// Words for reports.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        Self::TABLE[self as usize].2
    }
}

/// Why a path sends nothing, and for how long it has been so for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdleTimes {
    /// The reason now.
    pub now: WhyIdle,
    since: Instant,
    /// Time by reason, in the order of [`WhyIdle::ALL`], up to the last entry.
    pub spent: [Duration; WhyIdle::ALL.len()],
}

impl IdleTimes {
    /// A path that begins now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, ..Self::default() }
    }

    /// Another reason, or the same, from `now` on.
    pub(crate) fn enter(&mut self, now: Instant, why: WhyIdle) {
        self.spent[self.now as usize] += now.saturating_since(self.since);
        self.since = now;
        self.now = why;
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
    /// How the user wants it to be used (F15).
    pub policy: PathPolicy,
    /// From which end it sends.
    pub direction: Direction,
    /// Why it sends no data now.
    pub why_idle: WhyIdle,
    /// For how long it was so, by reason (order of [`WhyIdle::ALL`]), up to the last entry.
    pub waited: [Duration; WhyIdle::ALL.len()],
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
    /// Paths with which it is thought to share a bottleneck (F17).
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
    /// Bytes that TCP carried in both directions, retransmissions included, headers not.
    pub carried: u64,
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
    /// That class is guessed from how the application behaves (F11).
    pub class_guessed: bool,
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
    /// Its messages (F16).
    pub messages: MessageStats,
}

/// What became of messages (F16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageStats {
    /// Given to a path, each once.
    pub sent: u64,
    /// Acknowledged by the peer.
    pub acknowledged: u64,
    /// Dropped at this end: their time was over, or their stream.
    pub dropped: u64,
    /// Received, each once.
    pub received: u64,
    /// Received a second time.
    pub duplicate: u64,
}

/// What one class has cost and carried (F11), streams' bytes and messages together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// The class.
    pub class: Class,
    /// Streams of it that are open now.
    pub streams: u64,
    /// Bytes sent for the first time.
    pub new_bytes: u64,
    /// Copies that a path sent by choice: of overdue bytes, and where it had nothing better to do.
    /// The class's budget bounds them.
    pub chosen_bytes: u64,
    /// Bytes sent again because their path was lost or suspect, or a full window waited for them.
    pub repaired_bytes: u64,
    /// Second copies of messages that the program wants sent twice whatever that costs.
    pub asked_bytes: u64,
    /// Copies that the scheduler's own rule asks for.
    pub scheduled_bytes: u64,
    /// Bytes received, each once.
    pub received_bytes: u64,
    /// Bytes received a second time.
    pub duplicate_bytes: u64,
}

impl ClassStats {
    /// Bytes sent a second time, for whatever reason.
    #[must_use]
    pub const fn redundant_bytes(&self) -> u64 {
        self.chosen_bytes + self.repaired_bytes + self.asked_bytes + self.scheduled_bytes
    }
}

/// What has become of a part of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// No path has been given it.
    Unsent,
    /// A path carries it.
    Carried(PathId),
    /// It arrived.
    Arrived,
    /// It has not arrived; who carries it is known to the other end.
    Missing,
}

/// One stream's window as it closes, from its lowest missing byte to its highest known one, in
/// equal parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowPicture {
    /// The stream.
    pub stream: StreamId,
    /// Whether this end sends it.
    pub sending: bool,
    /// Its bytes.
    pub range: Range<u64>,
    /// Its parts, lowest first.
    pub cells: Vec<Cell>,
}

/// A session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionStats {
    /// Every path, by number.
    pub paths: Vec<PathStats>,
    /// Every open stream, by number.
    pub streams: Vec<StreamStats>,
    /// Every class, in the order of [`Class::ALL`].
    pub classes: [ClassStats; Class::ALL.len()],
    /// All messages, also of streams that are over.
    pub messages: MessageStats,
    /// The windows that have most under way, of a few streams.
    pub windows: Vec<WindowPicture>,
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
    /// Name of the coupling (F17).
    pub coupling: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_in_their_order_and_have_names() {
        for (index, why) in WhyIdle::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, index, "{why:?}");
            assert!(why.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
        }
        let names: alloc::collections::BTreeSet<_> = WhyIdle::ALL.map(WhyIdle::name).into();
        assert_eq!(names.len(), WhyIdle::ALL.len());
    }

    #[test]
    fn time_is_counted_by_reason() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut times = IdleTimes::new(at(10));
        times.enter(at(12), WhyIdle::CommitLimit);
        times.enter(at(13), WhyIdle::CommitLimit);
        times.enter(at(20), WhyIdle::Sending);
        assert_eq!(times.now, WhyIdle::Sending);
        let spent = |why: WhyIdle| times.spent[why as usize].as_millis();
        assert_eq!((spent(WhyIdle::Sending), spent(WhyIdle::CommitLimit)), (2, 8));
    }
}
