//! Changes to a running client, over a socket that only its user can open: one JSON object a
//! connection, and one for the answer.

mod message;
mod socket;

pub use message::{CONTROL_SCHEMA, ControlAnswer, ControlRequest};
pub use socket::{ControlError, ControlSocket, control_path, request};
