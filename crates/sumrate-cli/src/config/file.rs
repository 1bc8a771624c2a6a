//! The file: TOML tables named as commands, each key with its line.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

/// The table that gives join links names, for `sumrate cp`.
pub const HOSTS: &str = "hosts";
/// Longest file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Why a configuration file was refused. Lines count from 1.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read the configuration {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is longer than any configuration.
    #[error("the configuration {0} is longer than 1 MiB; is it the right file?")]
    TooLong(PathBuf),
    /// Somebody else can change it.
    #[error(
        "others can change the configuration {path} (mode {mode:03o}, user {owner}); it must belong to you or root: run `chmod go-w {path}`, or copy it to a file of your own"
    )]
    Writable {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Whose it is.
        owner: u32,
    },
    /// It holds a secret that others can read.
    #[error(
        "{path}:{line}: `{key}` holds a password, and mode {mode:03o} lets others read it; run `chmod 600 {path}`, or write @FILE"
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The line of the secret.
        line: usize,
        /// Its key.
        key: String,
        /// The file's permission bits.
        mode: u32,
    },
    /// It is not TOML.
    #[error("{path}:{line}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A table or key that nothing is called.
    #[error("{path}:{line}: {what} is unknown; {advice}")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// The table or key.
        what: String,
        /// The nearest name, or all of them.
        advice: String,
    },
    /// A value of the wrong kind, or one that the flag refuses.
    #[error("{path}:{line}: {message}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What is wrong and what to write.
        message: String,
    },
}

/// A value as the flag would get it. `Debug` shows its kind alone: it may be a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Given {
    /// `true` or `false`.
    Switch(bool),
    /// A string or number.
    One(String),
    /// An array of them.
    Many(Vec<String>),
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Switch(_) => "Switch(<redacted>)",
            Self::One(_) => "One(<redacted>)",
            Self::Many(_) => "Many(<redacted>)",
        })
    }
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) given: Given,
}

/// A table with its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) entries: Vec<Entry>,
}

/// A file that is TOML; whether its keys exist is [`check`](super::check)'s to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) sections: Vec<Section>,
    /// Permission bits, where it came from a file.
    pub(super) mode: u32,
}

/// The file that is read where none is named: the user's, else the machine's.
pub fn default_path() -> Option<PathBuf> {
    let from =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = from("XDG_CONFIG_HOME").or_else(|| from("HOME").map(|home| home.join(".config")));
    let places = [user, Some(PathBuf::from("/etc"))];
    let files = places.into_iter().flatten().map(|place| place.join("sumrate/config.toml"));
    files.into_iter().find(|path| path.exists())
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] when it cannot be read, others can change it, or it is not TOML.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let failed = |error| ConfigError::Unreadable { path: path.to_owned(), error };
        let file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        let (mode, owner) = (found.mode() & 0o777, found.uid());
        let own = nix::unistd::geteuid().as_raw();
        // Root too: a file of anybody else's would tell it what to do.
        if found.is_file() && (mode & 0o022 != 0 || (owner != 0 && owner != own)) {
            return Err(ConfigError::Writable { path: path.to_owned(), mode, owner });
        }
        let mut text = String::new();
        file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > FILE_MAX {
            return Err(ConfigError::TooLong(path.to_owned()));
        }
        Self::parse(&text, path, mode)
    }

    /// Reads a text that came from `path`.
    ///
    /// # Errors
    /// [`ConfigError`] when it is not TOML, or its values are no strings, numbers, switches or lists.
    pub fn parse(text: &str, path: &Path, mode: u32) -> Result<Self, ConfigError> {
        let line_of = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            path: path.to_owned(),
            line: line_of(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })?;
        let wrong = |line, message| ConfigError::Value { path: path.to_owned(), line, message };
        let mut sections = Vec::new();
        for (name, value) in table.get_ref() {
            let line = line_of(name.span().start);
            let DeValue::Table(keys) = value.get_ref() else {
                let advice = format!(
                    "`{}` stands outside of any table; write it below [up], [serve] or another command",
                    name.get_ref()
                );
                return Err(wrong(line, advice));
            };
            let mut entries = Vec::new();
            for (key, value) in keys {
                let line = line_of(key.span().start);
                let given = given(value.get_ref()).ok_or_else(|| {
                    let what = value.get_ref().type_str();
                    wrong(line, format!("`{}` has a value of type {what}; write a string, a number, true, false or a list of those", key.get_ref()))
                })?;
                entries.push(Entry { key: key.get_ref().to_string(), line, given });
            }
            entries.sort_by_key(|entry| entry.line);
            sections.push(Section { name: name.get_ref().to_string(), line, entries });
        }
        sections.sort_by_key(|section| section.line);
        Ok(Self { path: path.to_owned(), sections, mode })
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a switch is set to `true`.
    pub fn is_switched_on(&self, section: &str, key: &str) -> bool {
        self.section(section).is_some_and(|section| {
            let set = |entry: &Entry| entry.key == key && entry.given == Given::Switch(true);
            section.entries.iter().any(set)
        })
    }

    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The join link of a name of the table `hosts`, as `LINK` or `@FILE`.
    pub fn host(&self, name: &str) -> Option<&str> {
        let entry = self.section(HOSTS)?.entries.iter().find(|entry| entry.key == name)?;
        match &entry.given {
            Given::One(link) => Some(link),
            Given::Switch(_) | Given::Many(_) => None,
        }
    }

    /// The names of the table `hosts`.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.section(HOSTS).into_iter().flat_map(|s| s.entries.iter().map(|e| e.key.as_str()))
    }
}

