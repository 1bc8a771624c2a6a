//! Messages: units that are delivered whole and out of order.
//!
//! Rule: F16.

use core::time::Duration;

/// Offsets that a message takes in its stream's message space beside its bytes: what it costs
/// both ends to keep account of it.
pub(crate) const MESSAGE_OVERHEAD: u64 = 64;
/// Limit of every message space at first; both ends know it.
pub(crate) const FIRST_MESSAGE_WINDOW: u64 = 16 << 10;
/// The largest that one may have: what 2 Gbit/s carry in 67 ms.
pub(crate) const MOST_MESSAGE_WINDOW: u64 = 16 << 20;

/// Which of the messages that wait on a stream goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Importance {
    /// When nothing else waits.
    Low,
    /// Most messages.
    #[default]
    Normal,
    /// Before all others of the stream.
    High,
}

/// What is done so that a message arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {
    /// Sent again until it is acknowledged or its deadline is over; a second path carries a copy
    /// at once as far as its class's budget goes (F11).
    #[default]
    Reliable,
    /// The same, and a second path carries a copy at once whatever it costs.
    Duplicated,
    /// Given to one path, once.
    BestEffort,
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageOptions {
    /// Which goes first.
    pub importance: Importance,
    /// What is done so that it arrives.
    pub delivery: Delivery,
    /// After this time it is worth nothing any more: it is dropped instead of being sent, or sent
    /// again.
    pub lifetime: Option<Duration>,
}

impl MessageOptions {
    /// From the reliable front: before all others of the stream, on the path that delivers first,
    /// and sent again until it arrives.
    pub const FRONT: Self =
        Self { importance: Importance::High, delivery: Delivery::Reliable, lifetime: None };
    /// From the best-effort back: on a path that delivers later where it is there no later, or else
    /// when nothing else waits, and once.
    pub const BACK: Self =
        Self { importance: Importance::Low, delivery: Delivery::BestEffort, lifetime: None };
}
