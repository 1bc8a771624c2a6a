//! Directories in which nobody but this process's user and root can change anything.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{getegid, geteuid};

/// Write permission of others than the owner.
const OTHERS_WRITE: u32 = 0o022;
/// Only the owner of a file may remove it.
const STICKY: u32 = 0o1000;

/// Why a directory is not private.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Something else is there, a symbolic link among it.
    #[error("{0} is not a directory; remove it")]
    NotADirectory(PathBuf),
    /// Somebody else's.
    #[error(
        "{path} belongs to user {owner}, and this runs as user {user}: nothing in it is believed or used; have its owner or root remove it"
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// This process's user.
        user: u32,
    },
    /// Others can put files there.
    #[error(
        "{path} has mode {mode:04o}, others can write to it: nothing in it is believed or used; run `chmod go-w {path}`"
    )]
    Open {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system refused.
    #[error("cannot use the directory {path}: {error}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl DirectoryError {
    /// Whether there is nothing of this name.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

/// This process's directory for sockets and the like: `$XDG_RUNTIME_DIR/sumrate`, or a place of the
/// user's own where that will not do. Root's is never where others can make it first.
pub fn of_runtime() -> PathBuf {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match named.and_then(|runtime| usable_runtime(&runtime)) {
        Some(runtime) => runtime.join("sumrate"),
        None if geteuid().is_root() => PathBuf::from("/run/sumrate-root"),
        None => PathBuf::from(format!("/tmp/sumrate-{}", geteuid())),
    }
}

/// The runtime directory, if it is this user's alone. After `--user` or `sudo` it is another user's.
fn usable_runtime(named: &Path) -> Option<PathBuf> {
    let runtime = resolve(named).ok()?;
    match owner_alone(&runtime) {
        Ok(owner) if owner == geteuid().as_raw() => Some(runtime),
        Err(error) if error.is_not_found() => Some(runtime),
        _ => None,
    }
}

/// The owner of a directory that nobody else can write to.
///
/// # Errors
/// [`DirectoryError`]
pub fn owner_alone(directory: &Path) -> Result<u32, DirectoryError> {
    let found = inspect(directory)?;
    let mode = found.permissions().mode() & 0o7777;
    if !found.is_dir() {
        return Err(DirectoryError::NotADirectory(directory.to_owned()));
    }
    if mode & OTHERS_WRITE != 0 {
        return Err(DirectoryError::Open { path: directory.to_owned(), mode });
    }
    Ok(found.uid())
}

/// Checks that only this process's user and root can have put something there.
///
/// # Errors
/// [`DirectoryError`]
pub fn check(directory: &Path) -> Result<(), DirectoryError> {
    match (owner_alone(directory)?, geteuid().as_raw()) {
        (owner, user) if owner == user || owner == 0 => Ok(()),
        (owner, user) => Err(DirectoryError::Foreign { path: directory.to_owned(), owner, user }),
    }
}

/// Makes the directory for its owner alone, unless it is there, and checks it.
///
/// # Errors
/// [`DirectoryError`]
pub fn make(directory: &Path) -> Result<(), DirectoryError> {
    match std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory) {
        // What is there is judged below.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(DirectoryError::Io { path: directory.to_owned(), error });
        }
        _ => {}
    }
    check(directory)?;
    // Others may have made one of its parents in the meantime.
    resolve(directory).map(drop)
}

/// The path without symbolic links, if nobody but this user and root can change where it leads. Its
/// last parts need not exist.
///
/// # Errors
/// [`DirectoryError`]
pub fn resolve(path: &Path) -> Result<PathBuf, DirectoryError> {
    let failed = |error| DirectoryError::Io { path: path.to_owned(), error };
    if !path.is_absolute() {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    }
    let mut ancestors = path.ancestors();
    let existing = ancestors.find(|part| part.symlink_metadata().is_ok()).unwrap_or(path);
    let real = existing.canonicalize().map_err(failed)?;
    // In a user namespace root is somebody without a name: whoever owns `/`.
    let trusted = [0, geteuid().as_raw(), inspect(Path::new("/"))?.uid()];
    for part in real.ancestors() {
        let found = inspect(part)?;
        if !trusted.contains(&found.uid()) {
            let (path, owner, user) = (part.to_owned(), found.uid(), geteuid().as_raw());
            return Err(DirectoryError::Foreign { path, owner, user });
        }
        if may_be_replaced_in(&found) {
            let mode = found.permissions().mode() & 0o7777;
            return Err(DirectoryError::Open { path: part.to_owned(), mode });
        }
    }
    let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
    Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
}

/// Whether others can rename what this user has in a directory. Its own and root's group are no
/// others: many systems give each user a group.
fn may_be_replaced_in(directory: &Metadata) -> bool {
    let mode = directory.permissions().mode();
    let own_group = [0, getegid().as_raw()].contains(&directory.gid());
    let others = if own_group { 0o002 } else { OTHERS_WRITE };
    mode & others != 0 && mode & STICKY == 0
}

fn inspect(path: &Path) -> Result<Metadata, DirectoryError> {
    std::fs::symlink_metadata(path)
        .map_err(|error| DirectoryError::Io { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: u32 = 65534;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_directories_of_ones_own_are_private() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("a/own");
        make(&own).unwrap();
        make(&own).unwrap();
        assert_eq!(std::fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
        set_mode(&own, 0o770);
        assert!(matches!(check(&own), Err(DirectoryError::Open { mode: 0o770, .. })));
        assert!(matches!(make(&own), Err(DirectoryError::Open { .. })));
        set_mode(&own, 0o700);
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert!(matches!(make(&link), Err(DirectoryError::NotADirectory(_))));
        assert!(check(&place.path().join("none")).unwrap_err().is_not_found());
        if !geteuid().is_root() {
            return test_skip::skipped("only root can give directories away");
        }
        std::os::unix::fs::chown(&own, Some(NOBODY), None).unwrap();
        let error = make(&own).unwrap_err();
        assert!(matches!(error, DirectoryError::Foreign { owner: NOBODY, .. }), "{error}");
    }

    #[test]
    fn a_path_that_others_can_change_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let (open, link) = (place.path().join("open"), place.path().join("link"));
        let inside = open.join("inside");
        std::fs::create_dir_all(&inside).unwrap();
        std::os::unix::fs::symlink(&inside, &link).unwrap();
        let real = place.path().canonicalize().unwrap().join("open/inside");
        assert_eq!(resolve(&link).unwrap(), real);
        assert_eq!(resolve(&link.join("not/yet")).unwrap(), real.join("not/yet"));
        assert!(resolve(Path::new("relative")).is_err());
        // In /tmp others can put files, but not replace those of this user.
        set_mode(&open, 0o1777);
        assert!(resolve(&link).is_ok());
        set_mode(&open, 0o777);
        for path in [&link, &inside, &inside.join("not/yet")] {
            let error = resolve(path).unwrap_err();
            assert!(matches!(error, DirectoryError::Open { mode: 0o777, .. }), "{error}");
        }
        if !geteuid().is_root() {
            return test_skip::skipped("only root can give directories away");
        }
        set_mode(&open, 0o755);
        std::os::unix::fs::chown(&open, Some(NOBODY), None).unwrap();
        let error = resolve(&inside).unwrap_err();
        assert!(matches!(error, DirectoryError::Foreign { owner: NOBODY, .. }), "{error}");
    }
}
