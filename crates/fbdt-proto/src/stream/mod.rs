//! Application bytes that wait to be acknowledged.

mod buffer;
mod messages;
mod reader;
mod send;

pub use buffer::SendBuffer;
pub use messages::{SendMessages, SentMessages, Unit, message_space};
pub use send::{SendState, SendStream};
