//! Whether paths over one bottleneck are coupled, and what windows are like.

/// What paths that share a bottleneck take of it together (F15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CouplingMode {
    /// Each path what its own TCP takes.
    #[default]
    Off,
    /// As much as one TCP.
    Fair,
}

impl CouplingMode {
    /// The name used in flags and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Fair => "fair",
        }
    }
}

/// How the congestion windows of this end's subflows move (F14), as far as
/// coupling has to know: one TCP is one of their kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowGrowth {
    /// As CUBIC's.
    #[default]
    Cubic,
    /// By additive increase and halving.
    Reno,
    /// As CUBIC's, but a path whose loss suggests it gets bbr.
    Auto,
    /// In another way (bbr has no window that falls by loss, LIA and its like
    /// are coupled already): such paths are never coupled here.
    Other,
}
