//! The names that a receiver asked for. The sender offers these and no others, each once.

use std::cmp::Ordering;

use super::destination::is_partial;
use super::link::TransferError;
use super::message::{EntryKind, Offer};
use super::path::{EntryPath, PathError};

/// The request of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// No names: the sender chooses them, as a client that writes to a server does.
    Nothing,
    /// A whole directory: the sender chooses the names, and offers each once.
    Directory,
    /// These names, each a file or a directory with everything below it.
    Names(Vec<AskedName>),
}

/// A name that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedName {
    name: EntryPath,
    /// It was written with a slash behind it, which only a directory has.
    is_directory: bool,
}

/// Why paths cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskedError {
    /// A path that leads out.
    #[error("{path}: {error}")]
    Path {
        /// The path.
        path: String,
        /// The reason.
        error: PathError,
    },
    /// Two paths end with the same name.
    #[error("{0} and {1} would get the same name here: copy them one after the other")]
    SameName(String, String),
    /// A whole directory, and something beside it.
    #[error(
        "`{0}` and the whole directory cannot be copied together: copy them one after the other"
    )]
    Beside(String),
}

impl Asked {
    /// Takes the last name of each path of a request.
    ///
    /// # Errors
    /// [`AskedError`]
    pub fn of(paths: &[String]) -> Result<Self, AskedError> {
        let mut found: Vec<(&String, AskedName)> = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let normal = EntryPath::normal(path.as_bytes())
                .map_err(|error| AskedError::Path { path: path.clone(), error })?;
            let Some(normal) = normal else {
                let other = paths.get(if index == 0 { 1 } else { 0 });
                return other
                    .map_or(Ok(Self::Directory), |other| Err(AskedError::Beside(other.clone())));
            };
            let (_, name) = normal.split_last();
            if let Some((other, _)) = found.iter().find(|(_, known)| known.name == name) {
                return Err(AskedError::SameName((*other).clone(), path.clone()));
            }
            let is_directory = path.ends_with('/') || path.ends_with("/.");
            found.push((path, AskedName { name, is_directory }));
        }
        Ok(Self::Names(found.into_iter().map(|(_, name)| name).collect()))
    }
}

/// Compares what a sender offers with what was asked for.
#[derive(Debug)]
pub(super) struct Offered<'a> {
    asked: &'a Asked,
    /// The names that were offered or skipped, and what the offered ones are.
    seen: Vec<(EntryPath, Option<EntryKind>)>,
    last: Option<EntryPath>,
}

impl<'a> Offered<'a> {
    pub(super) fn new(asked: &'a Asked) -> Self {
        Self { asked, seen: Vec::new(), last: None }
    }

    /// Checks an offer before anything of it is written. The inner error is the reason to leave out this
    /// entry alone; the copy ends after an outer one.
    pub(super) fn check(&mut self, offer: &Offer) -> Result<Result<(), String>, TransferError> {
        let (first, rest) = offer.path.split_first();
        let not_asked = || Err(TransferError::NotAsked(offer.path.to_string()));
        let twice = || Err(TransferError::Twice(offer.path.to_string()));
        let mut entry = Ok(());
        let mut begins = false;
        if let Asked::Names(names) = self.asked {
            let Some(asked) = names.iter().find(|asked| asked.name == first) else {
                return not_asked();
            };
            match (self.seen.iter().find(|(name, _)| *name == first), &rest) {
                (Some((_, Some(EntryKind::Directory))), Some(_)) => {}
                (Some(_), None) => return twice(),
                (None, None) => {
                    if asked.is_directory && offer.kind == EntryKind::File {
                        entry = Err("it is a file, and a directory was asked for".to_owned());
                    }
                    self.seen.push((first, Some(offer.kind)));
                    begins = true;
                }
                // Its directory is a file, or was not offered.
                (_, Some(_)) => return not_asked(),
            }
        }
        // A sender walks through a directory in the order of names.
        let is_next = |last: &EntryPath| order(last, &offer.path) == Ordering::Less;
        if *self.asked != Asked::Nothing && !begins && !self.last.as_ref().is_none_or(is_next) {
            return twice();
        }
        self.last = Some(offer.path.clone());
        if self.is_reserved(&offer.path) {
            entry = Err("this name is that of an unfinished copy".to_owned());
        }
        Ok(entry)
    }

    /// Checks an entry that the sender leaves out.
    pub(super) fn skip(&mut self, path: &EntryPath) -> Result<(), TransferError> {
        let Asked::Names(names) = self.asked else { return Ok(()) };
        let (first, rest) = path.split_first();
        if !names.iter().any(|asked| asked.name == first) {
            return Err(TransferError::NotAsked(path.to_string()));
        }
        let is_new = !self.seen.iter().any(|(name, _)| *name == first);
        if rest.is_none() && is_new {
            self.seen.push((first, None));
        }
        Ok(())
    }

    /// Checks that each name was offered or skipped.
    pub(super) fn end(&self) -> Result<(), TransferError> {
        let Asked::Names(names) = self.asked else { return Ok(()) };
        let is_missing =
            |asked: &&AskedName| !self.seen.iter().any(|(name, _)| *name == asked.name);
        match names.iter().find(is_missing) {
            Some(missing) => Err(TransferError::Missing(missing.name.to_string())),
            None => Ok(()),
        }
    }

