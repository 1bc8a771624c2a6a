//! One TCP connection of a session: its records, its handshake, and the task that runs it.

mod connection;
mod handshake;
mod task;

pub(crate) use connection::{Connection, ConnectionError};
pub(crate) use handshake::{
    Established, HandshakeError, Incoming, exchange, receive_request, secure, send,
};
pub(crate) use task::SubflowTask;
