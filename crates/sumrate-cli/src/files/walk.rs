//! What a sender has: named files and directories, and everything below those.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use super::destination::is_partial;
use super::message::{EntryKind, MODE_MASK, SIZE_MAX};
use super::path::{DEPTH_MAX, EntryPath};
use super::root::{Links, Root, modified, special};

/// Something named to be copied.
#[derive(Debug, Clone)]
pub struct Source {
    /// The directory that it is below.
    pub root: Arc<Root>,
    /// Where it is; `None` is the directory itself, of which the contents are copied.
    pub path: Option<EntryPath>,
    /// What it is called at the other end; its own last name if `None`.
    pub name: Option<EntryPath>,
}

/// An entry that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// Where it belongs.
    pub(super) path: EntryPath,
    pub(super) kind: EntryKind,
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) modified: (i64, u32),
    root: Arc<Root>,
    name: EntryPath,
    links: Links,
}

impl Found {
    /// Opens a file.
    pub(super) fn open(&self) -> io::Result<File> {
        self.root.open_file(&self.name, self.links)
    }
}

/// Goes through everything; each item is an entry, or one that is not copied and why.
pub(super) struct Walk {
    sources: VecDeque<Source>,
    /// Directories that are being gone through, the deepest last.
    open: Vec<Level>,
}

struct Level {
    root: Arc<Root>,
    path: Option<EntryPath>,
    names: std::vec::IntoIter<EntryPath>,
}

/// What is not copied, and why.
pub(super) type Skip = (EntryPath, String);

impl Walk {
    pub(super) fn new(sources: &[Source]) -> Self {
        Self { sources: sources.iter().cloned().collect(), open: Vec::new() }
    }

    fn enter(&mut self, root: Arc<Root>, path: Option<EntryPath>) -> io::Result<()> {
        let names = root.names()?.into_iter();
        self.open.push(Level { root, path, names });
        Ok(())
    }

    fn source(&mut self, source: Source) -> Option<Result<Found, Skip>> {
        let Source { root, path, name } = source;
        let Some(path) = path else {
            let entered = root
                .directory(None, Links::Refuse)
                .and_then(|whole| self.enter(Arc::new(whole), name.clone()));
            return match entered {
                Ok(()) => self.next(),
                Err(error) => {
                    let place = name.or_else(|| EntryPath::new(b"directory").ok())?;
                    Some(Err((place, error.to_string())))
                }
            };
        };
        let (_, last) = path.split_last();
        let name = name.unwrap_or(last);
        Some(self.entry(&root, path, name, Links::Beneath))
    }

    /// Looks at an entry, and goes into it if it is a directory.
    fn entry(
        &mut self,
        root: &Arc<Root>,
        inner: EntryPath,
        path: EntryPath,
        links: Links,
    ) -> Result<Found, Skip> {
        let skip = |reason: String| (path.clone(), reason);
        let stat = root.stat(&inner, links).map_err(|error| skip(error.to_string()))?;
        if let Some(what) = special(&stat) {
            return Err(skip(format!("it is {what}, which is not copied")));
        }
        let found = found(&stat, root, inner, path.clone(), links);
        if found.kind == EntryKind::Directory {
            if self.open.len() >= DEPTH_MAX {
                return Err(skip("it lies too deep".to_owned()));
            }
            let opened = root.directory(Some(&found.name), links);
            let entered = opened.and_then(|below| self.enter(Arc::new(below), Some(path.clone())));
            entered.map_err(|error| skip(error.to_string()))?;
        } else if found.size > SIZE_MAX {
            return Err(skip("it is too large".to_owned()));
        }
        Ok(found)
    }
}

fn found(stat: &Stat, root: &Arc<Root>, name: EntryPath, path: EntryPath, links: Links) -> Found {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => EntryKind::Directory,
        _ => EntryKind::File,
    };
    let size = match kind {
        EntryKind::File => u64::try_from(stat.st_size).unwrap_or(0),
        EntryKind::Directory => 0,
    };
    let (mode, modified) = (stat.st_mode & MODE_MASK, modified(stat));
    Found { path, kind, mode, size, modified, root: Arc::clone(root), name, links }
}

impl Iterator for Walk {
    type Item = Result<Found, Skip>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(level) = self.open.last_mut() else {
                let source = self.sources.pop_front()?;
                return self.source(source);
            };
            let Some(name) = level.names.next() else {
                self.open.pop();
                continue;
            };
            // What an interrupted copy left is nobody's file yet.
            if is_partial(&name) {
                continue;
            }
            let (root, parent) = (Arc::clone(&level.root), level.path.clone());
            return Some(match name.below(parent.as_ref()) {
                Ok(path) => self.entry(&root, name, path, Links::Refuse),
                Err(error) => {
                    let reason = format!("{name} in it: {error}");
                    Err((parent.unwrap_or(name), reason))
                }
            });
        }
    }
}
