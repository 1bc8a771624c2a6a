//! How many files and connections the process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Uses as many file descriptors as the system permits: each connection is one, and the usual soft
/// limit of 1024 (for programs that call `select`) is less than one client may have open.
pub fn raise_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
