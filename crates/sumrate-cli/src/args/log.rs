//! Where and how events are logged.

use clap::ValueEnum;

/// How the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// The journal for a service, short lines on a terminal, else text
    #[default]
    Auto,
    /// Lines of text on stderr
    Text,
    /// One JSON object a line on stderr
    Json,
    /// To the journal of systemd, with fields
    Journald,
}
