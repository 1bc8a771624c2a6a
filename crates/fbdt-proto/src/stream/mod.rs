//! Application bytes that wait to be acknowledged.

mod buffer;
mod messages;
mod reader;
mod send;
mod wants;

pub use buffer::SendBuffer;
pub use messages::{First, MOST_WAITING, SendMessages, SentMessages, Unit};
pub use send::{SendState, SendStream};
pub use wants::Wants;
