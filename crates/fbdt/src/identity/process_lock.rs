//! A lock file: one process at a time holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::private_file::{PrivateFileError, io_error, refuse_shared};

/// Longest process number, in digits, and a line break.
const NUMBER_MAX: u64 = 20;

/// A lock file cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProcessLockError {
    /// Another process has it.
    #[error("{path} is locked by {holder}; stop it, or use another directory")]
    Held {
        /// The file.
        path: PathBuf,
        /// `process` and its number; `another process` in the moment before it has written that.
        holder: String,
    },
    /// It cannot be opened or locked.
    #[error(transparent)]
    File(#[from] PrivateFileError),
}

/// A lock file of this process. It is free again when this is dropped, or when the process ends in
/// any way.
#[derive(Debug)]
pub struct ProcessLock {
    _file: File,
}

impl ProcessLock {
    /// Locks a file, which is made if it is missing, and writes this process's number into it. On a
    /// read-only file system it must be there, and is only locked. A link in its place is refused.
    ///
    /// # Errors
    /// [`ProcessLockError`]
    pub fn acquire(path: &Path) -> Result<Self, ProcessLockError> {
        let mut file = match open(path, true) {
            // The number is not written there, and a file that is there can be locked.
            Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => open(path, false),
            opened => opened,
        }
        .map_err(io_error("open", path))?;
        refuse_shared(path, &file.metadata().map_err(io_error("inspect", path))?, "600")?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = holder(file);
                return Err(ProcessLockError::Held { path: path.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(io_error("lock", path)(error).into()),
        }
        // The number is for people: a full disk leaves it out.
        let _ = file.set_len(0);
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self { _file: file })
    }
}

/// Opens the file, for writing or for reading alone.
fn open(path: &Path, writes: bool) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(writes)
        .create(writes)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)
}

/// Names the process that wrote its number into the file.
fn holder(file: File) -> String {
    let mut text = String::new();
    let _ = file.take(NUMBER_MAX).read_to_string(&mut text);
    let number = text.trim().parse::<u32>();
    number.map_or("another process".to_owned(), |id| format!("process {id}"))
}
