//! Which of several processes writes the account of a state directory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Name of the file that is locked. The account itself is replaced whenever it is written.
const LOCK: &str = "path-usage.lock";
/// Longest process id, in digits.
const DIGITS_MAX: u64 = 10;

/// What came of an attempt to be the one.
#[derive(Debug)]
pub(super) enum Claim {
    /// It is this process, for as long as this lives; without a file where the system has no locks.
    Ours(#[allow(dead_code)] Option<File>),
    /// It is another, of this process id, which is empty in the moment before it is written.
    Theirs(String),
}

impl Claim {
    /// Tries for a directory, which is made if need be.
    pub(super) fn attempt(directory: &Path) -> Self {
        Self::lock(directory).unwrap_or_else(|error| {
            let path = directory.join(LOCK);
            tracing::warn!(
                "cannot lock {}: {error}; use one --state for each `sumrate up`, else each forgets what the other has counted",
                path.display()
            );
            Self::Ours(None)
        })
    }

    fn lock(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(directory.join(LOCK))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // Who it is, is for people: a full disk leaves it out.
                let _ = file.set_len(0);
                let _ = file.write_all(std::process::id().to_string().as_bytes());
                Ok(Self::Ours(Some(file)))
            }
            Err(Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _ = file.take(DIGITS_MAX).read_to_string(&mut holder);
                Ok(Self::Theirs(holder.trim().to_owned()))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_until_it_lets_go() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let first = Claim::attempt(&state);
        assert!(first.is_ours());
        let Claim::Theirs(holder) = Claim::attempt(&state) else { panic!("two have it") };
        assert_eq!(holder, std::process::id().to_string());
        drop(first);
        assert!(Claim::attempt(&state).is_ours());
    }

    #[test]
    fn where_nothing_can_be_locked_the_account_is_kept_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(LOCK)).unwrap();
        assert!(matches!(Claim::attempt(directory.path()), Claim::Ours(None)));
    }
}
