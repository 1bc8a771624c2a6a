//! Which paths there are to dial, and how each of them follows the machine's interfaces.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use fbdt_proto::{PathId, Priority};

use crate::config::{ClientConfig, PathSpec};
use crate::interfaces::{self, Interface};
use crate::socket::LocalBinding;
use crate::unrouted::UnroutedInterfaces;

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
        excluded: Vec<IpAddr>,
        backups: Vec<(String, Priority)>,
        /// An interface that comes back gets its number back.
        numbers: BTreeMap<String, u8>,
        /// Interfaces that were paths, and those that had no route, when last looked at.
        taken: BTreeSet<String>,
        unrouted: UnroutedInterfaces,
    },
}

impl Plan {
    pub(super) fn new(config: &ClientConfig) -> Self {
        if config.paths.is_empty() {
            Self::Interfaces {
                excluded: config.excluded_addresses.clone(),
                backups: config.backup_interfaces.clone(),
                numbers: BTreeMap::new(),
                taken: BTreeSet::new(),
                unrouted: config.unrouted_interfaces.clone(),
            }
        } else {
            Self::Fixed(config.paths.clone())
        }
    }

    /// The paths that could be dialled now, to these servers.
    ///
    /// # Errors
    /// The system does not tell which interfaces there are.
    pub(super) fn present(&mut self, servers: &[IpAddr]) -> io::Result<Vec<PathPlan>> {
        Ok(match self {
            Self::Fixed(specs) => fixed(specs, &interfaces::up()?),
            Self::Interfaces { excluded, backups, numbers, taken, unrouted } => {
                let mut usable = interfaces::usable()?;
                usable.retain(|interface| {
                    !interface.addresses.iter().any(|address| excluded.contains(address))
                });
                let (routed, others) = interfaces::by_route(usable, servers);
                let (usable, without) = keep_taken(routed, others, taken);
                report(&unrouted.replace(without));
                following(&usable, backups, numbers)
            }
        })
    }

    /// The paths to begin with. Fixed ones are dialled wherever they lead; what is wrong with them
    /// is then reported.
    ///
    /// # Errors
    /// As [`Self::present`].
    pub(super) fn initial(&mut self, servers: &[IpAddr]) -> io::Result<Vec<PathPlan>> {
        match self {
            Self::Fixed(specs) => Ok(numbered(specs).collect()),
            Self::Interfaces { .. } => self.present(servers),
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

/// Which interfaces are paths, and which are left out because they have no route. One that is a path
/// stays one while it has an address: routes come and go while a network is renewed.
fn keep_taken(
    mut routed: Vec<Interface>,
    unrouted: Vec<Interface>,
    taken: &mut BTreeSet<String>,
) -> (Vec<Interface>, BTreeSet<String>) {
    let (kept, without): (Vec<Interface>, Vec<Interface>) =
        unrouted.into_iter().partition(|interface| taken.contains(&interface.name));
    routed.extend(kept);
    routed.sort_by(|a, b| a.name.cmp(&b.name));
    *taken = routed.iter().map(|interface| interface.name.clone()).collect();
    (routed, without.into_iter().map(|interface| interface.name).collect())
}

/// Says which interfaces are left out that were not so before.
fn report(new: &[String]) {
    for name in new {
        tracing::info!(
            interface = %name,
            "no path: no route to the server leads through this interface; name it with --path to use \
             it nevertheless"
        );
    }
}

fn following(
    usable: &[Interface],
    backups: &[(String, Priority)],
    numbers: &mut BTreeMap<String, u8>,
) -> Vec<PathPlan> {
    let mut plans = Vec::new();
    for interface in usable {
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
            following(&usable, &[], &mut numbers).iter().map(|plan| plan.id.0).collect::<Vec<_>>()
        };
        assert_eq!(ids(&["wifi0", "wigig0"]), [0, 1]);
        assert_eq!(ids(&["wigig0"]), [1]);
        assert_eq!(ids(&["eth0", "wifi0", "wigig0"]), [2, 0, 1]);
    }

    #[test]
    fn an_interface_without_a_route_is_left_out_until_it_has_one_and_then_stays() {
        let mut taken = BTreeSet::new();
        let mut look = |routed: &[&str], unrouted: &[&str]| {
            let list = |names: &[&str]| names.iter().map(|name| interface(name)).collect();
            let (paths, without) = keep_taken(list(routed), list(unrouted), &mut taken);
            let paths: Vec<String> = paths.into_iter().map(|path| path.name).collect();
            (paths.join(" "), without.into_iter().collect::<Vec<_>>().join(" "))
        };
        let both = |paths: &str, without: &str| (paths.to_owned(), without.to_owned());
        assert_eq!(look(&["wifi0"], &["docker0"]), both("wifi0", "docker0"));
        assert_eq!(look(&["docker0", "wifi0"], &[]), both("docker0 wifi0", ""));
        assert_eq!(look(&["wifi0"], &["docker0"]), both("docker0 wifi0", ""), "it was a path");
        assert_eq!(look(&["wifi0"], &[]), both("wifi0", ""));
        assert_eq!(look(&["wifi0"], &["docker0"]), both("wifi0", "docker0"), "it was gone");
    }

    #[test]
    fn f15_an_interface_can_stand_by() {
        let backups = [("wwan0".to_owned(), Priority::BACKUP)];
        let usable = [interface("wifi0"), interface("wwan0")];
        let plans = following(&usable, &backups, &mut BTreeMap::new());
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
