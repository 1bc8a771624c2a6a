//! The status over a Unix socket: whoever connects is sent the report as one JSON object.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::StatusReport;
use super::rate::forget_unmeasured;

/// Longest time for one exchange.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer, in bytes.
const ANSWER_MAX: u64 = 64 << 20;
/// Where the services of the package have their sockets (packaging/systemd).
const SERVICE_DIRECTORIES: [&str; 2] = ["/run/sumrate", "/run/sumrate-up"];

/// Why the status socket could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another process answers there.
    #[error("another process serves {0}; stop it or name another --status-socket")]
    InUse(PathBuf),
    /// A file that is no socket is in the way.
    #[error("{0} exists and is no socket; name another path")]
    NotASocket(PathBuf),
    /// The directory for sockets belongs to somebody else or is open to others.
    #[error("{0} is not a directory of yours alone; remove it or set XDG_RUNTIME_DIR")]
    Directory(PathBuf),
    /// The system refused.
    #[error("cannot use the status socket {path}: {error}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Nobody serves it.
    #[error("nothing answers on {path}: {error}; is `sumrate up` or `sumrate serve` running?")]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Nobody has one.
    #[error(
        "nothing runs here: no status socket in {0}; start `sumrate up` or `sumrate serve`, or name its socket with --socket"
    )]
    Nothing(PathBuf),
    /// It is another user's.
    #[error(
        "permission denied to ask the process behind {0}; try again with sudo, or as the user sumrate"
    )]
    Denied(PathBuf),
    /// The answer is no status report.
    #[error("{path} gave no status report: {error}")]
    Malformed {
        /// The socket.
        path: PathBuf,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

/// A listening status socket; its file goes when this is dropped.
#[derive(Debug)]
pub struct StatusSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl StatusSocket {
    /// Listens on `path`, or on a name of this process's own in the default directory. A socket that
    /// nobody serves any more is replaced.
    ///
    /// # Errors
    /// [`SocketError`] when the path is taken or cannot be made.
    pub fn bind(path: Option<&Path>, command: &str) -> Result<Self, SocketError> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => {
                let directory = default_directory();
                make_private(&directory)?;
                directory.join(format!("{command}-{}.sock", std::process::id()))
            }
        };
        let failed = |error| SocketError::Io { path: path.clone(), error };
        remove_stale(&path)?;
        // Bound under a mask, so that the socket is never open to others, not even briefly.
        let mask = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(&path);
        nix::sys::stat::umask(mask);
        Ok(Self { listener: bound.map_err(failed)?, path })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection of this process's user, or of root.
    pub(crate) async fn accept(&self) -> UnixStream {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            // The socket's mode keeps others out; where a file system does not heed it, this does.
            if stream.peer_cred().is_ok_and(|peer| may_ask(peer.uid())) {
                return stream;
            }
        }
    }

    /// Answers until the future is dropped.
    pub async fn serve<F: Future<Output = StatusReport>>(&self, report: impl Fn() -> F) {
        loop {
            let mut stream = self.accept().await;
            let Ok(mut answer) = serde_json::to_vec(&report().await) else { continue };
            answer.push(b'\n');
            tokio::spawn(async move {
                let _ = tokio::time::timeout(EXCHANGE_TIMEOUT, stream.write_all(&answer)).await;
            });
        }
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Asks the process behind a socket.
///
/// # Errors
/// [`SocketError::Silent`] when nobody is there.
pub async fn ask(path: &Path) -> Result<StatusReport, SocketError> {
    let silent = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => SocketError::Denied(path.to_owned()),
        _ => SocketError::Silent { path: path.to_owned(), error },
    };
    let exchange = async {
        let stream = UnixStream::connect(path).await?;
        let mut answer = Vec::new();
        stream.take(ANSWER_MAX).read_to_end(&mut answer).await?;
        Ok(answer)
    };
    let answer = tokio::time::timeout(EXCHANGE_TIMEOUT, exchange)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(silent)?;
    let mut report = serde_json::from_slice(&answer)
        .map_err(|error| SocketError::Malformed { path: path.to_owned(), error })?;
    forget_unmeasured(&mut report);
    Ok(report)
}

/// `$XDG_RUNTIME_DIR/sumrate`, or a private directory in `/tmp` where that is not set.
pub fn default_directory() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty()) {
        Some(runtime) if !is_of_others(Path::new(&runtime)) => {
            PathBuf::from(runtime).join("sumrate")
        }
        _ => PathBuf::from(format!("/tmp/sumrate-{}", nix::unistd::geteuid())),
    }
}

/// Asks everybody who answers on this machine: this user's own processes, else the services.
///
/// # Errors
/// [`SocketError::Denied`] when there are services that this user may not ask, and
/// [`SocketError::Nothing`] when there is nobody.
pub async fn ask_all() -> Result<Vec<(PathBuf, StatusReport)>, SocketError> {
    ask_all_in(&default_directory(), &SERVICE_DIRECTORIES.map(PathBuf::from)).await
}

