//! Which tables and keys there are: the commands that have `--config`, and their flags.

use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::args::Cli;

/// The positional argument that can stand in the file: others say what to do once.
const LINK: &str = "link";
/// The flag that marks a command as one that reads the file.
const MARK: &str = "config";

/// A command that reads the file.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name, which is the table's.
    pub name: String,
    pub(super) command: Command,
}

/// A flag that can stand in the file.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its long name, or a positional argument's.
    pub name: String,
    arg: Arg,
}

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// `true` or `false`.
    Switch,
    /// How often it is given.
    Count,
    /// One value.
    One,
    /// One or a list of them.
    Many,
}

/// Every table but that of the hosts.
pub fn tables() -> Vec<Table> {
    let mut cli = Cli::command();
    cli.build();
    let marked = |command: &Command| command.get_arguments().any(|arg| arg.get_id() == MARK);
    cli.get_subcommands()
        .filter(|command| marked(command))
        .map(|command| Table { name: command.get_name().to_owned(), command: command.clone() })
        .collect()
}

impl Table {
    /// Its keys, as `--help` has them.
    pub fn keys(&self) -> Vec<Key> {
        let absent = [MARK, "help", "version"];
        let arguments = self.command.get_arguments();
        arguments
            .filter(|arg| !absent.contains(&arg.get_id().as_str()))
            .filter(|arg| !arg.is_positional() || arg.get_id() == LINK)
            .map(|arg| Key { name: name(arg), arg: arg.clone() })
            .collect()
    }

    /// The key of a name; also of an older name of the flag.
    pub(super) fn key(&self, wanted: &str) -> Option<Key> {
        let is_old = |key: &Key| key.arg.get_all_aliases().unwrap_or_default().contains(&wanted);
        self.keys().into_iter().find(|key| key.name == wanted || is_old(key))
    }
}

fn name(arg: &Arg) -> String {
    arg.get_long().unwrap_or(arg.get_id().as_str()).to_owned()
}

impl Key {
    /// What the flag's help says.
    pub fn help(&self) -> String {
        self.arg.get_help().map(ToString::to_string).unwrap_or_default()
    }

    /// What the flag's help calls its value; `None` for a switch.
    pub fn value_name(&self) -> Option<String> {
        let names = self.arg.get_value_names().filter(|_| self.takes() != Takes::Switch)?;
        Some(names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "))
    }

    /// The value without the flag.
    pub fn default(&self) -> Option<String> {
        let [value] = self.arg.get_default_values() else { return None };
        Some(value.to_string_lossy().into_owned())
    }

    /// Whether several values are a list.
    pub fn is_list(&self) -> bool {
        self.takes() == Takes::Many
    }

    /// Whether it is a switch.
    pub fn is_switch(&self) -> bool {
        self.takes() == Takes::Switch
    }

    pub(super) fn id(&self) -> &str {
        self.arg.get_id().as_str()
    }

    pub(super) fn is_positional(&self) -> bool {
        self.arg.is_positional()
    }

    /// What stands before its name on the command line.
    pub(super) fn dashes(&self) -> &'static str {
        if self.is_positional() { "" } else { "--" }
    }

    pub(super) fn takes(&self) -> Takes {
        match self.arg.get_action() {
            ArgAction::SetTrue | ArgAction::SetFalse => Takes::Switch,
            ArgAction::Count => Takes::Count,
            ArgAction::Append => Takes::Many,
            _ => Takes::One,
        }
    }

    /// Whether its value may hold a password.
    pub(super) fn is_secret(&self, value: &str) -> bool {
        let named = self.value_name().is_some_and(|name| name.contains("PASSWORD"));
        (named || value.contains("sumrate://")) && !value.starts_with('@')
    }
}

/// The nearest of several names, if one is near.
pub(super) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this, two names have little in common (Jaro-Winkler, 0 to 1).
    const NEAR: f64 = 0.75;
    let likeness = |name: &&str| strsim::jaro_winkler(wanted, name);
    let best = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) >= NEAR).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_the_flags() {
        let tables = tables();
        let table = |name: &str| tables.iter().find(|table| table.name == name).unwrap();
        assert!(!tables.iter().any(|table| ["status", "bench"].contains(&table.name.as_str())));
        for (name, key, takes) in [
            ("up", "path", Takes::Many),
            ("up", "link", Takes::Many),
            ("up", "socks-open", Takes::Switch),
            ("up", "verbose", Takes::Count),
            ("up", "scheduler", Takes::One),
            ("serve", "listen", Takes::Many),
        ] {
            assert_eq!(table(name).key(key).unwrap().takes(), takes, "{key}");
        }
        assert_eq!(table("up").key("placement").unwrap().name, "scheduler");
        for absent in ["config", "help", "version"] {
            assert!(table("up").key(absent).is_none(), "{absent}");
        }
    }

    #[test]
    fn near_names() {
        let names = ["socks", "socks-auth", "scheduler"];
        assert_eq!(nearest("sheduler", names.into_iter()), Some("scheduler"));
        assert_eq!(nearest("sock", names.into_iter()), Some("socks"));
        assert_eq!(nearest("zzz", names.into_iter()), None);
    }
}
