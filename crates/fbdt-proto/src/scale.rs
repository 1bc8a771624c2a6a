//! Times and sizes that rules share: below them, differences do not matter.

use core::time::Duration;

/// Timers, samples and frames are this fine.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// Estimated delays are wrong by about this: radios and schedulers gather packets for as long.
pub(crate) const NOISE: Duration = Duration::from_millis(10);
/// A live process or radio may pause for this long.
pub(crate) const HICCUP: Duration = Duration::from_millis(500);

/// Smallest frame payload, in bytes: headers cost more below.
pub(crate) const LEAST_FRAME: u64 = 4 << 10;
/// Largest frame payload, in bytes: less is one piece, a web page's object for example.
pub(crate) const FRAME: u64 = fbdt_wire::Limits::MAX_FRAME as u64;
/// Bytes that a writer or a socket takes at once.
pub(crate) const TURN: u64 = 4 * FRAME;
