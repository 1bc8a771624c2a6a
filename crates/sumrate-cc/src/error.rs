//! Why coupling cannot be had.

use std::io;

use crate::Algorithm;

/// An algorithm could not be loaded, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum CouplingError {
    /// This program has no eBPF programs in it.
    #[error(
        "{0} is not in this build: it was made without clang or without the feature `bpf`; install clang and libelf-dev and build again"
    )]
    NotBuilt(Algorithm),
    /// A privilege is missing.
    #[error(
        "{algorithm} has to be loaded into the kernel, which needs CAP_BPF and CAP_PERFMON: run this as root, which daemons give up again (`--user`), or grant both to it"
    )]
    NotPermitted {
        /// What should be loaded.
        algorithm: Algorithm,
    },
    /// It is loaded, but this process cannot reach its maps.
    #[error(
        "{algorithm} was loaded by another process: to tell it which sockets belong together, or to unload it, needs CAP_SYS_ADMIN; run this as root, which daemons give up again (`--user`)"
    )]
    Unreachable {
        /// What is loaded.
        algorithm: Algorithm,
    },
    /// What is loaded is not what this program would load.
    #[error(
        "{algorithm} was loaded by another build of this program: take it out with `sumrate cc unload {algorithm}`, which connections that use it survive, and start this again"
    )]
    OtherBuild {
        /// What is loaded.
        algorithm: Algorithm,
    },
    /// It is not loaded.
    #[error("{algorithm} is not loaded")]
    NotLoaded {
        /// What was looked for.
        algorithm: Algorithm,
    },
    /// The kernel refused.
    #[error(
        "the kernel does not take {algorithm}: {detail}; it needs BTF and struct_ops (Linux 5.19 or newer)"
    )]
    Refused {
        /// What was tried.
        algorithm: Algorithm,
        /// What libbpf said.
        detail: String,
    },
    /// The system failed.
    #[error("cannot {action} {algorithm}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// With which algorithm.
        algorithm: Algorithm,
        /// What the system said.
        source: io::Error,
    },
}

impl CouplingError {
    /// Whether a privilege would cure it.
    pub fn is_privilege(&self) -> bool {
        matches!(self, Self::NotPermitted { .. } | Self::Unreachable { .. })
    }
}
