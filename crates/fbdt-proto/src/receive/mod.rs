//! Reassembly, removal of duplicates, acknowledgements and delivery (F8, F13).

mod assembler;
mod messages;
mod stream;
mod window;

pub use assembler::{Assembler, Inserted};
pub use messages::{ReceiveMessages, ReceivedMessages};
pub use stream::ReceiveStream;
pub use window::ReceiveWindow;
