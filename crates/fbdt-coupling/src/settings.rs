//! Which paths take no more together than one of them would, as configured.
//!
//! Rules: F14, F17.

use alloc::string::String;
use alloc::vec::Vec;

/// The paths whose windows are scaled, because they share a bottleneck. Which do is told, not found
/// out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SharedBottleneck {
    /// None: every path has the whole of its TCP window.
    #[default]
    None,
    /// All paths of the session.
    All,
    /// The paths of these names.
    Paths(Vec<String>),
}

impl SharedBottleneck {
    /// Whether the path of this name is one of them.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Paths(names) => names.iter().any(|name| name == path),
        }
    }
}

/// What paths that share a bottleneck take of it together (F17).
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