async fn ask_all_in(
    own: &Path,
    services: &[PathBuf],
) -> Result<Vec<(PathBuf, StatusReport)>, SocketError> {
    let mut denied = None;
    let own_alone = [own.to_owned()];
    for directories in [&own_alone[..], services] {
        let mut answers = Vec::new();
        for directory in directories {
            let sockets = match find_sockets(directory) {
                Ok(sockets) => sockets,
                Err(error) => {
                    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
                    denied = denied.or(is_denied.then(|| directory.clone()));
                    continue;
                }
            };
            for socket in sockets {
                match ask(&socket).await {
                    Ok(report) => answers.push((socket, report)),
                    Err(SocketError::Denied(socket)) => denied = denied.or(Some(socket)),
                    Err(_) => {}
                }
            }
        }
        if !answers.is_empty() {
            return Ok(answers);
        }
    }
    Err(match denied {
        Some(place) => SocketError::Denied(place),
        None => SocketError::Nothing(own.to_owned()),
    })
}

/// The sockets in a directory, in order.
fn find_sockets(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sock") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Another user's runtime directory, as after `--user`, is no place for a socket.
fn is_of_others(directory: &Path) -> bool {
    std::fs::metadata(directory).is_ok_and(|found| found.uid() != nix::unistd::geteuid().as_raw())
}

/// Its own user and root.
fn may_ask(uid: u32) -> bool {
    uid == 0 || uid == nix::unistd::geteuid().as_raw()
}

fn make_private(directory: &Path) -> Result<(), SocketError> {
    let failed = |error| SocketError::Io { path: directory.to_owned(), error };
    match std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let found = std::fs::symlink_metadata(directory).map_err(failed)?;
    let private = found.is_dir()
        && found.uid() == nix::unistd::geteuid().as_raw()
        && found.permissions().mode() & 0o022 == 0;
    if private { Ok(()) } else { Err(SocketError::Directory(directory.to_owned())) }
}

fn remove_stale(path: &Path) -> Result<(), SocketError> {
    use std::os::unix::fs::FileTypeExt;
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(SocketError::InUse(path.to_owned()));
    }
    std::fs::remove_file(path).map_err(|error| SocketError::Io { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::STATUS_SCHEMA;

    fn report() -> StatusReport {
        StatusReport {
            schema: STATUS_SCHEMA.to_owned(),
            version: "0".to_owned(),
            role: "client".to_owned(),
            pid: 1,
            uptime_s: 0.5,
            ..StatusReport::default()
        }
    }

    #[tokio::test]
    async fn asked_and_answered_and_gone_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("up-1.sock");
        let socket = StatusSocket::bind(Some(&path), "up").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(matches!(StatusSocket::bind(Some(&path), "up"), Err(SocketError::InUse(_))));
        let answer = tokio::select! {
            answer = ask(&path) => answer.unwrap(),
            () = socket.serve(|| async { report() }) => unreachable!(),
        };
        assert_eq!(answer, report());
        assert_eq!(find_sockets(directory.path()).unwrap(), std::slice::from_ref(&path));
        drop(socket);
        assert!(matches!(ask(&path).await, Err(SocketError::Silent { .. })));
    }

    #[tokio::test]
    async fn services_are_asked_where_nothing_of_ones_own_answers() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let (own, services) = (place("own"), [place("serve"), place("none"), place("up")]);
        for made in [&own, &services[0], &services[2]] {
            std::fs::create_dir(made).unwrap();
        }
        let asked = ask_all_in(&own, &services).await;
        assert!(matches!(asked, Err(SocketError::Nothing(path)) if path == own));
        let bind =
            |directory: &Path| StatusSocket::bind(Some(&directory.join("x.sock")), "up").unwrap();
        let found = async || {
            let found = ask_all_in(&own, &services).await.unwrap();
            found.into_iter().map(|(path, _)| path).collect::<Vec<_>>()
        };
        let (serve, up) = (bind(&services[0]), bind(&services[2]));
        let both = tokio::select! {
            both = found() => both,
            () = serve.serve(|| async { report() }) => unreachable!(),
            () = up.serve(|| async { report() }) => unreachable!(),
        };
        assert_eq!(both, [services[0].join("x.sock"), services[2].join("x.sock")]);
        let mine = bind(&own);
        let one = tokio::select! {
            one = found() => one,
            () = mine.serve(|| async { report() }) => unreachable!(),
        };
        assert_eq!(one, [own.join("x.sock")]);
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_file_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(StatusSocket::bind(Some(&path), "up").is_ok());
        let file = directory.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(matches!(StatusSocket::bind(Some(&file), "up"), Err(SocketError::NotASocket(_))));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
    }
}
