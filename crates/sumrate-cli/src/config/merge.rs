//! Puts a file's keys behind a command line, which wins.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use fbdt::Link;

use super::file::{ConfigError, ConfigFile, Entry, Given, HOSTS, Section};
use super::keys::{Key, Table, Takes, nearest, tables};
use crate::args::{Cli, without_passwords};
use crate::output;

/// The value of `--config` that means no file.
const NO_FILE: &str = "none";

/// A command line with what a file adds. `Debug` shows no argument: a join link and a password may be
/// among them.
#[derive(Clone, PartialEq, Eq)]
pub struct Merged {
    /// The whole of it.
    pub arguments: Vec<OsString>,
    /// The file, if one was read.
    pub file: Option<PathBuf>,
    /// Flags that came from the file, with their lines.
    pub added: Vec<(String, usize)>,
}

impl fmt::Debug for Merged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arguments: _, file, added } = self;
        f.debug_struct("Merged").field("file", file).field("added", added).finish_non_exhaustive()
    }
}

impl Merged {
    /// Says of each flag that an error message names and that stands in the file, where it stands.
    pub fn origins(&self, message: &str) -> Vec<String> {
        let Some(path) = &self.file else { return Vec::new() };
        let named = self.added.iter().filter(|(flag, _)| {
            let is_whole = |rest: &str| {
                !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '-')
            };
            message
                .match_indices(flag.as_str())
                .any(|(at, _)| is_whole(&message[at + flag.len()..]))
        });
        named.map(|(flag, line)| format!("{}:{line}: sets {flag}", path.display())).collect()
    }
}

/// Adds what the file that the command line names, or else the `default` one, has for its command.
///
/// # Errors
/// [`ConfigError`] when the file is wrong in any of its tables.
pub fn merge(
    arguments: Vec<OsString>,
    default: impl FnOnce() -> Option<PathBuf>,
) -> Result<Merged, ConfigError> {
    let alone = |arguments| Merged { arguments, file: None, added: Vec::new() };
    let command = Cli::command().ignore_errors(true);
    let Ok(matches) = command.try_get_matches_from(&arguments) else { return Ok(alone(arguments)) };
    let tables = tables();
    let Some((name, given)) = matches.subcommand() else { return Ok(alone(arguments)) };
    let Some(table) = tables.iter().find(|table| table.name == name) else {
        return Ok(alone(arguments));
    };
    let Some(path) = path_of(given, default) else { return Ok(alone(arguments)) };
    let file = ConfigFile::read(&path)?;
    check(&file)?;
    let entries = file.section(name).map(|section| section.entries.as_slice()).unwrap_or_default();
    let (mut options, mut positionals, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let Some(key) = table.key(&entry.key) else { continue };
        if given.value_source(key.id()) == Some(ValueSource::CommandLine) {
            continue;
        }
        added.push((format!("{}{}", key.dashes(), key.name), entry.line));
        let place = if key.is_positional() { &mut positionals } else { &mut options };
        place.extend(tokens(&key, entry, &path)?.into_iter().map(OsString::from));
    }
    Ok(Merged { arguments: insert(arguments, name, options, positionals), file: Some(path), added })
}

/// The file that `--config` names, or the default one.
fn path_of(given: &ArgMatches, default: impl FnOnce() -> Option<PathBuf>) -> Option<PathBuf> {
    match given.try_get_one::<PathBuf>("config").ok().flatten() {
        Some(named) if named.as_os_str() == NO_FILE => None,
        Some(named) => Some(named.clone()),
        None => default(),
    }
}

/// Options go right behind the command's name, so that what follows `--` stays what it is;
/// positional arguments go to the end.
fn insert(
    mut arguments: Vec<OsString>,
    command: &str,
    options: Vec<OsString>,
    positionals: Vec<OsString>,
) -> Vec<OsString> {
    let is_command = |argument: &OsString| argument.as_os_str() == OsStr::new(command);
    let at = arguments.iter().skip(1).position(is_command).map_or(arguments.len(), |at| at + 2);
    arguments.splice(at..at, options);
    arguments.extend(positionals);
    arguments
}

