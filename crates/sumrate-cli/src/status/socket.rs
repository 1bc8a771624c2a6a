//! The status over a Unix socket: whoever connects is sent the report as one JSON object.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fbdt_proto::plain_text::plain;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::StatusReport;
use super::peer::{self, Process, is_own_or_root};
use super::rate::forget_unmeasured;
use crate::private_directory::{self, DirectoryError};

/// Longest time for one exchange.
pub(crate) const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);
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
    #[error("{0} exists and is not a socket; name another path")]
    NotASocket(PathBuf),
    /// The directory for sockets belongs to somebody else or is open to others.
    #[error("{0}, or set XDG_RUNTIME_DIR to a directory of yours alone")]
    Directory(#[from] DirectoryError),
    /// Somebody else serves it.
    #[error(
        "{path} is served by user {uid}, who is neither you nor root: its answer is not read; have the socket removed, or name another one with --socket"
    )]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// The user that serves it.
        uid: u32,
    },
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
                let directory = private_directory::of_runtime();
                private_directory::make(&directory)?;
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
            if stream.peer_cred().is_ok_and(|peer| is_own_or_root(peer.uid())) {
                return stream;
            }
        }
    }

    /// Answers until the future is dropped.
    pub async fn serve<T: Serialize, F: Future<Output = T>>(&self, report: impl Fn() -> F) {
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

/// Asks the process behind a socket. Its report has no hidden characters.
///
/// # Errors
/// [`SocketError::Silent`] when nobody is there, [`SocketError::Stranger`] when it is not this user's.
pub async fn ask(path: &Path) -> Result<StatusReport, SocketError> {
    let mut report = ask_json(path).await?;
    forget_unmeasured(&mut report);
    Ok(report)
}

/// Asks the process behind a socket for its JSON object, without hidden characters.
pub(crate) async fn ask_json<R: DeserializeOwned>(path: &Path) -> Result<R, SocketError> {
    let (report, ()) = question(path, |_| Ok(())).await?;
    Ok(report)
}

/// Asks for a report and returns the process that sent it.
pub(crate) async fn ask_process(path: &Path) -> Result<(StatusReport, Process), SocketError> {
    let (mut report, process) = question(path, Process::behind).await?;
    forget_unmeasured(&mut report);
    Ok((report, process))
}

/// `notice` sees the connection before the answer is read.
async fn question<R: DeserializeOwned, T>(
    path: &Path,
    notice: impl FnOnce(&UnixStream) -> io::Result<T>,
) -> Result<(R, T), SocketError> {
    let silent = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => SocketError::Denied(path.to_owned()),
        _ => SocketError::Silent { path: path.to_owned(), error },
    };
    let exchange = async {
        let stream = UnixStream::connect(path).await.map_err(silent)?;
        peer::check(&stream, path)?;
        let noticed = notice(&stream).map_err(silent)?;
        let mut answer = Vec::new();
        stream.take(ANSWER_MAX).read_to_end(&mut answer).await.map_err(silent)?;
        Ok((answer, noticed))
    };
    let (answer, noticed) = tokio::time::timeout(EXCHANGE_TIMEOUT, exchange)
        .await
        .unwrap_or_else(|_| Err(silent(io::ErrorKind::TimedOut.into())))?;
    let report = serde_json::from_slice(&answer)
        .and_then(|report| serde_json::from_value(plain_strings(report)))
        .map_err(|error| SocketError::Malformed { path: path.to_owned(), error })?;
    Ok((report, noticed))
}

/// The value with each of its strings plain, names of fields among them.
fn plain_strings(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain(&text)),
        Value::Array(items) => items.into_iter().map(plain_strings).collect(),
        Value::Object(fields) => {
            let plain = |(name, field): (String, Value)| (plain(&name), plain_strings(field));
            fields.into_iter().map(plain).collect()
        }
        other => other,
    }
}

/// Asks everybody who answers on this machine: this user's own processes, else the services.
///
/// # Errors
/// [`SocketError::Directory`] or [`SocketError::Stranger`] when somebody else was first there,
/// [`SocketError::Denied`] when there are services that this user may not ask, and
/// [`SocketError::Nothing`] when there is nobody.
pub async fn ask_all() -> Result<Vec<(PathBuf, StatusReport)>, SocketError> {
    let own = private_directory::of_runtime();
    ask_all_in(&own, &SERVICE_DIRECTORIES.map(PathBuf::from)).await
}

async fn ask_all_in(
    own: &Path,
    services: &[PathBuf],
) -> Result<Vec<(PathBuf, StatusReport)>, SocketError> {
    let (mut denied, mut distrusted) = (None, None);
    let own_alone = [own.to_owned()];
    for (directories, of_services) in [(&own_alone[..], false), (services, true)] {
        let mut answers = Vec::new();
        for directory in directories {
            let sockets = match find_sockets(directory, of_services) {
                Ok(sockets) => sockets,
                Err(SocketError::Denied(place)) => {
                    denied = denied.or(Some(place));
                    continue;
                }
                Err(error) => {
                    distrusted = distrusted.or(Some(error));
                    continue;
                }
            };
            for socket in sockets {
                match ask(&socket).await {
                    Ok(report) => answers.push((socket, report)),
                    Err(SocketError::Denied(socket)) => denied = denied.or(Some(socket)),
                    Err(error @ SocketError::Stranger { .. }) => {
                        distrusted = distrusted.or(Some(error));
                    }
                    Err(_) => {}
                }
            }
        }
        if !answers.is_empty() {
            return Ok(answers);
        }
    }
    let denied = denied.map(SocketError::Denied);
    Err(distrusted.or(denied).unwrap_or_else(|| SocketError::Nothing(own.to_owned())))
}

