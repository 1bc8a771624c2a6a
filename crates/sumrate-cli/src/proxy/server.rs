//! Accepts proxy clients, within limits, and relays each over a stream of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connect::connect_as;
use super::{associate, http, silent, socks5};
use crate::args::ProxyAuth;
use crate::classes::{ClassRules, Guess};
use crate::exit::Allowance;
use crate::relay::relay;
use crate::socket;
use crate::tunnel::Tunnel;

/// Longest time for a client to say what it wants.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after the system refused to accept (no file descriptor left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Which protocol a proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    /// SOCKS5.
    Socks5,
    /// HTTP CONNECT.
    Http,
}

/// A listening proxy.
pub struct Proxy {
    kind: ProxyKind,
    listener: TcpListener,
    auth: Option<Arc<ProxyAuth>>,
    connections: Arc<Semaphore>,
    rules: Arc<ClassRules>,
    stop: CancellationToken,
}

impl Proxy {
    /// A proxy on a socket that listens already; at most `connections` at a time.
    pub fn new(
        kind: ProxyKind,
        listener: TcpListener,
        auth: Option<Arc<ProxyAuth>>,
        connections: u32,
    ) -> Self {
        let connections = Arc::new(Semaphore::new(connections as usize));
        let stop = CancellationToken::new();
        Self { kind, listener, auth, connections, rules: Arc::default(), stop }
    }

    /// The same with rules for the classes of connections.
    #[must_use]
    pub fn with_class_rules(self, rules: ClassRules) -> Self {
        Self { rules: Arc::new(rules), ..self }
    }

    /// Accepts nobody any more once `stop` is cancelled.
    #[must_use]
    pub fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// The address that clients connect to.
    ///
    /// # Errors
    /// What the system says.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is stopped, and then until the last connection has ended. Dropping the future
    /// ends the connections too.
    pub async fn run<T: Tunnel>(self, tunnel: T) {
        let mut tasks = JoinSet::new();
        loop {
            // A client beyond the limit waits in the kernel's queue, unaccepted.
            let next = async {
                let permit = Arc::clone(&self.connections).acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                () = self.stop.cancelled() => break,
            };
            let Ok(permit) = permit else { break };
            let client = match accepted {
                Ok((client, _)) => client,
                Err(error) => {
                    tracing::warn!(%error, "a proxy client could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            socket::tune_accepted(&client);
            let (kind, auth, tunnel) = (self.kind, self.auth.clone(), tunnel.clone());
            let rules = Arc::clone(&self.rules);
            tasks.spawn(async move {
                serve(kind, client, auth.as_deref(), &tunnel, &rules).await;
                drop(permit);
            });
            while tasks.try_join_next().is_some() {}
        }
        drop(self.listener);
        while tasks.join_next().await.is_some() {}
    }
}

async fn serve<T: Tunnel>(
    kind: ProxyKind,
    mut client: TcpStream,
    auth: Option<&ProxyAuth>,
    tunnel: &T,
    rules: &ClassRules,
) {
    let mut early = Vec::new();
    let handshake = read_target(kind, &mut client, auth, &mut early);
    let (target, told_of) = match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(read)) => read,
        Ok(Err(reason)) => return tracing::debug!(reason, "a proxy client was turned away"),
        Err(_) => return tracing::debug!("a proxy client said nothing for 10 s"),
    };
    let socks5::Request { command, target: socks5::Target { host, port } } = target;
    if command == socks5::Command::UdpAssociate {
        if told_of == Told::Nothing {
            return tracing::debug!("a client that waits for no answer wants datagrams");
        }
        return associate::serve(client, tunnel, rules, port).await;
    }
    let class = rules.class_of(&host, port);
    let connected = connect_as(tunnel, &host, port, class).await;
    let told = match (&connected, kind) {
        _ if told_of == Told::Nothing => Ok(()),
        (Ok(_), _) if told_of == Told::Failure => Ok(()),
        (Ok(_), ProxyKind::Socks5) => socks5::reply(&mut client, socks5::Reply::Succeeded).await,
        (Ok(_), ProxyKind::Http) => http::established(&mut client).await,
        (Err(failure), ProxyKind::Socks5) => socks5::reply(&mut client, failure.code.into()).await,
        (Err(failure), ProxyKind::Http) => {
            http::failed(&mut client, failure.code, &failure.message).await
        }
    };
    let guess = class.is_none().then(Guess::default);
    match (connected, told) {
        (Ok(stream), Ok(())) => {
            match relay(stream, client, &early, &Allowance::default(), guess).await {
                Ok(relayed) => tracing::debug!(host, port, ?relayed, "a connection ended"),
                Err(error) => tracing::debug!(host, port, %error, "a connection failed"),
            }
        }
        (Err(failure), _) => {
            tracing::info!(host, port, %failure, "no connection");
            if told_of == Told::Nothing {
                socket::reset_on_close(&client);
            }
        }
        (Ok(_), Err(error)) => tracing::debug!(host, port, %error, "the client went away"),
    }
}

/// What a client waits for before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Nothing: it has gone on already.
    Nothing,
    /// Nothing of the proxy's, but where there is no connection the reason is the answer.
    Failure,
    /// Whether there is a connection.
    Outcome,
}

