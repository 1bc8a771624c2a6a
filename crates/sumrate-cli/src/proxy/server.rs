//! Accepts proxy clients, within limits, and relays each over a stream of its own.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connect::connect_as;
use super::http::{HttpProxy, Server, Switched};
use super::passwords::{Guarded, PasswordCheck, WrongPasswords};
use super::socks5::{SocksError, Target};

use super::{associate, silent, socks5};
use crate::args::ProxyAuth;
use crate::classes::{ClassRules, Guess, WatchedStream};
use crate::exit::Allowance;
use crate::relay::relay;
use crate::socket;
use crate::tunnel::{Tunnel, TunnelStream};

/// Longest time for a client to say what it wants.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for what is under way with an HTTP client that has ended its sending direction.
const GONE_GRACE: Duration = Duration::from_secs(5);
/// Pause after the system refused to accept (no file descriptor left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Which protocol a proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    /// SOCKS5.
    Socks5,
    /// HTTP: CONNECT, and requests for `http://` addresses.
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
        let Self { kind, listener, auth, connections, rules, stop } = self;
        let wrong = WrongPasswords::default();
        let terms = Arc::new(Terms { kind, auth, rules, stop: stop.clone(), wrong });
        let mut tasks = JoinSet::new();
        loop {
            // A client beyond the limit waits in the kernel's queue, unaccepted.
            let next = async {
                let permit = Arc::clone(&connections).acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                () = stop.cancelled() => break,
            };
            let Ok(permit) = permit else { break };
            let (client, source) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a proxy client");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            socket::tune_accepted(&client);
            let (terms, tunnel) = (Arc::clone(&terms), tunnel.clone());
            tasks.spawn(async move {
                terms.serve(client, source.ip(), &tunnel).await;
                drop(permit);
            });
            while tasks.try_join_next().is_some() {}
        }
        drop(listener);
        while tasks.join_next().await.is_some() {}
    }
}

/// How a proxy's clients are served.
struct Terms {
    kind: ProxyKind,
    auth: Option<Arc<ProxyAuth>>,
    rules: Arc<ClassRules>,
    stop: CancellationToken,
    wrong: WrongPasswords,
}

impl Terms {
    async fn serve<T: Tunnel>(&self, client: TcpStream, source: IpAddr, tunnel: &T) {
        let auth = self.auth.as_deref();
        let password = auth.map(|auth| Guarded::new(auth, &self.wrong, source));
        match self.kind {
            ProxyKind::Socks5 => self.serve_socks(client, password.as_ref(), tunnel).await,
            ProxyKind::Http => self.serve_http(client, password.as_ref(), tunnel).await,
        }
    }

