//! Which paths take no more together than one of them would (F14).

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