/// Where the client wants to go, and whether it is to be told what became of it.
async fn read_target(
    kind: ProxyKind,
    client: &mut TcpStream,
    auth: Option<&ProxyAuth>,
    early: &mut Vec<u8>,
) -> Result<(socks5::Request, Told), String> {
    match kind {
        ProxyKind::Socks5 => {
            if silent::is_wanted(client, early).await.map_err(|error| error.to_string())? {
                let request = silent::handshake(client, auth, early).await;
                return request
                    .map(|request| (request, Told::Nothing))
                    .map_err(|error| error.to_string());
            }
            let request = socks5::handshake(client, auth, early).await;
            request.map(|request| (request, Told::Outcome)).map_err(|error| error.to_string())
        }
        ProxyKind::Http => http::handshake(client, auth, early)
            .await
            .map(|asked| {
                let told = if asked.head.is_some() { Told::Failure } else { Told::Outcome };
                early.splice(..0, asked.head.into_iter().flatten());
                (socks5::Request::connect(asked.target), told)
            })
            .map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Answer, FailureCode, Request, read_request, write_answer};
    use crate::tunnel::in_memory::pipe_tunnel;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A proxy whose server echoes one message, or refuses when the port is 1.
    async fn start(kind: ProxyKind) -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = socket::listen("127.0.0.1:0".parse().unwrap(), "cubic").unwrap();
        let proxy = Proxy::new(kind, listener, None, 2);
        let address = proxy.address().unwrap();
        let (tunnel, mut streams) = pipe_tunnel();
        tokio::spawn(async move {
            while let Some(mut stream) = streams.recv().await {
                let Ok(Request::Connect(request)) = read_request(&mut stream).await else {
                    continue;
                };
                let answer = match request.port {
                    1 => Answer::Refused {
                        code: FailureCode::Refused,
                        message: "refused it was".to_owned(),
                    },
                    _ => Answer::Ready(String::new()),
                };
                write_answer(&mut stream, &answer).await.unwrap();
                let mut text = [0; 4];
                if stream.read_exact(&mut text).await.is_ok() {
                    stream.write_all(&text).await.unwrap();
                }
            }
        });
        (address, tokio::spawn(proxy.run(tunnel)))
    }

    #[tokio::test]
    async fn socks5_end_to_end_with_early_data() {
        let (address, task) = start(ProxyKind::Socks5).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"\x05\x01\x00\x05\x01\x00\x03\x01a\x00\x50ping").await.unwrap();
        let mut answered = [0; 2 + 10 + 4];
        client.read_exact(&mut answered).await.unwrap();
        assert_eq!(&answered[..4], [5, 0, 5, 0]);
        assert_eq!(&answered[12..], b"ping");
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"\x05\x01\x00\x05\x01\x00\x03\x01a\x00\x01").await.unwrap();
        let mut answered = Vec::new();
        client.read_to_end(&mut answered).await.unwrap();
        assert_eq!(answered[3], socks5::Reply::Refused as u8);
        task.abort();
    }

    #[tokio::test]
    async fn http_connect_end_to_end() {
        let (address, task) = start(ProxyKind::Http).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\nping").await.unwrap();
        let mut answered = String::new();
        client.read_to_string(&mut answered).await.unwrap();
        assert!(answered.starts_with("HTTP/1.1 200 ") && answered.ends_with("\r\n\r\nping"));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"CONNECT a:1 HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answered = String::new();
        client.read_to_string(&mut answered).await.unwrap();
        assert!(answered.starts_with("HTTP/1.1 502 ") && answered.contains("refused it was"));
        task.abort();
    }

    #[tokio::test]
    async fn a_stop_refuses_the_next_and_lets_the_others_finish() {
        let listener = socket::listen("127.0.0.1:0".parse().unwrap(), "cubic").unwrap();
        let stop = CancellationToken::new();
        let proxy = Proxy::new(ProxyKind::Http, listener, None, 2).until(stop.clone());
        let address = proxy.address().unwrap();
        let (tunnel, mut streams) = pipe_tunnel();
        let task = tokio::spawn(proxy.run(tunnel));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"CONNECT a:80 HTTP/1.1\r\n\r\n").await.unwrap();
        let mut stream = streams.recv().await.unwrap();
        read_request(&mut stream).await.unwrap();
        write_answer(&mut stream, &Answer::Ready(String::new())).await.unwrap();
        stop.cancel();
        // The listener goes, sooner or later, though a connection is under way.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        stream.write_all(b"all of it").await.unwrap();
        stream.shutdown().await.unwrap();
        client.shutdown().await.unwrap();
        let mut answered = String::new();
        client.read_to_string(&mut answered).await.unwrap();
        assert!(answered.ends_with("\r\n\r\nall of it"), "{answered}");
        drop(stream);
        task.await.unwrap();
    }
}
