//! Where what is received goes, what it is called there, and what it is called until it is whole.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::io::Errno;

use super::link::TransferError;
use super::path::{EntryPath, NAME_MAX, PathError};
use super::root::{Links, Root, Writer, is_own};

/// End of the name of a file that is not complete; alone, the name of a tree's mark ([`Mark`]).
const PARTIAL: &[u8] = b".sumrate-part";

/// Whether a name is that of a file that is not complete, or of a mark.
pub(super) fn is_partial(name: &EntryPath) -> bool {
    name.as_bytes().starts_with(b".") && name.as_bytes().ends_with(PARTIAL)
}

/// What a file is called until it is complete: the same at the next attempt.
pub(super) fn partial(path: &EntryPath) -> EntryPath {
    let (parent, name) = path.split_last();
    let long = [b".", name.as_bytes(), PARTIAL].concat();
    let hashed = || {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        EntryPath::new(format!(".{hash}.sumrate-part").as_bytes())
    };
    let beside = EntryPath::new(&long).or_else(|_| hashed());
    // A path whose parent is nearly as long as paths may be is refused when it is opened.
    beside.and_then(|name| name.below(parent.as_ref())).unwrap_or_else(|_| path.clone())
}

/// What is meant by the name of a destination that may be a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// A directory is copied into, as `cp` does, unless it is an unfinished copy, which is gone on
    /// with; anything else is what the copy is to be called.
    Either,
    /// A directory to copy into, which is made if it is missing.
    Into,
    /// What the copy is to be called: an earlier attempt of the same copy may have made the directory.
    Exact,
}

/// Where entries go.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The directory that they go below.
    pub(super) root: Arc<Root>,
    /// Instead of the first name of every path, if one thing is copied to a name of its own.
    name: Option<EntryPath>,
    /// What the unfinished copy of that name is of, where there is one and it says so.
    unfinished: Option<EntryPath>,
    /// The copy, as others see it.
    pub(super) writer: Writer,
}

impl Destination {
    /// Below `root`, or in or as `path`, whose parent must be there.
    ///
    /// # Errors
    /// [`TransferError::Destination`]
    pub fn new(
        root: &Root,
        path: Option<&EntryPath>,
        naming: Naming,
    ) -> Result<Self, TransferError> {
        let failed = |error: io::Error| {
            let place = path.map_or_else(|| ".".to_owned(), ToString::to_string);
            let link = path.and_then(|path| blocking_link(root, path, &error));
            TransferError::Destination(match link {
                Some(link) => format!(
                    "{link} is a symbolic link that does not stay in its directory; remove it, or \
                     give another destination"
                ),
                None => format!("{place}: {error}"),
            })
        };
        let below = |path: Option<&EntryPath>| root.directory(path, Links::Beneath);
        let Some(path) = path else {
            return Ok(Self::below(below(None).map_err(failed)?, None, None));
        };
        let (parent, name) = path.split_last();
        let beside = || below(parent.as_ref()).map_err(failed);
        match (below(Some(path)), naming) {
            (Ok(found), Naming::Into) => Ok(Self::below(found, None, None)),
            (Ok(found), Naming::Either) => {
                let parent = beside()?;
                match Mark::read(&parent, &name) {
                    Some(of) => Ok(Self::below(parent, Some(name), of)),
                    None => Ok(Self::below(found, None, None)),
                }
            }
            (Ok(_), Naming::Exact) => Ok(Self::below(beside()?, Some(name), None)),
            (Err(error), Naming::Into) if error.kind() == io::ErrorKind::NotFound => {
                let parent = beside()?;
                parent.make_directory(&name).map_err(failed)?;
                let made = parent.directory(Some(&name), Links::Refuse).map_err(failed)?;
                Ok(Self::below(made, None, None))
            }
            (Err(error), Naming::Either | Naming::Exact)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(Self::below(beside()?, Some(name), None))
            }
            (Err(error), _) => Err(failed(error)),
        }
    }

    fn below(root: Root, name: Option<EntryPath>, unfinished: Option<EntryPath>) -> Self {
        Self { root: Arc::new(root), name, unfinished, writer: Writer::default() }
    }

    /// Lets the copy give way to others once its other end `has_gone`.
    #[must_use]
    pub fn giving_way(mut self, has_gone: Arc<dyn Fn() -> bool + Send + Sync>) -> Self {
        self.writer.has_gone = has_gone;
        self
    }

    /// Repeats the destination for one more attempt of the same copy, whatever the last one made.
    #[must_use]
    pub fn again(&self) -> Self {
        Self { writer: Writer::default(), ..self.clone() }
    }

    /// Whether what is copied is called as the destination says, and does not go into it.
    pub fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// Where an entry goes, or why it may not.
    pub(super) fn place(&self, path: &EntryPath) -> Result<EntryPath, String> {
        let Some(name) = &self.name else { return Ok(path.clone()) };
        let (first, rest) = path.split_first();
        if let Some(of) = self.unfinished.as_ref().filter(|of| **of != first) {
            return Err(format!(
                "{name} is an unfinished copy of {of}: copy {of} to it again to finish it, \
                 remove it, or write {name}/ to copy into it"
            ));
        }
        match rest {
            Some(rest) => rest.below(Some(name)).map_err(|error| error.to_string()),
            None => Ok(name.clone()),
        }
    }

    /// Whether this is the top of a tree that gets a name of its own.
    pub(super) fn is_tree(&self, place: &EntryPath) -> bool {
        self.name.as_ref() == Some(place)
    }

    /// Makes a directory of an entry. A tree that gets a name of its own is marked until it is whole.
    pub(super) fn make_directory(
        &self,
        entry: &EntryPath,
        place: &EntryPath,
    ) -> io::Result<Option<Mark>> {
        let is_new = self.root.make_directory(place)?;
        if !self.is_tree(place) {
            return Ok(None);
        }
        let path = Mark::path(place).map_err(invalid)?;
        // Where a whole tree is copied once more, because its end was not heard of, nothing is marked.
        if !is_new && self.root.stat(&path, Links::Refuse).is_err() {
            return Ok(None);
        }
        Mark::set(self, path, entry).map(Some)
    }
}