/// Refuses unknown tables and keys, values of the wrong kind, and values that a flag refuses.
///
/// # Errors
/// [`ConfigError`], the first in the order of lines.
pub fn check(file: &ConfigFile) -> Result<(), ConfigError> {
    let tables = tables();
    for section in &file.sections {
        if section.name == HOSTS {
            check_hosts(file, section)?;
            continue;
        }
        let Some(table) = tables.iter().find(|table| table.name == section.name) else {
            let names: Vec<&str> =
                tables.iter().map(|table| table.name.as_str()).chain([HOSTS]).collect();
            return Err(unknown(
                file,
                section.line,
                format!("table [{}]", section.name),
                &names,
                {
                    let bracketed = |name: &str| format!("[{name}]");
                    (&section.name, bracketed)
                },
            ));
        };
        for entry in &section.entries {
            check_entry(file, table, entry)?;
        }
    }
    Ok(())
}

fn unknown(
    file: &ConfigFile,
    line: usize,
    what: String,
    names: &[&str],
    (wanted, show): (&str, impl Fn(&str) -> String),
) -> ConfigError {
    let advice = match nearest(wanted, names.iter().copied()) {
        Some(near) => format!("did you mean {}?", show(near)),
        None => {
            let all: Vec<String> = names.iter().map(|name| show(name)).collect();
            format!("there are: {}", all.join(", "))
        }
    };
    ConfigError::Unknown { path: file.path.clone(), line, what, advice }
}

fn check_hosts(file: &ConfigFile, section: &Section) -> Result<(), ConfigError> {
    for entry in &section.entries {
        let Given::One(link) = &entry.given else {
            let message = format!("host `{}` is not text; write its join link or @FILE", entry.key);
            return Err(ConfigError::Value { path: file.path.clone(), line: entry.line, message });
        };
        if link.contains("sumrate://") {
            check_exposed(file, entry)?;
            check_link(file, entry, link, &format!("host `{}`", entry.key))?;
        } else if !link.starts_with('@') {
            let message =
                format!("host `{}` is neither a join link (sumrate://...) nor @FILE", entry.key);
            return Err(ConfigError::Value { path: file.path.clone(), line: entry.line, message });
        }
    }
    Ok(())
}

/// Refuses what is no join link, which the command would only once it starts; one in a file of its own
/// is read then.
fn check_link(file: &ConfigFile, entry: &Entry, text: &str, what: &str) -> Result<(), ConfigError> {
    match text.trim().parse::<Link>() {
        Ok(_) => Ok(()),
        Err(error) => Err(ConfigError::Value {
            path: file.path.clone(),
            line: entry.line,
            message: output::without_secrets(&format!("{what} is not a join link: {error}")),
        }),
    }
}

fn check_exposed(file: &ConfigFile, entry: &Entry) -> Result<(), ConfigError> {
    if file.mode & 0o077 == 0 {
        return Ok(());
    }
    let (path, line, key) = (file.path.clone(), entry.line, entry.key.clone());
    Err(ConfigError::Exposed { path, line, key, mode: file.mode })
}

fn check_entry(file: &ConfigFile, table: &Table, entry: &Entry) -> Result<(), ConfigError> {
    let Some(key) = table.key(&entry.key) else {
        let keys = table.keys();
        let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        let what = format!("key `{}` of [{}]", entry.key, table.name);
        let show = |name: &str| format!("`{name}`");
        return Err(unknown(file, entry.line, what, &names, (&entry.key, show)));
    };
    let tokens = tokens(&key, entry, &file.path)?;
    let value = |token: &String| match token.strip_prefix("--") {
        Some(flag) => flag.split_once('=').map_or(String::new(), |(_, value)| value.to_owned()),
        None => token.clone(),
    };
    if tokens.iter().any(|token| key.is_secret(&value(token))) {
        check_exposed(file, entry)?;
    }
    if entry.key == "link" {
        let links = match &entry.given {
            Given::One(text) => std::slice::from_ref(text),
            Given::Many(texts) => texts,
            Given::Switch(_) => &[],
        };
        for text in links.iter().filter(|text| !text.starts_with('@')) {
            check_link(file, entry, text, "`link`")?;
        }
    }
    let alone = table.command.clone().mut_args(|arg| arg.required(false));
    let line = std::iter::once(table.name.clone()).chain(tokens);
    match alone.try_get_matches_from(line) {
        Err(error) if is_of_a_value(error.kind()) => Err(ConfigError::Value {
            path: file.path.clone(),
            line: entry.line,
            message: said(error),
        }),
        // What is missing or in conflict may stand on the command line: that is judged at the end.
        _ => Ok(()),
    }
}