fn given(value: &DeValue<'_>) -> Option<Given> {
    match value {
        DeValue::Boolean(switch) => Some(Given::Switch(*switch)),
        DeValue::Array(values) => {
            let texts = values.iter().map(|value| scalar(value.get_ref()));
            Some(Given::Many(texts.collect::<Option<_>>()?))
        }
        other => scalar(other).map(Given::One),
    }
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn parse(text: &str) -> Result<ConfigFile, ConfigError> {
        ConfigFile::parse(text, Path::new("c.toml"), 0o600)
    }

    #[test]
    fn tables_keys_and_lines() {
        let file = parse("# one\n[up]\nlink = \"@l\"\n\n[serve]\nlisten = [\"a\", 2]\n").unwrap();
        let serve = file.section("serve").unwrap();
        assert_eq!((serve.line, serve.entries[0].line), (5, 6));
        assert_eq!(serve.entries[0].given, Given::Many(vec!["a".to_owned(), "2".to_owned()]));
        assert_eq!(file.section("up").unwrap().entries[0].given, Given::One("@l".to_owned()));
        let numbers = parse("[up]\na = 0x10\nb = 1_000\nc = 0.5\nd = true").unwrap();
        let values: Vec<&Given> = numbers.sections[0].entries.iter().map(|e| &e.given).collect();
        let one = |text: &str| Given::One(text.to_owned());
        assert_eq!(values, [&one("16"), &one("1000"), &one("0.5"), &Given::Switch(true)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line) in [
            ("[up]\nlink = \n", 2),
            ("[up]\nlink = \"a\"\nlink = \"b\"\n", 3),
            ("\n\nlink = \"a\"\n", 3),
            ("[up]\n\nlink = 1979-05-27\n", 3),
            ("[up]\npath = { a = 1 }\n", 2),
            ("[up]\npath = [[1]]\n", 2),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().starts_with(&format!("c.toml:{line}: ")), "{error}");
        }
    }

    #[test]
    fn names_for_links() {
        let file = parse("[hosts]\nhome = \"@home.link\"\n").unwrap();
        assert_eq!((file.host("home"), file.host("work")), (Some("@home.link"), None));
        assert_eq!(file.hosts().collect::<Vec<_>>(), ["home"]);
    }

    #[test]
    fn a_file_that_others_can_change_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        std::fs::write(&path, "[up]\n").unwrap();
        let set = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        set(0o644);
        assert!(ConfigFile::read(&path).is_ok());
        set(0o664);
        let error = ConfigFile::read(&path).unwrap_err();
        assert!(error.to_string().contains("chmod go-w"), "{error}");
        assert!(matches!(ConfigFile::read(directory.path()), Err(ConfigError::Unreadable { .. })));
    }

    #[test]
    fn a_file_of_another_user_is_refused_to_root_too() {
        if !nix::unistd::geteuid().is_root() {
            return test_skip::skipped("only root can give files away");
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        std::fs::write(&path, "[up]\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(ConfigFile::read(&path).is_ok());
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let error = ConfigFile::read(&path).unwrap_err();
        assert!(matches!(error, ConfigError::Writable { owner: 65534, .. }), "{error}");
    }
}
