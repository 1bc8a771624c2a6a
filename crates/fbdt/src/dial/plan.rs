//! Which paths there are to dial, and how each of them follows the machine's interfaces.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use fbdt_proto::{PathId, Priority};

use crate::config::{ClientConfig, PathSpec};
use crate::interfaces::{self, Interface, PathInterfaces, name_matches};
use crate::left_out::{LeftOutInterfaces, WhyLeftOut};
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
        choice: Choice,
        backups: Vec<(String, Priority)>,
        /// An interface that comes back gets its number back.
        numbers: BTreeMap<String, u8>,
        /// Interfaces that were paths, and those that were not, when last looked at.
        taken: BTreeSet<String>,
        left_out: LeftOutInterfaces,
        decides: Option<Arc<dyn PathInterfaces>>,
    },
}

/// Which interfaces may be paths, whatever their routes.
pub(super) struct Choice {
    /// Those with one of these addresses are not, and nobody is told: tunnels of this program.
    excluded: Vec<IpAddr>,
    not_wanted: Vec<String>,
    /// Those that may be tunnels.
    wanted: Vec<String>,
}

impl Choice {
    /// Leaves out what is not to be a path, and says why.
    fn apply(
        &self,
        usable: Vec<Interface>,
        tunnels: &BTreeMap<String, String>,
    ) -> (Vec<Interface>, BTreeMap<String, WhyLeftOut>) {
        let mut left_out = BTreeMap::new();
        let mut chosen = Vec::new();
        for interface in usable {
            let is_listed = |list: &[String]| list.contains(&interface.name);
            let is_not_wanted =
                self.not_wanted.iter().any(|pattern| name_matches(pattern, &interface.name));
            if interface.addresses.iter().any(|address| self.excluded.contains(address)) {
                continue;
            }
            let why = match tunnels.get(&interface.name) {
                _ if is_not_wanted => WhyLeftOut::NotWanted,
                Some(kind) if !is_listed(&self.wanted) => WhyLeftOut::Tunnel(kind.clone()),
                _ => {
                    chosen.push(interface);
                    continue;
                }
            };
            left_out.insert(interface.name, why);
        }
        (chosen, left_out)
    }
}

impl Plan {
    pub(super) fn new(config: &ClientConfig) -> Self {
        if config.paths.is_empty() {
            Self::Interfaces {
                choice: Choice {
                    excluded: config.excluded_addresses.clone(),
                    not_wanted: config.excluded_interfaces.clone(),
                    wanted: config.wanted_interfaces.clone(),
                },
                backups: config.backup_interfaces.clone(),
                numbers: BTreeMap::new(),
                taken: BTreeSet::new(),
                left_out: config.left_out.clone(),
                decides: config.path_interfaces.clone(),
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
            Self::Interfaces { choice, backups, numbers, taken, left_out, decides } => {
                let (usable, mut without) = choice.apply(interfaces::usable()?, &tunnels());
                let (routed, others) = interfaces::by_route(usable, servers);
                let (usable, unrouted) = keep_taken(routed, others, taken);
                without.extend(unrouted.into_iter().map(|name| (name, WhyLeftOut::NoRoute)));
                report(&left_out.replace(without));
                if let Some(decides) = decides {
                    decides.found(&interfaces::describe(&usable));
                }
                following(&usable, backups, numbers)
            }
        })
    }

    /// Where paths may leave this machine, to ask there for the addresses of servers.
    pub(super) fn bindings(&self) -> Vec<LocalBinding> {
        let found: Vec<LocalBinding> = match self {
            Self::Fixed(specs) => specs.iter().map(|spec| spec.local.clone()).collect(),
            Self::Interfaces { choice, .. } => {
                let usable = interfaces::usable().unwrap_or_default();
                let (usable, _) = choice.apply(usable, &tunnels());
                let names = usable.into_iter().map(|interface| interface.name);
                names.map(LocalBinding::Interface).collect()
            }
        };
        // The system's resolver is asked wherever paths may come from later.
        if found.is_empty() { vec![LocalBinding::Any] } else { found }
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

/// Which interfaces are tunnels; none where the system does not tell.
fn tunnels() -> BTreeMap<String, String> {
    interfaces::tunnels().unwrap_or_else(|error| {
        tracing::debug!(%error, "interfaces cannot be told from tunnels");
        BTreeMap::new()
    })
}

/// Says which interfaces are left out that were not so before.
fn report(new: &[(String, WhyLeftOut)]) {
    for (name, why) in new {
        match why {
            WhyLeftOut::NotWanted => tracing::debug!(interface = %name, "no path: {why}"),
            _ => tracing::info!(
                interface = %name,
                "no path: {why}; `--path NAME={name}` uses it nevertheless"
            ),
        }
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
                    .find(|(pattern, _)| name_matches(pattern, &interface.name))
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
    fn tunnels_are_paths_where_they_are_named_and_what_is_not_wanted_is_none() {
        let choice = Choice {
            excluded: vec!["10.0.0.7".parse().unwrap()],
            not_wanted: vec!["eth1".to_owned(), "wg1".to_owned()],
            wanted: vec!["wg0".to_owned(), "wg1".to_owned()],
        };
        let own = Interface { name: "sumrate0".into(), addresses: choice.excluded.clone() };
        let names = ["eth0", "eth1", "tailscale0", "wg0", "wg1"];
        let usable = names.iter().map(|name| interface(name)).chain([own]).collect();
        let kind = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
        let tunnels = [
            kind("tailscale0", "tun"),
            kind("wg0", "wireguard"),
            kind("wg1", "wireguard"),
            kind("sumrate0", "tun"),
        ];
        let (chosen, left_out) = choice.apply(usable, &tunnels.into());
        let chosen: Vec<_> = chosen.iter().map(|interface| interface.name.as_str()).collect();
        assert_eq!(chosen, ["eth0", "wg0"]);
        let left_out: Vec<_> = left_out.iter().map(|(name, why)| (&name[..], why.name())).collect();
        let expected = [("eth1", "not-wanted"), ("tailscale0", "tunnel"), ("wg1", "not-wanted")];
        assert_eq!(left_out, expected, "its own device is not worth a word");
    }

    #[test]
    fn f15_an_interface_can_stand_by() {
        let backups = [("ww?n*".to_owned(), Priority::BACKUP)];
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
