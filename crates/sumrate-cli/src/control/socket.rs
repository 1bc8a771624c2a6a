//! The socket, beside the status socket.

use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{ControlAnswer, ControlRequest};
use crate::status::{EXCHANGE_TIMEOUT, SocketError, StatusSocket, beside, check_peer};

/// Longest request and answer, in bytes.
const MESSAGE_MAX: u64 = 64 << 10;

/// A change could not be asked for, or was refused.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody serves the socket.
    #[error("nothing accepts changes on {path} ({error}): run this on the machine of `sumrate up`")]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Somebody else serves it.
    #[error(transparent)]
    Stranger(#[from] SocketError),
    /// The answer is none.
    #[error("{path} gave no answer that this version understands: {error}")]
    Malformed {
        /// The socket.
        path: PathBuf,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// The change was refused.
    #[error("{0}")]
    Refused(String),
}

/// Where the process with this status socket takes changes.
pub fn control_path(status: &Path) -> PathBuf {
    beside(status, "control")
}

/// A listening control socket; its file goes when this is dropped.
#[derive(Debug)]
pub struct ControlSocket(StatusSocket);

impl ControlSocket {
    /// Listens beside a status socket.
    ///
    /// # Errors
    /// [`SocketError`] when the path is taken or cannot be made.
    pub fn bind(status: &Path) -> Result<Self, SocketError> {
        StatusSocket::bind(Some(&control_path(status)), "").map(Self)
    }

    /// Answers until the future is dropped, one request after the other.
    pub async fn serve(&self, change: impl Fn(&ControlRequest) -> Result<(), String>) {
        loop {
            let mut stream = self.0.accept().await;
            let exchange = async {
                let error = match read(&mut stream).await {
                    Ok(request) => change(&request).err(),
                    Err(error) => Some(error),
                };
                let mut answer = serde_json::to_vec(&ControlAnswer::new(error))?;
                answer.push(b'\n');
                stream.write_all(&answer).await
            };
            // Whoever says nothing holds up others for a moment, and only its own user's.
            let _ = tokio::time::timeout(EXCHANGE_TIMEOUT, exchange).await;
        }
    }
}

/// A request, up to the end of its line or of what the peer sends.
async fn read(stream: &mut UnixStream) -> Result<ControlRequest, String> {
    let mut line = Vec::new();
    let mut stream = stream.take(MESSAGE_MAX);
    while !line.ends_with(b"\n") {
        match stream.read_buf(&mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    ControlRequest::parse(&line)
}

/// Asks the process behind a control socket for a change.
///
/// # Errors
/// [`ControlError`]
pub async fn request(path: &Path, request: &ControlRequest) -> Result<(), ControlError> {
    let silent = |error| ControlError::Silent { path: path.to_owned(), error };
    let exchange = async {
        let mut stream = UnixStream::connect(path).await.map_err(silent)?;
        check_peer(&stream, path)?;
        write(&mut stream, request).await.map_err(silent)?;
        let mut answer = Vec::new();
        stream.take(MESSAGE_MAX).read_to_end(&mut answer).await.map_err(silent)?;
        Ok(answer)
    };
    let answer = tokio::time::timeout(EXCHANGE_TIMEOUT, exchange)
        .await
        .unwrap_or_else(|_| Err(silent(io::ErrorKind::TimedOut.into())))?;
    let answer: ControlAnswer = serde_json::from_slice(&answer)
        .map_err(|error| ControlError::Malformed { path: path.to_owned(), error })?;
    answer.error.map_or(Ok(()), |error| Err(ControlError::Refused(error)))
}

async fn write(stream: &mut UnixStream, request: &ControlRequest) -> io::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PathChange;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn a_change_is_asked_for_and_answered() {
        let directory = tempfile::tempdir().unwrap();
        let status = directory.path().join("up-1.sock");
        let socket = ControlSocket::bind(&status).unwrap();
        let path = control_path(&status);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let change = PathChange { weight: Some(3), ..PathChange::default() };
        let serve = socket.serve(|request| match request.path.as_str() {
            "wifi" if request.set == change => Ok(()),
            other => Err(format!("no {other}")),
        });
        let ask = async {
            request(&path, &ControlRequest::new("wifi", change)).await.unwrap();
            let refused = request(&path, &ControlRequest::new("x", change)).await;
            assert!(matches!(refused, Err(ControlError::Refused(why)) if why == "no x"));
            let mut stranger = UnixStream::connect(&path).await.unwrap();
            stranger.write_all(b"{\"schema\":\"x\"}\n").await.unwrap();
            let mut answer = String::new();
            stranger.read_to_string(&mut answer).await.unwrap();
            assert!(answer.contains("not a request"), "{answer}");
        };
        tokio::select! {
            () = ask => {}
            () = serve => unreachable!(),
        }
        drop(socket);
        assert!(!path.exists());
    }
}
