//! What `sumrate cp` is told to copy: local paths, and HOST:PATH.

use std::path::{Path, PathBuf};

use crate::config::{ConfigError, ConfigFile};
use crate::output;
use crate::private_text::PrivateText;

/// Why operands of `cp` were refused.
#[derive(Debug, thiserror::Error)]
pub enum OperandError {
    /// Both sides, or neither, are at a server.
    #[error("{0}; write `sumrate cp FILE... HOST:PATH` or `sumrate cp HOST:FILE... PATH`")]
    Sides(&'static str),
    /// Sources at several servers.
    #[error("the sources are at different hosts, {0} and {1}; copy from one at a time")]
    Hosts(String, String),
    /// No such name.
    #[error(
        "no host is called {name}; {known}. Give a join link as @FILE:PATH, or name it in [hosts] of the configuration"
    )]
    UnknownHost {
        /// The name.
        name: String,
        /// Those that are known.
        known: String,
    },
    /// The configuration with the names cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// An operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operand {
    Local(PathBuf),
    /// The host may be a join link.
    Remote {
        host: PrivateText,
        path: String,
    },
}

impl Operand {
    /// `@FILE:PATH` and links first; else a colon before any slash makes it remote.
    pub(super) fn parse(text: &str) -> Self {
        let from =
            if text.starts_with("sumrate://") { text.find('#').unwrap_or(text.len()) } else { 0 };
        let colon = text[from..].find(':').map(|at| from + at);
        let is_link = text.starts_with('@') || from > 0;
        match colon {
            Some(at) if at > 0 && (is_link || !text[..at].contains('/')) => {
                Self::Remote { host: text[..at].into(), path: text[at + 1..].to_owned() }
            }
            _ => Self::Local(PathBuf::from(text)),
        }
    }
}

/// Which way a copy goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Copy {
    ToServer { sources: Vec<PathBuf>, host: PrivateText, path: String },
    ToClient { host: PrivateText, paths: Vec<String>, destination: PathBuf },
}

impl Copy {
    /// Makes sense of all operands together.
    pub(super) fn of(operands: &[PrivateText]) -> Result<Self, OperandError> {
        let mut operands: Vec<Operand> =
            operands.iter().map(|text| Operand::parse(text.expose())).collect();
        match operands.pop() {
            Some(Operand::Remote { host, path }) => {
                let local = |operand| match operand {
                    Operand::Local(path) => Ok(path),
                    Operand::Remote { .. } => Err(OperandError::Sides("both sides are at a host")),
                };
                let sources = operands.into_iter().map(local).collect::<Result<_, _>>()?;
                Ok(Self::ToServer { sources, host, path })
            }
            Some(Operand::Local(destination)) => {
                let mut hosts = Vec::new();
                let mut paths = Vec::new();
                for operand in operands {
                    let Operand::Remote { host, path } = operand else {
                        return Err(OperandError::Sides("neither side is at a host"));
                    };
                    hosts.push(host);
                    paths.push(path);
                }
                hosts.dedup();
                let shown = |host: &PrivateText| output::without_secrets(host.expose());
                match hosts.as_slice() {
                    [host] => Ok(Self::ToClient { host: host.clone(), paths, destination }),
                    [one, other, ..] => Err(OperandError::Hosts(shown(one), shown(other))),
                    [] => Err(OperandError::Sides("there is nothing to copy")),
                }
            }
            None => Err(OperandError::Sides("there is nothing to copy")),
        }
    }

    pub(super) fn host(&self) -> &str {
        match self {
            Self::ToServer { host, .. } | Self::ToClient { host, .. } => host.expose(),
        }
    }
}

/// The join link, or `@FILE` with it, of a host.
pub(super) fn link_of(host: &str, config: Option<&Path>) -> Result<PrivateText, OperandError> {
    if host.starts_with('@') || host.starts_with("sumrate://") {
        return Ok(host.into());
    }
    let file = config.map(ConfigFile::read).transpose()?;
    if let Some(link) = file.as_ref().and_then(|file| file.host(host)) {
        return Ok(link.into());
    }
    let names: Vec<&str> = file.iter().flat_map(ConfigFile::hosts).collect();
    let known = match (&file, names.as_slice()) {
        (None, _) => "there is no configuration".to_owned(),
        (Some(file), []) => format!("{} names none", file.path().display()),
        (Some(file), names) => format!("{} names {}", file.path().display(), names.join(", ")),
    };
    Err(OperandError::UnknownHost { name: host.to_owned(), known })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(host: &str, path: &str) -> Operand {
        Operand::Remote { host: host.into(), path: path.to_owned() }
    }

    #[test]
    fn a_colon_before_a_slash_is_a_hosts() {
        for (text, operand) in [
            ("home:a/b", remote("home", "a/b")),
            ("home:", remote("home", "")),
            ("@dir/home.link:a:b", remote("@dir/home.link", "a:b")),
            (
                "sumrate://192.0.2.1:7443?v=1#k=a&c=b:dir/file",
                remote("sumrate://192.0.2.1:7443?v=1#k=a&c=b", "dir/file"),
            ),
            ("./a:b", Operand::Local("./a:b".into())),
            ("dir/a:b", Operand::Local("dir/a:b".into())),
            ("plain", Operand::Local("plain".into())),
            (":x", Operand::Local(":x".into())),
        ] {
            assert_eq!(Operand::parse(text), operand, "{text}");
        }
    }

    #[test]
    fn one_side_is_remote() {
        let copy = |operands: &[&str]| {
            Copy::of(&operands.iter().map(|text| PrivateText::from(*text)).collect::<Vec<_>>())
        };
        assert!(matches!(
            copy(&["a", "b", "h:c"]),
            Ok(Copy::ToServer { sources, .. }) if sources.len() == 2
        ));
        assert!(
            matches!(copy(&["h:a", "h:b", "."]), Ok(Copy::ToClient { paths, .. }) if paths.len() == 2)
        );
        for bad in [&["a", "b"][..], &["h:a", "h:b"], &["h:a", "b", "."]] {
            assert!(matches!(copy(bad), Err(OperandError::Sides(_))), "{bad:?}");
        }
        assert!(matches!(copy(&["h:a", "i:b", "."]), Err(OperandError::Hosts(..))));
    }

    #[test]
    fn hosts_are_links_files_or_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        output::write_private(&path, "[hosts]\nhome = \"@home.link\"\n").unwrap();
        assert_eq!(link_of("home", Some(&path)).unwrap().expose(), "@home.link");
        assert_eq!(link_of("@x", None).unwrap().expose(), "@x");
        let error = link_of("work", Some(&path)).unwrap_err().to_string();
        assert!(error.contains("work") && error.contains("names home"), "{error}");
    }
}
