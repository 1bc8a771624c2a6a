//! Interfaces that a client leaves alone, for whoever asks why they are no paths.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why an interface that is up is no path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyLeftOut {
    /// No route to the server leads through it: one of containers, or a radio without a gateway.
    NoRoute,
    /// Its packets leave by another interface: the kind of tunnel, as the kernel calls it.
    Tunnel(String),
    /// The configuration says so.
    NotWanted,
}

impl WhyLeftOut {
    /// One word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoRoute => "no-route",
            Self::Tunnel(_) => "tunnel",
            Self::NotWanted => "not-wanted",
        }
    }
}

impl fmt::Display for WhyLeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoute => f.write_str("no route to the server leads through it"),
            Self::Tunnel(kind) => {
                write!(f, "it is a tunnel ({kind}), whose packets leave by another interface")
            }
            Self::NotWanted => f.write_str("it is excluded"),
        }
    }
}

/// Interfaces that are up but are no paths, each with the reason. Clones are handles to the same list;
/// a client whose paths are named has none.
#[derive(Debug, Clone, Default)]
pub struct LeftOutInterfaces(Arc<Mutex<BTreeMap<String, WhyLeftOut>>>);

impl LeftOutInterfaces {
    /// As they were when interfaces or routes last changed, by name.
    pub fn list(&self) -> Vec<(String, WhyLeftOut)> {
        self.lock().iter().map(|(name, why)| (name.clone(), why.clone())).collect()
    }

    /// Takes over what was found; returns those that are new, or have another reason.
    pub(crate) fn replace(&self, found: BTreeMap<String, WhyLeftOut>) -> Vec<(String, WhyLeftOut)> {
        let mut known = self.lock();
        let is_new = |(name, why): &(&String, &WhyLeftOut)| known.get(*name) != Some(*why);
        let new = found.iter().filter(is_new).map(|(name, why)| (name.clone(), why.clone()));
        let new = new.collect();
        *known = found;
        new
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, WhyLeftOut>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_once_until_it_is_back() {
        let left_out = LeftOutInterfaces::default();
        let found = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_owned(), WhyLeftOut::NoRoute)).collect()
        };
        let said = |names: &[&str]| -> Vec<String> {
            let new = left_out.clone().replace(found(names));
            new.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(said(&["docker0"]), ["docker0"]);
        assert_eq!(said(&["br0", "docker0"]), ["br0"]);
        assert_eq!(left_out.list().len(), 2);
        assert!(said(&["br0"]).is_empty());
        assert_eq!(said(&["br0", "docker0"]), ["docker0"]);
        let tunnel = WhyLeftOut::Tunnel("wireguard".to_owned());
        let other = BTreeMap::from([("br0".to_owned(), tunnel.clone())]);
        assert_eq!(left_out.replace(other), [("br0".to_owned(), tunnel)]);
    }
}
