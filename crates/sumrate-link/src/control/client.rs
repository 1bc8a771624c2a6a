//! The commands' side.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::geteuid;

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
    /// Somebody else answers.
    #[error(
        "{path} is served by user {uid}, who is neither you nor root: nothing was asked; have the socket removed, or name another one with --control"
    )]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// Who serves it.
        uid: u32,
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
    let failed = |source| AskError::Connect { path: path.to_owned(), source };
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    let peer = getsockopt(&stream, PeerCredentials).map_err(|errno| failed(errno.into()))?;
    if peer.uid() != 0 && peer.uid() != geteuid().as_raw() {
        return Err(AskError::Stranger { path: path.to_owned(), uid: peer.uid() });
    }
    let mut exchange = || {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(text.as_bytes())?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        Ok(line)
    };
    let line = exchange().map_err(failed)?;
    match serde_json::from_str(&line)? {
        Answer::Done { result } => Ok(result),
        Answer::Refused { error } => Err(AskError::Refused(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::server::Server;
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Stdio};

    #[test]
    fn the_socket_is_open_to_its_user_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("link.sock");
        let _server = Server::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_emulator_of_another_user_is_not_asked() {
        const NOBODY: u32 = 65534;
        if !geteuid().is_root() {
            return test_skip::skipped("only root can become somebody else");
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o777)).unwrap();
        let path = directory.path().join("link.sock");
        let squat = "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); \
                     s.listen(); print('there', flush=True); sys.stdin.read()";
        let mut squatter = Command::new("python3")
            .args(["-c", squat])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(squatter.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let asked = ask(&path, &Request::Stats { reset: false });
        drop(squatter.stdin.take());
        squatter.wait().unwrap();
        assert!(matches!(asked, Err(AskError::Stranger { uid: NOBODY, .. })), "{asked:?}");
    }
}
