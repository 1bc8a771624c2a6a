//! What became of a copy, while it runs and at its end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Most failures that are remembered one by one.
const FAILURES_MAX: usize = 1000;

/// An entry that was not copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Where it is, below what was copied.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// What became of a copy, as far as this end knows. Bytes are those of files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Files in their place now.
    pub files: u64,
    /// Of those, the ones that were there already, unchanged.
    pub unchanged_files: u64,
    /// Directories in their place now.
    pub directories: u64,
    /// Bytes of those files.
    pub bytes: u64,
    /// Of those, bytes that were sent now; the others were there already.
    pub sent_bytes: u64,
    /// Entries that were not copied.
    pub failed: u64,
    /// The first thousand of them.
    pub failures: Vec<Failure>,
}

impl Tally {
    /// One entry was not copied.
    pub(super) fn fail(&mut self, path: &impl ToString, reason: impl Into<String>) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(Failure { path: path.to_string(), reason: reason.into() });
        }
    }
}

/// How far a copy is; any thread may look.
#[derive(Debug, Default)]
pub struct Progress {
    total_files: AtomicU64,
    total_bytes: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
    moved: AtomicU64,
    current: Mutex<String>,
}

impl Progress {
    pub(super) fn set_total(&self, files: u64, bytes: u64) {
        self.total_files.store(files, Ordering::Relaxed);
        self.total_bytes.store(bytes, Ordering::Relaxed);
        self.files.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that went over the connection; never taken back.
    pub(super) fn add_moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_current(&self, path: &impl ToString) {
        if let Ok(mut current) = self.current.lock() {
            *current = path.to_string();
        }
    }

    /// Files that are settled, and all.
    pub fn files(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.total_files.load(Ordering::Relaxed))
    }

    /// Bytes that are settled, and all.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.total_bytes.load(Ordering::Relaxed))
    }

    /// Bytes that went over the connection, in all attempts together.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// The file that moves now.
    pub fn current(&self) -> String {
        self.current.lock().map(|current| current.clone()).unwrap_or_default()
    }
}