/// The sockets in a directory, in order; none where others than its user can have put them.
fn find_sockets(directory: &Path, of_services: bool) -> Result<Vec<PathBuf>, SocketError> {
    match judge(directory, of_services) {
        Err(SocketError::Directory(error)) if error.is_not_found() => return Ok(Vec::new()),
        judged => judged?,
    }
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => SocketError::Denied(directory.to_owned()),
        _ => SocketError::Io { path: directory.to_owned(), error },
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "sock") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Checks that sockets in a directory may be asked. In `/run` only root makes directories, and gives those
/// of services to their user, whom root may ask.
fn judge(directory: &Path, of_services: bool) -> Result<(), SocketError> {
    match private_directory::check(directory) {
        Err(DirectoryError::Foreign { .. }) if of_services => match nix::unistd::geteuid() {
            user if user.is_root() => Ok(()),
            _ => Err(SocketError::Denied(directory.to_owned())),
        },
        judged => Ok(judged?),
    }
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

/// The file of another kind beside a status socket: the ending `.sock` is replaced, any other is kept.
pub fn beside(status: &Path, kind: &str) -> PathBuf {
    match status.extension() {
        Some(ending) if ending != "sock" => {
            let mut name = status.as_os_str().to_owned();
            name.push(format!(".{kind}"));
            name.into()
        }
        _ => status.with_extension(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::STATUS_SCHEMA;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn two_status_sockets_never_share_a_file_beside_them() {
        let at = |status: &str| beside(Path::new(status), "control").display().to_string();
        assert_eq!(at("/run/up-1.sock"), "/run/up-1.control");
        assert_eq!(at("/run/up"), "/run/up.control");
        assert_eq!(at("/run/s.1"), "/run/s.1.control");
        assert_eq!(at("/run/s.2"), "/run/s.2.control");
    }

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
        assert_eq!(find_sockets(directory.path(), false).unwrap(), std::slice::from_ref(&path));
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
    async fn a_directory_that_others_can_change_is_not_asked() {
        let directory = tempfile::tempdir().unwrap();
        let (own, service) = (directory.path().join("own"), directory.path().join("service"));
        for made in [&own, &service] {
            std::fs::create_dir(made).unwrap();
        }
        let planted = StatusSocket::bind(Some(&own.join("up-1.sock")), "up").unwrap();
        let set_mode = |mode| {
            std::fs::set_permissions(&own, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let asked = async || {
            tokio::select! {
                asked = ask_all_in(&own, std::slice::from_ref(&service)) => asked,
                () = planted.serve(|| async { report() }) => unreachable!(),
            }
        };
        set_mode(0o777);
        let error = asked().await.unwrap_err();
        assert!(error.to_string().contains("others can write to it"), "{error}");
        if nix::unistd::geteuid().is_root() {
            set_mode(0o755);
            std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
            let error = asked().await.unwrap_err();
            assert!(error.to_string().contains("belongs to user 65534"), "{error}");
        }
        // A service of this machine is asked all the same.
        let real = StatusSocket::bind(Some(&service.join("up.sock")), "up").unwrap();
        let found = tokio::select! {
            found = asked() => found.unwrap(),
            () = real.serve(|| async { report() }) => unreachable!(),
        };
        assert_eq!(found, [(service.join("up.sock"), report())]);
    }

    #[tokio::test]
    async fn nothing_hidden_in_a_report_comes_through() {
        use fbdt_proto::plain_text::is_hidden;
        let hostile = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{200b}\u{2028}\u{e0041}\n";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("up.sock");
        let mut said = serde_json::to_value(report()).unwrap();
        for field in ["version", "role"] {
            said[field] = hostile.into();
        }
        said["proxies"]["socks"] = hostile.into();
        said["unrouted_interfaces"] = serde_json::json!([hostile]);
        said["outage"] =
            serde_json::json!({"since_s": 1.0, "last_error": hostile, "next_attempt_s": null});
        let listener = UnixListener::bind(&path).unwrap();
        let answer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(said.to_string().as_bytes()).await.unwrap();
        };
        let (asked, ()) = tokio::join!(ask(&path), answer);
        let mut table = Vec::new();
        crate::status::write_table(&mut table, &asked.unwrap(), true).unwrap();
        let table = String::from_utf8(table).unwrap();
        assert!(table.contains("]0;owned"), "{table:?}");
        assert!(!table.contains(|c| c != '\n' && is_hidden(c)), "{table:?}");
        assert!(!table.contains("owned\n"), "no line can be forged: {table:?}");
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
