//! Types of single settings: direction, rate, queue, jitter, radio sleep.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::time::Nanos;
use crate::trace::Trace;

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

/// How fast.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSetting {
    /// As fast as the machine can.
    Unlimited,
    /// Bits per second.
    Constant(u64),
    /// Follows a trace, repeated at its end.
    Trace(Arc<Trace>),
}

impl RateSetting {
    /// Bits per second; the mean of a trace; `None`: unlimited.
    pub fn nominal(&self) -> Option<u64> {
        match self {
            RateSetting::Unlimited => None,
            RateSetting::Constant(rate) => Some(*rate),
            RateSetting::Trace(trace) => Some(trace.mean_rate()),
        }
    }
}

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// What the link sends in this time (a trace counts with its mean rate).
    Time(Nanos),
    /// This many segments.
    Packets(u64),
}

/// How the delay of packets varies; each packet on the wire is drawn independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// Extra delay, uniform from 0 to this; 0: none.
    Uniform(Nanos),
    /// Normal with this standard deviation around the delay; a delay below 0 becomes 0.
    Normal(Nanos),
}

impl Jitter {
    /// No variation.
    pub const NONE: Jitter = Jitter::Uniform(0);

    /// Whether every packet takes the same time.
    pub fn is_none(self) -> bool {
        matches!(self, Jitter::Uniform(0) | Jitter::Normal(0))
    }
}

/// When a radio sleeps and how long it takes to wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// It sleeps after this time without a packet in either direction.
    pub after: Nanos,
    /// What comes then waits this long, and so does what comes meanwhile.
    pub wake: Nanos,
}