    async fn serve_socks<T: Tunnel>(
        &self,
        mut client: TcpStream,
        password: Option<&Guarded<'_>>,
        tunnel: &T,
    ) {
        let mut early = Vec::new();
        let handshake = read_target(&mut client, password, &mut early);
        let (request, silent) = match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => return tracing::debug!(%error, "a proxy client was turned away"),
            Err(_) => return tracing::debug!("a proxy client said nothing for 10 s"),
        };
        if request.command == socks5::Command::Connect {
            self.connect(client, request.target, silent, &early, tunnel).await;
        } else if silent {
            tracing::debug!("a client that waits for no answer wants datagrams");
        } else {
            associate::serve(client, tunnel, &self.rules, request.target.port).await;
        }
    }

    /// Connects a SOCKS5 client; a `silent` one waits for no answer.
    async fn connect<T: Tunnel>(
        &self,
        mut client: TcpStream,
        Target { host, port }: Target,
        silent: bool,
        early: &[u8],
        tunnel: &T,
    ) {
        let class = self.rules.class_of(&host, port);
        let connected = connect_as(tunnel, &host, port, class).await;
        let reply = match &connected {
            Ok(_) => socks5::Reply::Succeeded,
            Err(failure) => failure.code.into(),
        };
        let told = if silent { Ok(()) } else { socks5::reply(&mut client, reply).await };
        match (connected, told) {
            (Ok(stream), Ok(())) => {
                let guess = class.is_none().then(Guess::default);
                carry(stream, client, early, guess, (&host, port)).await;
            }
            (Err(failure), _) => {
                tracing::info!("no connection to {host}:{port}: {failure}");
                if silent {
                    socket::reset_on_close(&client);
                }
            }
            (Ok(_), Err(error)) => tracing::debug!(host, port, %error, "the client went away"),
        }
    }

    async fn serve_http<T: Tunnel>(
        &self,
        client: TcpStream,
        password: Option<&Guarded<'_>>,
        tunnel: &T,
    ) {
        // Until its end is known to be in order, the connection's end is a failure.
        socket::reset_on_close(&client);
        socket::hold_little(&client);
        let Ok(second) = client.as_fd().try_clone_to_owned() else {
            return tracing::debug!("a proxy client was turned away: no file descriptor is left");
        };
        let password = password.map(|password| password as &dyn PasswordCheck);
        let Ok(second) = TcpStream::from_std(second.into()) else {
            return tracing::debug!("a proxy client was turned away: its end cannot be watched");
        };
        let proxy = HttpProxy::new(password, tunnel, &self.rules);
        let served = tokio::select! {
            served = proxy.converse(client, &self.stop) => served,
            () = gone(&second) => return tracing::debug!("an HTTP client went away"),
        };
        if let Err(error) = &served {
            tracing::debug!(%error, "a connection of an HTTP client failed");
        }
        if !served.is_err_and(|error| error.is_user()) {
            socket::deliver_on_close(&second);
        }
        drop(second);
        if let Some(switched) = proxy.switched() {
            let guess = proxy.guess(&switched.target);
            if let Err(error) = relay_switched(switched, guess).await {
                tracing::debug!(%error, "the client went away");
            }
        }
    }
}

/// Ends [`GONE_GRACE`] after the client has ended its sending direction. hyper does not see that end behind
/// bytes that it has not read.
async fn gone(client: &TcpStream) {
    while client.ready(Interest::READABLE).await.is_ok_and(|ready| !ready.is_read_closed()) {
        // Nothing is read here: the next event tells more.
        let _ = client.try_io(Interest::READABLE, || {
            Err::<(), _>(std::io::Error::from(std::io::ErrorKind::WouldBlock))
        });
    }
    tokio::time::sleep(GONE_GRACE).await;
}

/// Relays between an HTTP client and the target that its connection belongs to from now on.
async fn relay_switched<S: TunnelStream>(
    Switched { target, client, server }: Switched<S>,
    guess: Option<Guess>,
) -> Result<(), hyper::Error> {
    let Ok(client) = client.await?.downcast::<TokioIo<TcpStream>>() else { return Ok(()) };
    let (mut connection, early) = (client.io.into_inner(), client.read_buf);
    let stream = match server {
        Server::Connected(stream) => stream,
        Server::Upgraded(server, _driver) => {
            let Ok(server) = server.await?.downcast::<TokioIo<WatchedStream<S>>>() else {
                return Ok(());
            };
            if let Err(error) = connection.write_all(&server.read_buf).await {
                tracing::debug!(%error, "the client went away");
                return Ok(());
            }
            server.io.into_inner().into_inner()
        }
    };
    carry(stream, connection, &early, guess, (&target.host, target.port)).await;
    Ok(())
}

/// Relays until both directions have ended.
async fn carry<S: TunnelStream>(
    stream: S,
    client: TcpStream,
    early: &[u8],
    guess: Option<Guess>,
    (host, port): (&str, u16),
) {
    match relay(stream, client, early, &Allowance::default(), guess).await {
        Ok(relayed) => tracing::debug!(host, port, ?relayed, "a connection ended"),
        Err(error) => tracing::debug!(host, port, %error, "a connection failed"),
    }
}

/// What a SOCKS5 client asks for, and whether it waits for no answer.
async fn read_target(
    client: &mut TcpStream,
    password: Option<&Guarded<'_>>,
    early: &mut Vec<u8>,
) -> Result<(socks5::Request, bool), SocksError> {
    let silent = silent::is_wanted(client, early).await?;
    let request = match silent {
        true => silent::handshake(client, password, early).await?,
        false => socks5::handshake(client, password, early).await?,
    };
    Ok((request, silent))
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
