//! Interfaces that become paths while a client runs: what was wished for their kind is done, and one that
//! nobody named stands by where a named one is missing.

use std::collections::BTreeSet;

use fbdt::{PathInterface, PathInterfaces, PathPolicy, Priority};

use super::{Keeper, PathChange, PathWish, PolicyError, Selector};

/// Policies for kinds of interfaces, and those that have been seen.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    kinds: Vec<(String, Selector, PathChange)>,
    /// Interfaces that settings name.
    named: BTreeSet<String>,
    seen: BTreeSet<String>,
    /// Those that have the policy of their kind.
    treated: BTreeSet<String>,
    /// Whether those were looked at that there were at the beginning.
    begun: bool,
}

/// How an interface is to be used that has appeared.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// As was wished for its kind, whose quota it shares.
    Kind(String, PathChange),
    /// It stands by, because this one is missing.
    StandIn(String),
}

impl Newcomers {
    /// Settings name an interface.
    pub(super) fn name(&mut self, name: &str) {
        self.named.insert(name.to_owned());
    }

    /// A policy is for every interface of a kind.
    pub(super) fn add(&mut self, text: &str, selector: Selector, change: PathChange) {
        self.kinds.push((text.to_owned(), selector, change));
    }

    /// These are all paths now: how those are to be used that are new.
    pub(super) fn meet(&mut self, interfaces: &[PathInterface]) -> Vec<(String, Treatment)> {
        let is_there = |name: &&String| interfaces.iter().any(|other| other.name == **name);
        let missing = self.named.iter().find(|name| !is_there(name)).cloned();
        let (begun, mut treated) = (std::mem::replace(&mut self.begun, true), Vec::new());
        let is_present = |name: &String| interfaces.iter().any(|other| other.name == *name);
        // Another one may come back under the name of one that is gone.
        self.seen.retain(is_present);
        self.treated.retain(is_present);
        for interface in interfaces {
            let name = &interface.name;
            let is_new = self.seen.insert(name.clone());
            if self.named.contains(name) || self.treated.contains(name) {
                continue;
            }
            // The last one that fits counts, as where a setting is written twice.
            let kind = self.kinds.iter().rev().find(|(_, selector, _)| selector.is_for(interface));
            let treatment = match (kind, &missing) {
                // Its gateway may be known later than its name.
                (Some((text, _, change)), _) => {
                    self.treated.insert(name.clone());
                    Treatment::Kind(text.clone(), *change)
                }
                (None, Some(missing)) if begun && is_new => Treatment::StandIn(missing.clone()),
                _ => continue,
            };
            treated.push((name.clone(), treatment));
        }
        treated
    }
}

impl Keeper {
    /// A policy from the command line for every interface of a kind.
    ///
    /// # Errors
    /// [`PolicyError`]
    pub fn begin_kind(
        &self,
        text: &str,
        selector: Selector,
        change: &PathChange,
    ) -> Result<(), PolicyError> {
        self.check(&change.apply(PathWish::default())?)?;
        self.newcomers().add(text, selector, *change);
        Ok(())
    }

    /// Interfaces that settings name beside policies.
    pub fn name<'a>(&self, names: impl IntoIterator<Item = &'a String>) {
        let mut newcomers = self.newcomers();
        names.into_iter().for_each(|name| newcomers.name(name));
    }
}

impl PathInterfaces for Keeper {
    fn found(&self, interfaces: &[PathInterface]) {
        let treated = self.newcomers().meet(interfaces);
        for (name, treatment) in treated {
            let standby = PathChange { priority: Some(1), ..PathChange::default() };
            let (account, change) = match treatment {
                Treatment::Kind(kind, change) => {
                    tracing::info!("{}", change.words(&format!("{name} (as {kind})")));
                    (kind, change)
                }
                Treatment::StandIn(missing) => {
                    tracing::warn!(
                        "{name} is new and {missing} is missing: {name} is a backup; `sumrate path set \
                         {name} --priority primary` changes that, --policy NAME* names both"
                    );
                    (name.clone(), standby)
                }
            };
            let usual = PathWish {
                policy: PathPolicy::of_priority(Priority::PRIMARY),
                ..PathWish::default()
            };
            if let Err(error) = self.begin_of(&name, account, usual, &change) {
                tracing::warn!("{name} is used like any other path: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fbdt::PathPolicies;

    fn interfaces(names: &[&str]) -> Vec<PathInterface> {
        let interface = |name: &&str| PathInterface {
            name: (*name).to_owned(),
            driver: None,
            gateways: Vec::new(),
        };
        names.iter().map(interface).collect()
    }

    #[test]
    fn a_phone_that_comes_back_under_another_name_has_the_quota_of_its_kind() {
        let directory = tempfile::tempdir().unwrap();
        let table = PathPolicies::default();
        let keeper = Keeper::new(table.clone(), Some(directory.path().to_owned()));
        let change = PathChange::parse("backup,metered,quota=1000").unwrap();
        keeper.begin_kind("enx*", Selector::parse("enx*").unwrap(), &change).unwrap();
        keeper.found(&interfaces(&["wifi0", "enx01"]));
        let wanted = change.apply(PathWish::default()).unwrap().policy;
        assert_eq!((table.get("enx01"), table.get("wifi0")), (Some(wanted), None));
        keeper.use_up("enx01", 1000);
        assert!(table.is_withheld("enx01"));
        keeper.found(&interfaces(&["wifi0"]));
        keeper.found(&interfaces(&["enx02", "wifi0"]));
        assert_eq!(table.get("enx02"), Some(wanted));
        assert!(table.is_withheld("enx02"), "they share the quota");
        let without = Keeper::new(PathPolicies::default(), None);
        assert!(without.begin_kind("enx*", Selector::parse("enx*").unwrap(), &change).is_err());
    }

    #[test]
    fn one_that_nobody_named_stands_by_where_a_named_one_is_missing() {
        let mut newcomers = Newcomers::default();
        newcomers.name("enx01");
        assert_eq!(newcomers.meet(&interfaces(&["wifi0"])), [], "it was there before");
        let stands_in = |name: &str| (name.to_owned(), Treatment::StandIn("enx01".to_owned()));
        assert_eq!(newcomers.meet(&interfaces(&["enx02", "wifi0"])), [stands_in("enx02")]);
        assert_eq!(newcomers.meet(&interfaces(&["enx02", "wifi0"])), [], "once");
        assert_eq!(newcomers.meet(&interfaces(&["enx01", "eth0", "wifi0"])), [], "none is missing");
        let mut nothing_named = Newcomers::default();
        nothing_named.meet(&interfaces(&["wifi0"]));
        assert_eq!(nothing_named.meet(&interfaces(&["eth0", "wifi0"])), []);
    }
}
