//! The schedulers by name, and what of the transport's own rules each runs
//! with. FBDT's own is in `schedule`, the others are in the crate `fbdt-baselines`.

use super::Redundancy;

/// Which bytes a path sends next (F3b), by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchedulerKind {
    /// Each path's bytes where delivery will be when they arrive.
    #[default]
    JustInTime,
    /// The paper's: forward from the front, backward from segment tops.
    TwoEnded,
    /// The lowest RTT with room first; blockers are sent again and punished.
    MinRtt,
    /// As minRTT, but a slow path waits where it would block a fast one.
    Blest,
    /// As minRTT, but a slow path waits where the fast one is done earlier.
    Ecf,
    /// Bytes assigned ahead, in the order of their arrival.
    Daps,
    /// Each segment queued where it is expected to arrive first.
    Otias,
    /// The lowest RTT with room first, and nothing else.
    LowestRttFirst,
    /// A fixed ratio of two paths, searched by the rate that it gives.
    MuSher,
    /// Every path with room in turn.
    RoundRobin,
    /// All bytes on all paths.
    Redundant,
}

/// Up to what a path takes bytes (F7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitRule {
    /// Rate x RTT where the RTT shows a queue.
    #[default]
    Rate,
    /// The TCP window alone, as in a kernel.
    Window,
}

impl SchedulerKind {
    /// All of them, the product's own first.
    pub const ALL: [Self; 11] = [
        Self::JustInTime,
        Self::TwoEnded,
        Self::MinRtt,
        Self::Blest,
        Self::Ecf,
        Self::Daps,
        Self::Otias,
        Self::LowestRttFirst,
        Self::MuSher,
        Self::RoundRobin,
        Self::Redundant,
    ];

    /// The name used in flags and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::JustInTime => "just-in-time",
            Self::TwoEnded => "two-ended",
            Self::MinRtt => "minrtt",
            Self::Blest => "blest",
            Self::Ecf => "ecf",
            Self::Daps => "daps",
            Self::Otias => "otias",
            Self::LowestRttFirst => "lrf",
            Self::MuSher => "musher",
            Self::RoundRobin => "round-robin",
            Self::Redundant => "redundant",
        }
    }

    /// What it does, in a line.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::JustInTime => "Each path sends the bytes that will be needed when they arrive",
            Self::TwoEnded => {
                "The forward path from the window's front, the others from its end backwards"
            }
            Self::MinRtt => {
                "The lowest RTT with room first; bytes that block the window are resent"
            }
            Self::Blest => "As minrtt, but a path waits if it would block a faster one",
            Self::Ecf => "As minrtt, but a path waits if a faster one finishes earlier",
            Self::Daps => "Windows assigned ahead in the order of arrival",
            Self::Otias => "Each segment on the path where it is expected to arrive first",
            Self::LowestRttFirst => "The lowest RTT with room first, and nothing else",
            Self::MuSher => "A ratio of two paths, adapted to the measured rate",
            Self::RoundRobin => "Every path with room in turn",
            Self::Redundant => "All bytes on all paths",
        }
    }

    /// Whether it is one of FBDT's own; the others are baselines.
    #[must_use]
    pub const fn is_fbdt(self) -> bool {
        matches!(self, Self::JustInTime | Self::TwoEnded)
    }

    /// When second copies are sent, unless told otherwise: a baseline's bytes
    /// are taken over from a path that fell silent, as MPTCP does after a
    /// timeout, and what else it sends twice is its own decision.
    #[must_use]
    pub const fn redundancy(self) -> Redundancy {
        if self.is_fbdt() { Redundancy::ExpectedArrival } else { Redundancy::Suspect }
    }

    /// Up to what a path takes bytes, unless told otherwise: baselines fill
    /// the TCP window, as published.
    #[must_use]
    pub const fn commit(self) -> CommitRule {
        if self.is_fbdt() { CommitRule::Rate } else { CommitRule::Window }
    }
}
