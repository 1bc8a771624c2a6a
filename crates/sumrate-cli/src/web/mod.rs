//! What a daemon answers over HTTP to those who watch it, and to those who steer it on the status page.

mod connections;
mod guard;
mod server;
mod site;

pub use guard::{Guard, Refusal};
pub use server::{Answer, HttpError, HttpServer, text};
pub use site::{CHANGES_AT, Site, Token};
