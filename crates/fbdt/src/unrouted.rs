//! Interfaces that a client leaves alone, for whoever asks why they are no paths.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names of the interfaces that are up but are no paths, because no route to the server leads through
/// them: those of containers, or a radio without a gateway. Clones are handles to the same set; a
/// client whose paths are named has none.
#[derive(Debug, Clone, Default)]
pub struct UnroutedInterfaces(Arc<Mutex<BTreeSet<String>>>);

impl UnroutedInterfaces {
    /// As they were when interfaces or routes last changed, by name.
    pub fn names(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    /// Takes over what was found; returns those that are new.
    pub(crate) fn replace(&self, found: BTreeSet<String>) -> Vec<String> {
        let mut known = self.lock();
        let new = found.difference(&known).cloned().collect();
        *known = found;
        new
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_once_until_it_is_back() {
        let unrouted = UnroutedInterfaces::default();
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(unrouted.clone().replace(set(&["docker0"])), ["docker0"]);
        assert_eq!(unrouted.replace(set(&["docker0", "wwan0"])), ["wwan0"]);
        assert_eq!(unrouted.names(), ["docker0", "wwan0"]);
        assert!(unrouted.replace(set(&["wwan0"])).is_empty());
        assert_eq!(unrouted.replace(set(&["docker0"])), ["docker0"]);
    }
}
