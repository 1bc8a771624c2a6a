//! Which paths there are to dial, and how each of them follows the machine's interfaces.

use std::collections::BTreeMap;

use fbdt_proto::{PathId, Priority};

use crate::config::PathSpec;
use crate::interfaces::{self, Interface};
use crate::socket::LocalBinding;

/// One path to dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPlan {
    pub(super) id: PathId,
    pub(super) spec: PathSpec,
}

/// The paths of a client: fixed, or whatever interfaces there are.
pub(super) enum Plan {
    Fixed(Vec<PathSpec>),
    Interfaces {
        excluded: Vec<String>,
        backups: Vec<(String, Priority)>,
        /// An interface that comes back gets its number back.
        numbers: BTreeMap<String, u8>,
    },
}

impl Plan {
    pub(super) fn new(
        paths: Vec<PathSpec>,
        excluded: Vec<String>,
        backups: Vec<(String, Priority)>,
    ) -> Self {
        if paths.is_empty() {
            let numbers = BTreeMap::new();
            Self::Interfaces { excluded, backups, numbers }
        } else {
            Self::Fixed(paths)
        }
    }

    /// The paths that could be dialled now.
    pub(super) fn present(&mut self) -> Vec<PathPlan> {
        match self {
            Self::Fixed(specs) => fixed(specs, &interfaces::up()),
            Self::Interfaces { excluded, backups, numbers } => {
                following(&interfaces::usable(), excluded, backups, numbers)
            }
        }
    }

    /// The paths to begin with. Fixed ones are dialled wherever they lead; what is wrong with them
    /// is then reported.
    pub(super) fn initial(&mut self) -> Vec<PathPlan> {
        match self {
            Self::Fixed(specs) => numbered(specs).collect(),
            Self::Interfaces { .. } => self.present(),
        }
    }
}

fn numbered(specs: &[PathSpec]) -> impl Iterator<Item = PathPlan> {
    (0..=u8::MAX)
        .zip(specs)
        .map(|(number, spec)| PathPlan { id: PathId(number), spec: spec.clone() })
}

fn fixed(specs: &[PathSpec], up: &[Interface]) -> Vec<PathPlan> {
    let exists = |spec: &PathSpec| match &spec.local {
        LocalBinding::Any => true,
        LocalBinding::Interface(name) => up.iter().any(|interface| interface.name == *name),
        LocalBinding::Address(own) => {
            // All of 127.0.0.0/8 is there without being listed.
            own.is_loopback() || up.iter().any(|interface| interface.addresses.contains(own))
        }
    };
    numbered(specs).filter(|plan| exists(&plan.spec)).collect()
}

fn following(
    usable: &[Interface],
    excluded: &[String],
    backups: &[(String, Priority)],
    numbers: &mut BTreeMap<String, u8>,
) -> Vec<PathPlan> {
    let mut plans = Vec::new();
    for interface in usable.iter().filter(|i| !excluded.contains(&i.name)) {
        let next = u8::try_from(numbers.len()).ok();
        let number = match numbers.get(&interface.name) {
            Some(number) => *number,
            None => match next {
                Some(number) => {
                    numbers.insert(interface.name.clone(), number);
                    number
                }
                None => continue, // 256 interfaces have had their numbers
            },
        };
        plans.push(PathPlan {
            id: PathId(number),
            spec: PathSpec {
                name: interface.name.clone(),
                local: LocalBinding::Interface(interface.name.clone()),
                server: None,
                priority: backups
                    .iter()
                    .find(|(name, _)| *name == interface.name)
                    .map_or(Priority::PRIMARY, |(_, priority)| *priority),
            },
        });
    }
    plans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::PathPolicies;

    fn interface(name: &str) -> Interface {
        Interface { name: name.into(), addresses: vec!["10.0.0.1".parse().unwrap()] }
    }

    #[test]
    fn an_interface_that_comes_back_keeps_its_number() {
        let mut numbers = BTreeMap::new();
        let mut ids = |names: &[&str]| {
            let usable: Vec<Interface> = names.iter().map(|name| interface(name)).collect();
            following(&usable, &["tun0".into()], &[], &mut numbers)
                .iter()
                .map(|plan| plan.id.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&["tun0", "wifi0", "wigig0"]), [0, 1]);
        assert_eq!(ids(&["wigig0"]), [1]);
        assert_eq!(ids(&["eth0", "wifi0", "wigig0"]), [2, 0, 1]);
    }

    #[test]
    fn f15_an_interface_can_stand_by() {
        let backups = [("wwan0".to_owned(), Priority::BACKUP)];
        let usable = [interface("wifi0"), interface("wwan0")];
        let plans = following(&usable, &[], &backups, &mut BTreeMap::new());
        let priorities: Vec<_> = plans.iter().map(|plan| plan.spec.priority).collect();
        assert_eq!(priorities, [Priority::PRIMARY, Priority::BACKUP]);
        assert_eq!(plans[1].spec.label(&PathPolicies::default()).encode(), "wwan0;backup");
    }

    #[test]
    fn fixed_paths_are_present_while_their_interface_is() {
        let spec = |local| PathSpec { local, ..PathSpec::default() };
        let specs = [
            spec(LocalBinding::Any),
            spec(LocalBinding::Interface("wifi0".into())),
            spec(LocalBinding::Address("10.0.0.1".parse().unwrap())),
            spec(LocalBinding::Address("10.0.0.2".parse().unwrap())),
        ];
        let ids = |up: &[Interface]| fixed(&specs, up).iter().map(|p| p.id.0).collect::<Vec<_>>();
        assert_eq!(ids(&[]), [0]);
        assert_eq!(ids(&[interface("wifi0")]), [0, 1, 2]);
    }
}
