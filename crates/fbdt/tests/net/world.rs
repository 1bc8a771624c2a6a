//! A server with an application, and clients that connect to it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use fbdt::{
    AcceptLimits, Class, ClientConfig, Config, Credential, CredentialLimits, Link, Listener,
    LocalBinding, PathSpec, ServerConfig, ServerState, Session, Stream, connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// A test that takes longer than this hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Protection of the subflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Tls,
    Plain,
}

/// A running server whose streams answer with what they get.
pub(crate) struct World {
    pub(crate) mode: Mode,
    pub(crate) state: ServerState,
    pub(crate) credential: Credential,
    pub(crate) addresses: Vec<SocketAddr>,
    link: Link,
    /// Sessions as the server sees them, in the order in which they were opened.
    pub(crate) sessions: mpsc::UnboundedReceiver<Session>,
    _directory: tempfile::TempDir,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// What the server does with the streams that clients open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum App {
    Echo,
    /// Leaves them to the test, which has the sessions.
    Nothing,
}

pub(crate) async fn world(mode: Mode) -> World {
    World::start(mode, App::Echo, AcceptLimits::default(), &[loopback(1)]).await
}

pub(crate) fn loopback(last: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, last).into()
}

impl World {
    pub(crate) async fn start(
        mode: Mode,
        app: App,
        limits: AcceptLimits,
        listen: &[IpAddr],
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let credential = state.new_credential("test", CredentialLimits::default()).unwrap();
        let listen = listen.iter().map(|ip| SocketAddr::new(*ip, 0)).collect();
        let config = ServerConfig {
            insecure_plaintext: mode == Mode::Plain,
            limits,
            ..ServerConfig::new(state.clone(), listen)
        };
        let listener = Listener::bind(config).await.unwrap();
        let (sender, sessions) = mpsc::unbounded_channel();
        Self {
            mode,
            state,
            addresses: listener.local_addrs().to_vec(),
            link: listener.link(&credential),
            credential,
            sessions,
            _directory: directory,
            server: tokio::spawn(serve(listener, app, sender)),
        }
    }

    /// The link that the server prints, through text as a user passes it.
    pub(crate) fn link(&self) -> Link {
        self.link.to_string_with_secret().parse().unwrap()
    }

    pub(crate) fn config(&self, paths: Vec<PathSpec>) -> ClientConfig {
        ClientConfig {
            paths,
            insecure_plaintext: self.mode == Mode::Plain,
            proto: Config::default(),
            ..ClientConfig::new(self.link())
        }
    }

    /// Connects over the paths and waits until all of them are up.
    pub(crate) async fn connect(&self, paths: Vec<PathSpec>) -> Session {
        let count = paths.len();
        let session = connect(self.config(paths)).await.unwrap();
        wait_for_paths(&session, count).await;
        session
    }

    /// `count` paths from 127.0.0.1 upwards.
    pub(crate) fn paths(&self, count: u8) -> Vec<PathSpec> {
        (1..=count).map(|n| path_from(loopback(n))).collect()
    }
}

pub(crate) fn path_from(address: IpAddr) -> PathSpec {
    PathSpec {
        name: address.to_string(),
        local: LocalBinding::Address(address),
        ..PathSpec::default()
    }
}

/// A path whose packets go to another address than the link says: a relay, or nowhere.
pub(crate) fn path_to(name: &str, server: SocketAddr) -> PathSpec {
    PathSpec {
        name: name.to_owned(),
        local: LocalBinding::Any,
        server: Some((server.ip(), Some(server.port()))),
        ..PathSpec::default()
    }
}

async fn serve(listener: Listener, app: App, sender: mpsc::UnboundedSender<Session>) {
    while let Ok(session) = listener.accept().await {
        let _ = sender.send(session.clone());
        if app == App::Echo {
            tokio::spawn(async move {
                while let Some(stream) = session.accept_stream().await {
                    tokio::spawn(echo(stream));
                }
            });
        }
    }
}

/// Returns what comes, then the end.
pub(crate) async fn echo(mut stream: Stream) {
    while let Ok(Some(piece)) = stream.read_chunk(usize::MAX).await {
        if stream.write_all(&piece).await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

pub(crate) async fn wait_for_paths(session: &Session, count: usize) {
    eventually(|| up(session) == count).await;
}

/// Paths that have a subflow.
pub(crate) fn up(session: &Session) -> usize {
    session.paths().iter().filter(|p| p.local.is_some()).count()
}

/// Waits until the condition holds; a test that waits in vain fails.
pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.expect("the condition did not come true");
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(PATIENCE, future).await;
    result.expect("it did not end")
}

/// Bytes that look random, the same for the same seed.
pub(crate) struct Pattern(u64);

impl Pattern {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            chunk.copy_from_slice(&self.0.to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Sends `size` bytes through an echoing stream and checks that they all come back.
pub(crate) async fn round_trip(session: &Session, size: usize, seed: u64) {
    let stream = session.open_stream(Class::Background).await.unwrap();
    exchange(stream, size, seed).await;
}

pub(crate) async fn exchange(stream: Stream, size: usize, seed: u64) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let write = async {
        let (mut pattern, mut hash) = (Pattern::new(seed), Context::new(&SHA256));
        let mut buffer = vec![0; 128 * 1024];
        let mut left = size;
        while left > 0 {
            let count = left.min(buffer.len());
            pattern.fill(&mut buffer[..count]);
            hash.update(&buffer[..count]);
            writer.write_all(&buffer[..count]).await.unwrap();
            left -= count;
        }
        writer.shutdown().await.unwrap();
        hash.finish()
    };
    let read = async {
        let (mut hash, mut received) = (Context::new(&SHA256), 0);
        let mut buffer = vec![0; 128 * 1024];
        loop {
            match reader.read(&mut buffer).await.unwrap() {
                0 => return (hash.finish(), received),
                count => {
                    hash.update(&buffer[..count]);
                    received += count;
                }
            }
        }
    };
    let (sent, (got, received)) = within(async { tokio::join!(write, read) }).await;
    assert_eq!(received, size);
    assert_eq!(sent.as_ref(), got.as_ref());
}
