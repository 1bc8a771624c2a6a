//! The commands' side.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::protocol::{Answer, Request};

/// How long an emulator may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a command did not work.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody answers.
    #[error(
        "cannot reach an emulator at {path}: {source}; is `sumrate-link run --control {path}` running?"
    )]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The answer is not one.
    #[error("the emulator's answer cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
    /// The emulator refused.
    #[error("the emulator refused: {0}")]
    Refused(String),
}

/// Asks the emulator at `path`.
pub fn ask(path: &Path, request: &Request) -> Result<serde_json::Value, AskError> {
    let mut text = serde_json::to_string(request)?;
    text.push('\n');
    let exchange = || {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(text.as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(line)
    };
    let line = exchange().map_err(|source| AskError::Connect { path: path.to_owned(), source })?;
    match serde_json::from_str(&line)? {
        Answer::Done { result } => Ok(result),
        Answer::Refused { error } => Err(AskError::Refused(error)),
    }
}
