//! Application bytes that wait to be acknowledged.

mod buffer;
mod send;

pub use buffer::SendBuffer;
pub use send::{SendState, SendStream};
