//! The socket that sends the history, beside the status socket.

use std::path::{Path, PathBuf};

use super::{History, HistoryReport};
use crate::status::{SocketError, StatusSocket, ask_json, beside};

/// Where the process with this status socket sends its history.
pub fn history_path(status: &Path) -> PathBuf {
    beside(status, "history")
}

/// A listening history socket; its file goes when this is dropped.
#[derive(Debug)]
pub struct HistorySocket(StatusSocket);

impl HistorySocket {
    /// Listens beside a status socket.
    ///
    /// # Errors
    /// [`SocketError`] when the path is taken or cannot be made.
    pub fn bind(status: &Path) -> Result<Self, SocketError> {
        StatusSocket::bind(Some(&history_path(status)), "").map(Self)
    }

    /// Answers until the future is dropped.
    pub async fn serve(&self, history: &History) {
        self.0.serve(|| async { history.report() }).await;
    }
}

/// Asks the process with this status socket for its history. The answer has no hidden characters.
///
/// # Errors
/// [`SocketError::Silent`] where the process has no history, as those of earlier versions.
pub async fn ask_history(status: &Path) -> Result<HistoryReport, SocketError> {
    ask_json(&history_path(status)).await
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    use super::*;
    use crate::history::HISTORY_SCHEMA;

    #[tokio::test]
    async fn the_history_is_answered_to_its_owner_beside_the_status() {
        let directory = tempfile::tempdir().unwrap();
        let status = directory.path().join("up-1.sock");
        assert!(matches!(ask_history(&status).await, Err(SocketError::Silent { .. })));
        let socket = HistorySocket::bind(&status).unwrap();
        let mode = std::fs::metadata(history_path(&status)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let history = History::new(Instant::now());
        history.note_change("wlan0", "wlan0 is\u{1b}[2J a backup now".to_owned());
        let answer = tokio::select! {
            answer = ask_history(&status) => answer.unwrap(),
            () = socket.serve(&history) => unreachable!(),
        };
        assert_eq!(answer.schema, HISTORY_SCHEMA);
        assert!(!answer.events[0].words.contains('\u{1b}'), "{:?}", answer.events);
        drop(socket);
        assert!(!history_path(&status).exists());
    }
}
