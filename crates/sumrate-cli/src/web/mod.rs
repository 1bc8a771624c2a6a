//! What a daemon answers over HTTP to those who watch it.

mod guard;
mod server;
mod site;

pub use guard::{Guard, Refusal};
pub use server::{Answer, HttpError, HttpServer, text};
pub use site::{Token, page};
