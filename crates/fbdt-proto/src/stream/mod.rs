//! Application bytes that wait to be acknowledged.

mod buffer;
mod messages;
mod reader;
mod send;
mod wants;

pub(crate) use buffer::SendBuffer;
pub(crate) use messages::{First, MOST_WAITING, SendMessages, Unit};
pub(crate) use send::{SendState, SendStream};
pub(crate) use wants::Wants;
