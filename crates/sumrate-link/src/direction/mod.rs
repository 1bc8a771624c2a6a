//! One direction of a link: queue, transmitter, loss, propagation. Pure: time and packets are arguments.
//!
//! Contract: `arrive` and `apply` may be called at any time that does not go back by more than the caller's clock
//! error; after either, and when `next_deadline` has passed, call `advance`, then `pop_due` until it returns `None`.

mod bucket;
pub mod counters;
pub mod delay;
pub mod loss;
mod pipeline;
pub mod queue;
pub mod rate;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

pub use pipeline::Pipeline;

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From side a to side b.
    AToB,
    /// From side b to side a.
    BToA,
}

impl Direction {
    /// Both, in the order in which they are listed everywhere.
    pub const ALL: [Direction; 2] = [Direction::AToB, Direction::BToA];

    /// 0 or 1, its place in `ALL`.
    pub fn index(self) -> usize {
        match self {
            Direction::AToB => 0,
            Direction::BToA => 1,
        }
    }

    /// The way back.
    pub fn reverse(self) -> Direction {
        match self {
            Direction::AToB => Direction::BToA,
            Direction::BToA => Direction::AToB,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::AToB => "a_to_b",
            Direction::BToA => "b_to_a",
        })
    }
}

/// One direction or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// From side a to side b.
    AToB,
    /// From side b to side a.
    BToA,
    /// Both.
    #[default]
    Both,
}

impl Directions {
    /// The directions meant.
    pub fn list(self) -> &'static [Direction] {
        match self {
            Directions::AToB => &[Direction::AToB],
            Directions::BToA => &[Direction::BToA],
            Directions::Both => &Direction::ALL,
        }
    }
}

impl FromStr for Directions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "a_to_b" => Ok(Directions::AToB),
            "b_to_a" => Ok(Directions::BToA),
            "both" => Ok(Directions::Both),
            _ => Err(format!("direction must be a_to_b, b_to_a or both, not {text:?}")),
        }
    }
}

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
