//! Which of several processes writes the account of a state directory.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use fbdt::identity::{ProcessLock, ProcessLockError};

/// Name of the file that is locked. The account itself is replaced whenever it is written.
const LOCK: &str = "path-usage.lock";

/// What came of an attempt to be the one.
#[derive(Debug)]
pub(super) enum Claim {
    /// It is this process, for as long as this lives; without a file where the system has no locks.
    Ours(#[allow(dead_code)] Option<ProcessLock>),
    /// It is another process, named for people.
    Theirs(String),
}

impl Claim {
    /// Tries for a directory, which is made if need be.
    pub(super) fn attempt(directory: &Path) -> Self {
        let path = directory.join(LOCK);
        // A failure shows when the file is opened.
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        match ProcessLock::acquire(&path) {
            Ok(lock) => Self::Ours(Some(lock)),
            Err(ProcessLockError::Held { holder, .. }) => Self::Theirs(holder),
            Err(ProcessLockError::File(error)) => {
                tracing::warn!(
                    "cannot lock {}: {error}; give each `sumrate up` its own --state, or one overwrites the count of the other",
                    path.display()
                );
                Self::Ours(None)
            }
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
        assert_eq!(holder, format!("process {}", std::process::id()));
        drop(first);
        assert!(Claim::attempt(&state).is_ours());
    }

    #[test]
    fn a_link_in_place_of_the_lock_leads_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        std::fs::write(&victim, "untouched").unwrap();
        std::os::unix::fs::symlink(&victim, directory.path().join(LOCK)).unwrap();
        assert!(matches!(Claim::attempt(directory.path()), Claim::Ours(None)));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
    }

    #[test]
    fn where_nothing_can_be_locked_the_account_is_kept_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(LOCK)).unwrap();
        assert!(matches!(Claim::attempt(directory.path()), Claim::Ours(None)));
    }
}
