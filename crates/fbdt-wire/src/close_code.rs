//! Codes of the close frame.

/// Nothing went wrong.
pub const NONE: u32 = 0;
/// A fault of this end.
pub const INTERNAL: u32 = 1;
/// Malformed frame.
pub const WIRE: u32 = 2;
/// Data beyond a limit.
pub const FLOW_CONTROL: u32 = 3;
/// Stream number out of order.
pub const STREAM_NUMBER: u32 = 4;
/// Contradicting stream end.
pub const FINAL_SIZE: u32 = 5;
/// Acknowledgement of unsent bytes.
pub const ACKNOWLEDGEMENT: u32 = 6;
/// Too many pieces out of order.
pub const FRAGMENTS: u32 = 7;
/// Malformed or misplaced control message.
pub const CONTROL: u32 = 8;
/// A message that cannot be.
pub const MESSAGE: u32 = 9;
