//! Files that only their owner may read, in directories that only their owner may enter.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::secret::fill_random;

/// A private file or directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// Others than the owner have access.
    #[error(
        "{path} has mode {mode:03o}, others than its owner have access; run `chmod {wanted} {path}` and make new credentials if it was shared"
    )]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// What they should be.
        wanted: &'static str,
    },
    /// Somebody else owns it, and could read or replace it.
    #[error(
        "{path} belongs to user {owner}, but this process runs as user {user}; run it as that user, or `chown {user} {path}`"
    )]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
        /// This process's effective user.
        user: u32,
    },
    /// The path is not a regular file.
    #[error("{path} is not a regular file; remove it or choose another state directory")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl PrivateFileError {
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

pub(super) fn io_error<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> PrivateFileError + 'a {
    move |source| PrivateFileError::Io { action, path: path.to_owned(), source }
}

/// Largest file this module reads, in bytes.
const LARGEST: u64 = 64 * 1024;

/// Creates the directory with mode 0700, or checks that the existing one is that private.
pub(crate) fn ensure_directory(path: &Path) -> Result<(), PrivateFileError> {
    match directory_metadata(path) {
        Ok(found) => refuse_shared(path, &found, "700"),
        Err(error) if error.is_not_found() => DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(io_error("create directory", path)),
        Err(error) => Err(error),
    }
}

/// What the directory is; through a link only if the link is this user's own or root's, because its
/// owner decides where it leads.
fn directory_metadata(path: &Path) -> Result<Metadata, PrivateFileError> {
    let found = fs::symlink_metadata(path).map_err(io_error("inspect", path))?;
    if !found.is_symlink() {
        return Ok(found);
    }
    let (owner, user) = (found.uid(), nix::unistd::geteuid().as_raw());
    if owner != user && owner != 0 {
        return Err(PrivateFileError::Foreign { path: path.to_owned(), owner, user });
    }
    fs::metadata(path).map_err(io_error("inspect", path))
}

/// Waits until nobody else who asks for this has the directory; it is free again when the answer is
/// dropped.
pub(crate) fn lock_directory(path: &Path) -> Result<File, PrivateFileError> {
    let directory = File::open(path).map_err(io_error("open", path))?;
    directory.lock().map_err(io_error("lock", path))?;
    Ok(directory)
}

/// Reads a file, having checked on the open descriptor that nobody else may read it.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, PrivateFileError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)
        .map_err(io_error("open", path))?;
    let found = file.metadata().map_err(io_error("inspect", path))?;
    if !found.is_file() {
        return Err(PrivateFileError::NotAFile { path: path.to_owned() });
    }
    refuse_shared(path, &found, "600")?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(io_error("read", path))?;
    Ok(bytes)
}

/// Writes a file of mode 0600 so that a reader sees the old content or the new, never a part.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), PrivateFileError> {
    // A name of its own: whoever else writes this file at the same time has another one.
    let mut random = [0; 8];
    fill_random(&mut random)
        .map_err(|error| io_error("name a new file beside", path)(io::Error::other(error)))?;
    let partial = path.with_extension(format!("{:016x}.partial", u64::from_ne_bytes(random)));
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&partial)
        .map_err(io_error("create", &partial))?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(io_error("write", &partial))
        .and_then(|()| fs::rename(&partial, path).map_err(io_error("rename into place", path)));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&partial);
    })
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> Result<(), PrivateFileError> {
    fs::remove_file(path).map_err(io_error("remove", path))
}

pub(super) fn refuse_shared(
    path: &Path,
    found: &Metadata,
    wanted: &'static str,
) -> Result<(), PrivateFileError> {
    let (owner, user) = (found.uid(), nix::unistd::geteuid().as_raw());
    if owner != user {
        return Err(PrivateFileError::Foreign { path: path.to_owned(), owner, user });
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(PrivateFileError::Exposed { path: path.to_owned(), mode, wanted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_others_can_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write(&path, b"x").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(read(&path).unwrap(), b"x");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(matches!(error, PrivateFileError::Exposed { mode: 0o644, .. }));
        assert!(error.to_string().contains(&format!("chmod 600 {}", path.display())), "{error}");
    }

    #[test]
    fn refuses_what_belongs_to_somebody_else() {
        if !nix::unistd::geteuid().is_root() {
            return test_skip::skipped("only root can give files away");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write(&path, b"x").unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        std::os::unix::fs::chown(dir.path(), Some(65534), None).unwrap();
        for error in [read(&path).unwrap_err(), ensure_directory(dir.path()).unwrap_err()] {
            assert!(matches!(error, PrivateFileError::Foreign { owner: 65534, .. }), "{error}");
            assert!(error.to_string().contains("run it as that user"), "{error}");
        }
    }

    #[test]
    fn refuses_a_link_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write(&path, b"x").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(read(&link), Err(PrivateFileError::Io { .. })));
    }

    #[test]
    fn creates_a_private_directory_and_refuses_a_shared_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/credentials");
        ensure_directory(&path).unwrap();
        ensure_directory(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(ensure_directory(&path).is_err());
    }

    #[test]
    fn a_link_of_somebody_else_to_a_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("state"), dir.path().join("link"));
        ensure_directory(&path).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        ensure_directory(&link).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let error = ensure_directory(&link).unwrap_err();
        assert!(matches!(error, PrivateFileError::Exposed { mode: 0o755, .. }), "{error}");
        if !nix::unistd::geteuid().is_root() {
            return test_skip::skipped("only root can give links away");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        let error = ensure_directory(&link).unwrap_err();
        assert!(matches!(error, PrivateFileError::Foreign { owner: 65534, .. }), "{error}");
    }

    #[test]
    fn writers_of_one_file_do_not_meet() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("usage.json");
        std::thread::scope(|scope| {
            for letter in *b"abcd" {
                let path = &path;
                scope.spawn(move || (0..50).for_each(|_| write(path, &[letter; 4096]).unwrap()));
            }
        });
        let found = read(&path).unwrap();
        assert!(found.len() == 4096 && found.iter().all(|byte| *byte == found[0]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }
}
