//! How paths are used: what `--policy` wishes, beside what `--path` and `--backup` say.

use std::collections::BTreeSet;

use fbdt::{ClientConfig, PathPolicy, Priority, name_matches};

use super::setup;
use crate::args::PolicyArg;
use crate::policy::{Keeper, PathWish, PolicyError, Selector};

/// Enters the wishes for the sessions that are dialled with `config`.
///
/// # Errors
/// [`PolicyError`]: of a path that there will not be, or one that cannot be kept.
pub(super) fn grant(
    policies: &[PolicyArg],
    config: &ClientConfig,
    keeper: &Keeper,
) -> Result<(), PolicyError> {
    for PolicyArg { name, change } in policies {
        let selector = Selector::parse(name)?;
        if !matches!(selector, Selector::Name(_)) && config.paths.is_empty() {
            keeper.begin_kind(name, selector, change)?;
            continue;
        }
        let Some(priority) = own_priority(config, name) else {
            let known: Vec<_> = config.paths.iter().map(|path| path.name.clone()).collect();
            return Err(PolicyError::UnknownPath { name: name.clone(), known: known.join(", ") });
        };
        let usual = PathWish { policy: PathPolicy::of_priority(priority), ..PathWish::default() };
        keeper.begin(name, usual, change)?;
    }
    let backups = config.backup_interfaces.iter().map(|(name, _)| name);
    keeper.name(backups.filter(|name| !is_pattern(name)));
    Ok(())
}

fn is_pattern(name: &str) -> bool {
    Selector::parse(name).is_ok_and(|selector| !matches!(selector, Selector::Name(_)))
}

/// Says which interfaces `--backup` and `--policy` name that are not there.
pub(super) fn warn_of_absent(backups: &[String], policies: &[PolicyArg], config: &ClientConfig) {
    if config.paths.is_empty() {
        let named = backups.iter().chain(policies.iter().map(|policy| &policy.name));
        for name in setup::absent_interfaces(named.filter(|name| !is_pattern(name))) {
            tracing::warn!(
                "no interface {name} yet; its settings apply when it appears (`ip -brief link` shows \
                 the names)"
            );
        }
    }
}

/// The priority that `--path` and `--backup` give a path, or without `--path` an interface.
fn own_priority(config: &ClientConfig, name: &str) -> Option<Priority> {
    let path = config.paths.iter().find(|path| path.name == name).map(|path| path.priority);
    let interface = || {
        let mut backups = config.backup_interfaces.iter();
        backups.find(|(pattern, _)| name_matches(pattern, name)).map(|(_, priority)| *priority)
    };
    let usual = || config.paths.is_empty().then_some(Priority::PRIMARY);
    path.or_else(interface).or_else(usual)
}

/// Paths, or without them interfaces, that have another priority of their own than before.
pub(super) fn reprioritised(before: &ClientConfig, now: &ClientConfig) -> Vec<(String, Priority)> {
    let backups = before.backup_interfaces.iter().chain(&now.backup_interfaces);
    let names: BTreeSet<&String> =
        backups.map(|(name, _)| name).chain(now.paths.iter().map(|path| &path.name)).collect();
    let changed = |name: &String| {
        let priority = own_priority(now, name)?;
        (own_priority(before, name) != Some(priority)).then(|| (name.clone(), priority))
    };
    names.into_iter().filter_map(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fbdt::PathSpec;

    fn config(paths: &[(&str, Priority)], backups: &[&str]) -> ClientConfig {
        let secret = "EscYkP6FyA2W7DklTfVzJaXP4TJQ1UBe5fDeQcy12R8GdSq_RILACQ";
        let link = format!("sumrate://192.0.2.1:7443?v=1&insecure=1#c={secret}");
        let mut config = ClientConfig::new(link.parse().unwrap());
        let spec = |(name, priority): &(&str, Priority)| PathSpec {
            name: (*name).to_owned(),
            priority: *priority,
            ..PathSpec::default()
        };
        config.paths = paths.iter().map(spec).collect();
        let backup = |name: &&str| ((*name).to_owned(), Priority::BACKUP);
        config.backup_interfaces = backups.iter().map(backup).collect();
        config
    }

    #[test]
    fn a_reload_knows_which_paths_have_another_priority() {
        let (primary, backup) = (Priority::PRIMARY, Priority::BACKUP);
        let paths = config(&[("wifi", primary), ("lte", primary)], &[]);
        let other = config(&[("wifi", primary), ("lte", backup), ("sat", primary)], &[]);
        assert!(reprioritised(&paths, &paths).is_empty());
        let changed = [("lte".to_owned(), backup), ("sat".to_owned(), primary)];
        assert_eq!(reprioritised(&paths, &other), changed);
        // Without --path, of interfaces.
        let (one, none) = (config(&[], &["wwan0"]), config(&[], &[]));
        assert_eq!(reprioritised(&none, &one), [("wwan0".to_owned(), backup)]);
        assert_eq!(reprioritised(&one, &none), [("wwan0".to_owned(), primary)]);
        assert_eq!(own_priority(&paths, "sat"), None);
    }
}
