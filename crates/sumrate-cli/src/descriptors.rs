//! How many files and connections the process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Number of files and connections that a process may have open, and a server's parts of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors(usize);

impl Descriptors {
    /// Those of this process, now.
    pub fn of_process() -> Self {
        let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
        Self(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Connections to targets, of all clients together: half of all.
    pub fn connections(self) -> usize {
        (self.0 / 2).min(CONNECTIONS_MAX)
    }

    /// Connections of one credential: half of `connections`.
    pub fn connections_of_credential(self) -> usize {
        self.connections() / 2
    }

    /// Connections that are being made at a time, of all clients together: each is one of `connections`.
    pub fn dials(self) -> usize {
        (self.0 / 4).clamp(256, 8192)
    }

    /// Names that are looked up at a time, of all clients together. One takes up to 16 sockets, where two
    /// name servers are silent.
    pub fn lookups(self) -> usize {
        (self.0 / 64).clamp(128, 1024)
    }

    /// UDP associations of all clients together, of two sockets each.
    pub fn associations(self) -> usize {
        (self.0 / 32).clamp(128, 2048)
    }

    /// Sessions of so many paths each: a quarter of all are for paths.
    pub fn sessions(self, paths: usize) -> usize {
        (self.0 / 4 / paths.max(1)).max(1)
    }
}

/// More connections than ports of one address.
const CONNECTIONS_MAX: usize = 1 << 18;

/// Uses as many file descriptors as the system permits: each connection is one, and the usual soft
/// limit of 1024 (for programs that call `select`) is less than one client may have open.
pub fn raise_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_shared_so_that_some_stay_free() {
        for limit in [64, 1024, 4096, 65_536, 1 << 20] {
            let all = Descriptors(limit);
            let paths = 16 * all.sessions(16);
            assert!(all.connections() + paths <= limit * 3 / 4, "{limit}");
            assert!(2 * all.connections_of_credential() <= all.connections(), "{limit}");
            if limit >= 65_536 {
                let others = 2 * all.associations() + 16 * all.lookups();
                assert!(others <= limit / 3, "{limit}");
            }
        }
        assert_eq!(Descriptors(4096).sessions(16), 64);
        assert_eq!(Descriptors(65_536).connections_of_credential(), 16_384);
    }
}
