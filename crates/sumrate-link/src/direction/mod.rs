//! One direction of a link: policer, queue, transmitter, loss, propagation. Pure: time and packets are arguments.
//!
//! Contract: `arrive` and `apply` may be called at any time that does not go back by more than the caller's clock
//! error; after either, and when `next_deadline` has passed, call `advance`, then `pop_due` until it returns `None`.

mod bucket;
pub mod counters;
pub mod delay;
pub mod loss;
mod pipeline;
mod policer;
pub mod queue;
pub mod rate;
#[cfg(test)]
mod tests;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::config::Direction;

pub use pipeline::Pipeline;

/// The random generator of one direction of one link: it depends on nothing but its arguments.
pub fn generator(seed: u64, link: &str, direction: Direction) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&crate::names::hash(link).to_le_bytes());
    key[16] = match direction {
        Direction::AToB => 1,
        Direction::BToA => 2,
    };
    ChaCha8Rng::from_seed(key)
}
