//! What programs send into the TUN device, as a fuzz target.

pub use crate::tun::fuzzing::packet;
