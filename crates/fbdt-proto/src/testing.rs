//! Parts of the core for tests and benchmarks of other crates.

use bytes::Bytes;
use fbdt_units::Instant;

pub use crate::path::testing::view;
pub use crate::schedule::testing::{Acknowledged, request};

/// Reassembly of one stream.
#[derive(Debug, Default)]
pub struct Assembler(crate::receive::Assembler);

impl Assembler {
    /// Takes in bytes that arrived.
    #[inline]
    pub fn insert(&mut self, now: Instant, offset: u64, payload: &Bytes) {
        self.0.insert(now, offset, payload);
    }

    /// The next bytes in order, at most `max` of them.
    #[inline]
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        self.0.read(max)
    }
}
