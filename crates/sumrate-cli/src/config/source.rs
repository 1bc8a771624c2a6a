//! Reads command line and file again while the program runs.

use std::ffi::OsString;
use std::fmt;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use super::file::{ConfigError, default_path};
use super::merge::merge;
use crate::args::{Cli, without_passwords};
use crate::output;

/// What a running command was made of, so that it can be made again.
/// `Debug` shows none of it: a join link and a password may be among it.
#[derive(Clone, Default)]
pub struct ConfigSource {
    arguments: Vec<OsString>,
    /// As the program was started, and as it is now.
    started: Option<ArgMatches>,
    current: Option<ArgMatches>,
}

/// What a reload found. Flags are given by their long names, in the order of `--help`.
#[derive(Debug)]
pub struct Reread {
    /// The whole command line, parsed.
    pub cli: Cli,
    /// What differs from the values in use.
    pub changes: Vec<String>,
    /// What differs from the start of the program.
    pub since_start: Vec<String>,
    /// To be given to [`ConfigSource::accept`].
    pub accepted: Accepted,
}

/// Values that a reload found; not to be shown either.
pub struct Accepted(ArgMatches);

impl fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigSource(<redacted>)")
    }
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Accepted(<redacted>)")
    }
}

impl ConfigSource {
    /// The command line as the user wrote it, and what it was parsed to.
    pub fn new(arguments: Vec<OsString>, current: ArgMatches) -> Self {
        Self { arguments, started: Some(current.clone()), current: Some(current) }
    }

    /// Reads the file again and says what is different since the last [`Self::accept`].
    ///
    /// # Errors
    /// What is wrong, in words; nothing is different then.
    pub fn reread(&self) -> Result<Reread, String> {
        let merged =
            merge(self.arguments.clone(), default_path).map_err(|e: ConfigError| e.to_string())?;
        let parsed = Cli::command().try_get_matches_from(&merged.arguments);
        let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
        let (cli, matches) = parsed.map_err(|error| {
            let error = without_passwords(error);
            let text = error.render().to_string();
            let text = text.split("\n\nFor more").next().unwrap_or(&text).trim().to_owned();
            let origins = merged.origins(&text).join("; ");
            output::without_secrets(&format!("{text} {origins}")).trim().to_owned()
        })?;
        let since = |then: &Option<ArgMatches>| then.as_ref().map(|then| changes(then, &matches));
        Ok(Reread {
            cli,
            changes: since(&self.current).unwrap_or_default(),
            since_start: since(&self.started).unwrap_or_default(),
            accepted: Accepted(matches),
        })
    }

    /// From now on the reread values are the current ones.
    pub fn accept(&mut self, Accepted(matches): Accepted) {
        self.current = Some(matches);
    }
}

fn changes(old: &ArgMatches, new: &ArgMatches) -> Vec<String> {
    let (Some((name, old)), Some((_, new))) = (old.subcommand(), new.subcommand()) else {
        return Vec::new();
    };
    let mut cli = Cli::command();
    cli.build();
    let Some(command) = cli.find_subcommand(name) else { return Vec::new() };
    let raw = |matches: &ArgMatches, id: &str| -> Vec<OsString> {
        match matches.try_get_raw(id) {
            Ok(Some(values)) => values.map(ToOwned::to_owned).collect(),
            _ => Vec::new(),
        }
    };
    let named = |arg: &clap::Arg| arg.get_long().unwrap_or(arg.get_id().as_str()).to_owned();
    let differs = |arg: &&clap::Arg| {
        let id = arg.get_id().as_str();
        raw(old, id) != raw(new, id)
    };
    command.get_arguments().filter(differs).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Command;

    #[test]
    fn a_reload_says_what_is_different() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        let write = |text: &str| output::write_private(&path, text).unwrap();
        write("[up]\nlink = \"@l\"\nlinger = 5\n");
        let line = format!("sumrate up --http off --config {}", path.display());
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let merged = merge(arguments.clone(), || None).unwrap();
        let matches = Cli::command().try_get_matches_from(merged.arguments).unwrap();
        let mut source = ConfigSource::new(arguments, matches);
        assert!(source.reread().unwrap().changes.is_empty());
        write("[up]\nlink = \"@m\"\nlinger = 6\nsocks-open = true\nhttp = \"127.0.0.1:9\"\n");
        let reread = source.reread().unwrap();
        // What the command line says stays.
        assert_eq!(reread.changes, ["link", "socks-open", "linger"]);
        assert!(matches!(&reread.cli.command, Command::Up(args) if args.link[0].expose() == "@m"));
        source.accept(reread.accepted);
        let again = source.reread().unwrap();
        assert!(again.changes.is_empty());
        assert_eq!(again.since_start.len(), 3, "of those, some need a restart");
        write("[up]\nlinger = 6\n");
        assert!(source.reread().unwrap_err().contains("required"), "no link any more");
        write("[up]\nlinegr = 6\n");
        let error = source.reread().unwrap_err();
        assert!(error.contains(":2: ") && error.contains("`linger`"), "{error}");
    }
}