fn is_of_a_value(kind: ErrorKind) -> bool {
    !matches!(kind, ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict)
}

/// The message without what clap puts around it, without secrets.
fn said(error: clap::Error) -> String {
    let text = without_passwords(error).render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let text = text.split("\n\nFor more information").next().unwrap_or(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    output::without_secrets(&words.join(" "))
}

/// A key as words of a command line.
fn tokens(key: &Key, entry: &Entry, path: &Path) -> Result<Vec<String>, ConfigError> {
    let wrong = |wanted: &str| ConfigError::Value {
        path: path.to_owned(),
        line: entry.line,
        message: format!("`{}` takes {wanted}", entry.key),
    };
    let word = |value: &String| match key.is_positional() {
        true if value.starts_with('-') => Err(wrong("a value that does not begin with -")),
        true => Ok(value.clone()),
        false => Ok(format!("--{}={value}", key.name)),
    };
    let flag = || format!("--{}", key.name);
    match (key.takes(), &entry.given) {
        (Takes::Switch, Given::Switch(on)) => Ok(on.then(flag).into_iter().collect()),
        (Takes::Switch, _) => Err(wrong("true or false")),
        (Takes::Count, Given::One(count)) => match count.parse::<u8>() {
            Ok(count) if count <= 9 => Ok(vec![flag(); usize::from(count)]),
            _ => Err(wrong("a number from 0 to 9")),
        },
        (Takes::Count, _) => Err(wrong("a number from 0 to 9")),
        (Takes::One | Takes::Many, Given::One(value)) => Ok(vec![word(value)?]),
        (Takes::Many, Given::Many(values)) => values.iter().map(word).collect(),
        (Takes::One, Given::Many(_)) => Err(wrong("one value, no list")),
        (Takes::One | Takes::Many, Given::Switch(_)) => {
            Err(wrong(&key.value_name().unwrap_or_else(|| "a value".to_owned())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Command;
    use crate::private_text::PrivateText;
    use clap::Parser;
    use std::os::unix::fs::PermissionsExt;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        (directory, path)
    }

    fn merged(line: &str, text: &str) -> Result<Merged, ConfigError> {
        let (_directory, path) = file(text, 0o600);
        merge(words(line), || Some(path))
    }

    fn up(line: &str, text: &str) -> crate::args::UpArgs {
        let merged = merged(line, text).unwrap();
        match Cli::try_parse_from(merged.arguments).unwrap().command {
            Command::Up(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_file_fills_in_what_the_command_line_leaves_out() {
        let links = up("sumrate up", "[up]\nlink = [\"@l\", \"@m\"]\n").link;
        assert_eq!(links.iter().map(PrivateText::expose).collect::<Vec<_>>(), ["@l", "@m"]);
        let text = "[up]\nlink = \"@l\"\npath = [\"a=lo\", \"b=127.0.0.2\"]\nsocks = \"off\"\n\
                    http = \"127.0.0.1:8080\"\nsocks-open = true\nmax-connections = 7\n\
                    linger = 2.5\nverbose = 2\n[serve]\nlisten = \"127.0.0.1:1\"\n";
        let args = up("sumrate up", text);
        assert_eq!((args.link[0].expose(), args.reach.path.len()), ("@l", 2));
        assert!(args.socks_open && args.max_connections == 7);
        assert_eq!(args.protocol.linger, Some(std::time::Duration::from_millis(2500)));
        let merged = merged("sumrate up", text).unwrap();
        assert_eq!(Cli::try_parse_from(merged.arguments).unwrap().verbose, 2);
    }

    #[test]
    fn the_command_line_wins() {
        let text = "[up]\nlink = \"@l\"\npath = [\"a=lo\", \"b=127.0.0.2\"]\nmax-connections = 7\n";
        let args = up("sumrate -v up @mine --path c=127.0.0.3 --max-connections 9", text);
        assert_eq!((args.link[0].expose(), args.link.len()), ("@mine", 1));
        assert_eq!((args.reach.path.len(), args.max_connections), (1, 9));
        assert_eq!(args.reach.path[0].name, "c");
    }

    #[test]
    fn no_file_is_read_for_other_commands_or_where_none_is_wanted() {
        for line in ["sumrate status", "sumrate up @l --config none", "sumrate", "sumrate --help"] {
            let untouched =
                merge(words(line), || panic!("asked for a file")).unwrap_or_else(|_| panic!());
            assert_eq!(untouched.arguments, words(line));
        }
    }

    #[test]
    fn what_is_unknown_is_refused_with_its_line_and_the_nearest_name() {
        for (text, expected) in [
            (
                "[up]\n\nsock = \"off\"\n",
                ":3: key `sock` of [up] is unknown; did you mean `socks`?",
            ),
            ("[sreve]\n", ":1: table [sreve] is unknown; did you mean [serve]?"),
            ("[up]\n[serve]\nzz = 1\n", ":3: key `zz` of [serve] is unknown; there are: `"),
            ("[up]\nconfig = \"x\"\n", ":2: key `config` of [up] is unknown"),
        ] {
            let error = merged("sumrate up @l", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn values_are_judged_by_the_flags_with_their_line() {
        for (text, expected) in [
            ("[up]\nwindow = \"many\"\n", ":2: invalid value 'many' for '--window <BYTES>'"),
            ("[up]\nscheduler = \"fast\"\n", ":2: invalid value 'fast' for '--scheduler <NAME>'"),
            ("[up]\n\nsocks-open = 1\n", ":3: `socks-open` takes true or false"),
            ("[up]\nmax-connections = [1, 2]\n", ":2: `max-connections` takes one value"),
            ("[up]\nmax-connections = 0\n", ":2: invalid value '0'"),
            ("[up]\nlink = true\n", ":2: `link` takes LINK|@FILE"),
            ("[up]\nlink = \"--json\"\n", ":2: `link` takes a value that does not begin with -"),
            ("[serve]\nlisten = [\"1.2.3.4:5\", \"x\"]\n", ":2: invalid value 'x'"),
            ("[hosts]\na = \"b\"\n", ":2: host `a` is neither a join link"),
            ("[hosts]\na = \"sumrate://x\"\n", ":2: host `a` is not a join link"),
            ("[up]\nlink = \"sumrate://192.0.2.1:1?v=1#k=a&c=b\"\n", "key (`k=` after `#`) is not"),
            ("[up]\nlink = \"x\"\n", ":2: `link` is not a join link: a join link starts with"),
        ] {
            let error = merged("sumrate up", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn passwords_are_for_nobody_else() {
        let (key, credential) = ("A".repeat(43), "A".repeat(54));
        let link = format!("sumrate://192.0.2.1:1?v=1#k={key}&c={credential}");
        for text in [
            "[up]\nsocks-auth = \"me:secret\"\n".to_owned(),
            format!("[up]\nlink = \"{link}\"\n"),
            format!("[hosts]\nhome = \"{link}\"\n"),
        ] {
            let text = text.as_str();
            let (_directory, path) = file(text, 0o644);
            let error = merge(words("sumrate up"), || Some(path)).unwrap_err();
            assert!(matches!(&error, ConfigError::Exposed { line: 2, .. }), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
            assert!(merged("sumrate up", text).is_ok(), "{text}");
        }
        let (_directory, path) = file("[up]\nlink = \"@l\"\n", 0o644);
        assert!(merge(words("sumrate up"), || Some(path)).is_ok());
    }

    #[test]
    fn errors_of_the_whole_say_what_came_from_the_file() {
        let merged =
            merged("sumrate serve", "[serve]\nlisten = \"127.0.0.1:1\"\n\nuser = \"x\"\n").unwrap();
        let error = Cli::try_parse_from(&merged.arguments).unwrap_err().to_string();
        let origins = merged.origins(&error);
        assert!(origins.iter().any(|line| line.ends_with(":4: sets --user")), "{origins:?}");
        let named = merged.origins("the argument '--user <NAME>' needs --state; --users");
        assert_eq!(named.len(), 1);
        assert!(named[0].ends_with(":4: sets --user"), "{named:?}");
    }
}
