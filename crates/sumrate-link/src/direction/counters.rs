//! What happened in one direction of a link.

use serde::Serialize;

/// Counts since the start. Bytes are IP bytes, headers included; a segment is one packet on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets read from the device; a super-packet counts once.
    pub packets_in: u64,
    /// Segments in them.
    pub segments_in: u64,
    /// Bytes in them.
    pub bytes_in: u64,
    /// Frames written to the other device.
    pub packets_out: u64,
    /// Segments in them.
    pub segments_out: u64,
    /// Bytes in them.
    pub bytes_out: u64,
    /// Segments lost at random.
    pub lost: u64,
    /// Segments that found the queue full.
    pub queue_drops: u64,
    /// Segments that exceeded a policer's burst.
    pub policer_drops: u64,
    /// Segments that left the queue during a blackout.
    pub blackout_drops: u64,
    /// Segments that the device refused to take.
    pub device_drops: u64,
    /// Most bytes that waited at once.
    pub queue_peak_bytes: u64,
}