    /// Checks for a name of partial files and marks. A request that names such a file may have it.
    fn is_reserved(&self, path: &EntryPath) -> bool {
        let mut names = path.names();
        if matches!(self.asked, Asked::Names(_)) {
            names.next();
        }
        names.any(|name| is_partial(&name))
    }
}

/// Compares two paths name by name, which is the order in which a directory is walked through.
fn order(one: &EntryPath, other: &EntryPath) -> Ordering {
    one.names().cmp(other.names())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(paths: &[&str]) -> Result<Asked, AskedError> {
        Asked::of(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
    }

    /// One sign for each offer: `+` taken, `-` left out, `N` not asked for, `T` twice.
    fn outcomes(asked: &Asked, offers: &[(&str, EntryKind)]) -> String {
        let mut offered = Offered::new(asked);
        let mut shown = String::new();
        for (path, kind) in offers {
            let path = EntryPath::new(path.as_bytes()).unwrap();
            let (id, mode, size, modified) = (0, 0o600, 0, (0, 0));
            let offer = Offer { id, kind: *kind, mode, size, modified, path };
            shown.push(match offered.check(&offer) {
                Ok(Ok(())) => '+',
                Ok(Err(_)) => '-',
                Err(TransferError::NotAsked(_)) => 'N',
                Err(TransferError::Twice(_)) => 'T',
                Err(_) => '?',
            });
        }
        shown
    }

    #[test]
    fn paths_ask_for_their_last_names() {
        let name = |text: &str, is_directory| AskedName {
            name: EntryPath::new(text.as_bytes()).unwrap(),
            is_directory,
        };
        let names = vec![name("b", false), name("c", true), name("d", true), name("e", false)];
        assert_eq!(asked(&["./a//b", "c/", "x/d/.", "e"]), Ok(Asked::Names(names)));
        for whole in ["", ".", "./", "/."] {
            let expected = if whole == "/." {
                Err(AskedError::Path { path: "/.".to_owned(), error: PathError::Absolute })
            } else {
                Ok(Asked::Directory)
            };
            assert_eq!(asked(&[whole]), expected, "{whole}");
        }
        assert!(matches!(asked(&["a/x", "b/x/"]), Err(AskedError::SameName(..))));
        assert!(matches!(asked(&["a", "."]), Err(AskedError::Beside(other)) if other == "a"));
        assert!(matches!(asked(&["", "a"]), Err(AskedError::Beside(other)) if other == "a"));
        assert!(matches!(asked(&["", "."]), Err(AskedError::Beside(other)) if other == "."));
        assert!(matches!(asked(&["a/../b"]), Err(AskedError::Path { .. })));
    }

    #[test]
    fn only_names_asked_for_are_taken() {
        use EntryKind::{Directory, File};
        let notes = asked(&["dir/notes"]).unwrap();
        for (offers, expected) in [
            (&[("notes", File)][..], "+"),
            (&[("notes", File), ("notes", File)], "+T"),
            (&[("notes", File), ("notes/x", File)], "+N"),
            (&[("notes/x", File)], "N"),
            (&[("notes.txt", File)], "N"),
            (&[("Notes", File)], "N"),
            (&[("note", File)], "N"),
            (&[("dir", Directory)], "N"),
            (&[(".notes.sumrate-part", File)], "N"),
            (&[("notes", Directory), ("notes", File)], "+T"),
            (&[("notes", Directory), (".bashrc", File)], "+N"),
            (&[("notes", Directory), ("notes/b", Directory), ("notes/b/c", File)], "+++"),
            (&[("notes", Directory), ("notes/b/c", File), ("notes/b", File)], "++T"),
            (&[("notes", Directory), ("notes/a", File), ("notes/a", File)], "++T"),
            (&[("notes", Directory), ("notes/a-b", File), ("notes/a/b", File)], "++T"),
            (&[("notes", Directory), ("notes/.x.sumrate-part", File)], "+-"),
            (&[("notes", Directory), ("notes/.sumrate-part", Directory)], "+-"),
        ] {
            assert_eq!(outcomes(&notes, offers), expected, "{offers:?}");
        }
        let both = asked(&["b/", "a"]).unwrap();
        assert_eq!(outcomes(&both, &[("b", Directory), ("b/x", File), ("a", File)]), "+++");
        assert_eq!(outcomes(&both, &[("a", File), ("b", File), ("b/x", File)]), "+-N");
        assert_eq!(outcomes(&Asked::Directory, &[("b", File), ("c", File), ("c", File)]), "++T");
        assert_eq!(outcomes(&Asked::Directory, &[(".x.sumrate-part", File)]), "-");
        assert_eq!(outcomes(&Asked::Nothing, &[(".sumrate-part", File)]), "-");
        assert_eq!(outcomes(&Asked::Nothing, &[("b", File), ("a", File), ("a", File)]), "+++");
    }

    #[test]
    fn each_name_asked_for_is_answered() {
        let names = asked(&["a", "b"]).unwrap();
        let path = |text: &str| EntryPath::new(text.as_bytes()).unwrap();
        let mut offered = Offered::new(&names);
        assert!(matches!(offered.end(), Err(TransferError::Missing(name)) if name == "a"));
        offered.skip(&path("a")).unwrap();
        assert!(matches!(offered.end(), Err(TransferError::Missing(name)) if name == "b"));
        offered.skip(&path("b/below")).unwrap();
        assert!(offered.end().is_err());
        offered.skip(&path("b")).unwrap();
        offered.end().unwrap();
        assert!(matches!(offered.skip(&path("c")), Err(TransferError::NotAsked(_))));
    }
}
