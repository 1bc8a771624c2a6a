//! What happens to a process, a line each, for plots: like qlog, with the status as its source.

mod differences;
mod event;
mod file;

pub use differences::Differences;
pub use event::{EVENT_LOG_SCHEMA, EventLine, Header, LogEvent};
pub use file::{EventLog, EventLogError, LOG_MAX};