/// A file in a tree that is copied to a name of its own, until the tree is whole: by it the next
/// command knows that this is no directory to copy into. It says what is copied, and is locked, so
/// that one copy at a time goes on with the tree.
#[derive(Debug)]
pub(super) struct Mark {
    path: EntryPath,
    _lock: File,
}

impl Mark {
    fn path(tree: &EntryPath) -> Result<EntryPath, PathError> {
        EntryPath::new(PARTIAL)?.below(Some(tree))
    }

    /// What an unfinished tree is of, if it says so; `None` if nothing unfinished has this name.
    fn read(parent: &Root, tree: &EntryPath) -> Option<Option<EntryPath>> {
        let path = Self::path(tree).ok()?;
        let found = parent.stat(&path, Links::Refuse).ok().filter(is_own)?;
        let file = parent.open_file(&path, Links::Refuse).ok()?;
        let mut of = Vec::new();
        let length = u64::try_from(found.st_size).ok()?.min(NAME_MAX as u64);
        file.take(length).read_to_end(&mut of).ok()?;
        Some(EntryPath::new(&of).ok())
    }

    fn set(destination: &Destination, path: EntryPath, entry: &EntryPath) -> io::Result<Self> {
        let file = destination.root.open_partial(&path, &destination.writer)?;
        let (of, _) = entry.split_first();
        file.set_len(0)?;
        file.write_all_at(of.as_bytes(), 0)?;
        Ok(Self { path, _lock: file })
    }

    /// What it marks.
    pub(super) fn tree(&self) -> String {
        self.path.split_last().0.map(|tree| tree.to_string()).unwrap_or_default()
    }

    /// The tree is whole.
    pub(super) fn remove(&self, root: &Root) -> io::Result<()> {
        root.remove(&self.path)
    }
}

/// The symbolic link that ends the way to `path` with this error.
fn blocking_link(root: &Root, path: &EntryPath, error: &io::Error) -> Option<EntryPath> {
    let errno = Errno::from_io_error(error)?;
    if !matches!(errno, Errno::XDEV | Errno::LOOP) {
        return None;
    }
    let (parent, _) = path.split_last();
    let above = parent.and_then(|parent| {
        let error = root.directory(Some(&parent), Links::Beneath).err()?;
        blocking_link(root, &parent, &error)
    });
    Some(above.unwrap_or_else(|| path.clone()))
}

fn invalid(error: PathError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
