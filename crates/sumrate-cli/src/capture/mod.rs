//! The connections of programs that know nothing of Sumrate, as [`sumrate_capture`] takes them: each on
//! a stream of its own, questions to name servers and the datagrams of each program on streams too.

mod connections;
mod datagrams;
mod dns;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;

pub(crate) use connections::{Connections, Source};
pub(crate) use dns::NameServer;
