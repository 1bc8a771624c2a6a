//! Reassembly, removal of duplicates, acknowledgements and delivery.
//!
//! Rules: F8, F13.

mod assembler;
mod messages;
mod stream;
mod window;

pub(crate) use assembler::{Assembler, Inserted};
pub(crate) use messages::ReceiveMessages;
pub(crate) use stream::ReceiveStream;
pub(crate) use window::ReceiveWindow;
