//! Where and how events are logged.

use clap::ValueEnum;

/// How the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// To the journal where this runs as a service, else as text
    #[default]
    Auto,
    /// Lines of text on stderr
    Text,
    /// One JSON object a line on stderr
    Json,
    /// To the journal of systemd, with fields
    Journald,
}
