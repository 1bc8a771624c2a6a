//! Entering network namespaces. The only place that does.

use std::fs::File;
use std::io;
use std::thread;

use nix::sched::{CloneFlags, setns};

/// Why a namespace could not be entered.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// It does not exist.
    #[error("network namespace {name:?} does not exist; make it with `ip netns add {name}`")]
    Missing {
        /// Its name.
        name: String,
    },
    /// The kernel refused.
    #[error(
        "cannot enter network namespace {name:?}: {source}; run inside the `unshare -Urnm` in which it was made, or as root"
    )]
    Enter {
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },
}

/// Opens the namespace `name` of `ip netns`.
pub fn open(name: &str) -> Result<File, NetnsError> {
    File::open(format!("/run/netns/{name}")).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => NetnsError::Missing { name: name.to_owned() },
        _ => NetnsError::Enter { name: name.to_owned(), source },
    })
}

/// Runs `work` on a thread of its own inside namespace `name` (`None`: where the caller is) and waits for it.
pub fn run_in<T: Send>(
    name: Option<&str>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, NetnsError> {
    let Some(name) = name else {
        return Ok(work());
    };
    let namespace = open(name)?;
    let enter = |source| NetnsError::Enter { name: name.to_owned(), source };
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setns(&namespace, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)?;
            Ok::<T, io::Error>(work())
        });
        match thread.join() {
            Ok(result) => result.map_err(enter),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
