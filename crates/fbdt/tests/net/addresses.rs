//! Several addresses for one link, of which each may be another server, and what stands in front of a
//! server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fbdt::{
    ClientConfig, ConnectError, Credential, CredentialLimits, Link, Listener, PathSpec,
    PathTrouble, ServerConfig, ServerState, Session, connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::world::{eventually, loopback, path_from, round_trip, up, wait_for_paths, within};

/// A server on an address of its own; its sessions echo.
struct Server {
    address: SocketAddr,
    sessions: Arc<Mutex<Vec<Session>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(state: &ServerState, listen: SocketAddr) -> Self {
        Self::configured(ServerConfig::new(state.clone(), vec![listen])).await
    }

    async fn configured(config: ServerConfig) -> Self {
        let listener = Listener::bind(config).await.unwrap();
        let address = listener.local_addrs()[0];
        let sessions: Arc<Mutex<Vec<Session>>> = Arc::default();
        let kept = sessions.clone();
        let task = tokio::spawn(async move {
            while let Ok(session) = listener.accept().await {
                kept.lock().unwrap().push(session.clone());
                tokio::spawn(async move {
                    while let Some(stream) = session.accept_stream().await {
                        tokio::spawn(crate::world::echo(stream));
                    }
                });
            }
        });
        Self { address, sessions, task }
    }

    fn sessions(&self) -> usize {
        self.sessions.lock().unwrap().len()
    }
}

fn state(directory: &Path) -> ServerState {
    ServerState::open(directory.join("state")).unwrap()
}

fn local(last: u8) -> SocketAddr {
    SocketAddr::new(loopback(last), 0)
}

/// A client of these servers over some paths, by a credential of `state`.
fn client(
    state: &ServerState,
    credential: &Credential,
    servers: &[SocketAddr],
    paths: u8,
) -> ClientConfig {
    let servers = servers.iter().copied().map(Into::into).collect();
    let link = Link::new(servers, Some(state.fingerprint()), credential);
    ClientConfig {
        paths: (1..=paths).map(|last| path_from(loopback(last))).collect(),
        ..ClientConfig::new(link)
    }
}

fn remotes(session: &Session) -> Vec<SocketAddr> {
    session.paths().iter().filter_map(|path| path.remote).collect()
}

#[tokio::test]
async fn a_join_that_another_server_of_the_same_state_refuses_costs_that_attempt_only() {
    let directory = tempfile::tempdir().unwrap();
    let state = state(directory.path());
    let credential = state.new_credential("a", CredentialLimits::default()).unwrap();
    let servers = [Server::start(&state, local(1)).await, Server::start(&state, local(2)).await];
    let addresses = [servers[0].address, servers[1].address];
    // The paths begin with another address each.
    let session = within(connect(client(&state, &credential, &addresses, 4))).await.unwrap();
    wait_for_paths(&session, 4).await;
    let first = remotes(&session)[0];
    assert_eq!(remotes(&session), [first; 4]);
    round_trip(&session, 1 << 20, 1).await;
    assert_eq!(servers[0].sessions() + servers[1].sessions(), 1, "one of them has the session");
    // The other one is not asked again, and the session survives its own server's losing every path.
    let own = servers.iter().position(|server| server.address == first).unwrap();
    assert!(!session.is_closed() && !servers[own].sessions.lock().unwrap()[0].is_closed());
}

#[tokio::test]
async fn the_one_server_that_knows_the_client_is_found_among_others() {
    let directories = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let right = state(directories[0].path());
    let credential = right.new_credential("a", CredentialLimits::default()).unwrap();
    // One has the same key and other credentials; one has another key.
    copy(&directories[0].path().join("state"), &directories[1].path().join("state"));
    let same_key = state(directories[1].path());
    same_key.revoke(credential.id).unwrap();
    let other_key = state(directories[2].path());
    let strangers =
        [Server::start(&same_key, local(1)).await, Server::start(&other_key, local(2)).await];
    let server = Server::start(&right, local(3)).await;
    let addresses = [strangers[0].address, strangers[1].address, server.address];
    for paths in [1, 3] {
        let config = client(&right, &credential, &addresses, paths);
        let session = within(connect(config)).await.unwrap();
        wait_for_paths(&session, usize::from(paths)).await;
        assert_eq!(remotes(&session), vec![server.address; usize::from(paths)]);
        round_trip(&session, 1 << 16, 3).await;
    }
    // Where nobody is the right one, the one that has the key says what is wrong.
    let config = client(&right, &credential, &addresses[..2], 2);
    let error = within(connect(config)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    let words = error.to_string();
    assert!(words.starts_with(&format!("{} over 127.0.0.", addresses[0])), "{words}");
    assert!(!words.contains("Authentication"), "{words}");
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

#[tokio::test]
async fn what_is_wrong_with_each_path_is_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let state = state(directory.path());
    let credential = state.new_credential("a", CredentialLimits::default()).unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refusing = {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        gone.local_addr().unwrap()
    };
    let to = |name: &str, server: SocketAddr| PathSpec {
        server: Some((server.ip(), Some(server.port()))),
        name: name.to_owned(),
        ..PathSpec::default()
    };
    let mut config = client(&state, &credential, &[refusing], 0);
    config.paths = vec![to("silent", silent.local_addr().unwrap()), to("refused", refusing)];
    config.connect_timeout = Duration::from_secs(4);
    let Err(ConnectError::NoPath { failures, .. }) = within(connect(config)).await else {
        panic!("it connected")
    };
    let found: Vec<_> = failures.iter().map(|f| (f.path.as_str(), f.trouble)).collect();
    let expected = [("silent", PathTrouble::NoAnswer), ("refused", PathTrouble::ConnectionRefused)];
    assert_eq!(found, expected);
}

/// Puts a header of the PROXY protocol in front of each connection to the server.
async fn proxy(server: SocketAddr, header: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut onward = TcpStream::connect(server).await.unwrap();
            onward.write_all(&header).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut onward).await });
        }
    });
    address
}

#[tokio::test]
async fn a_server_behind_a_proxy_knows_its_clients_and_believes_only_that_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let state = state(directory.path());
    let credential = state.new_credential("a", CredentialLimits::default()).unwrap();
    let mut config = ServerConfig::new(state.clone(), vec![local(1)]);
    config.proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let server = Server::configured(config).await;
    let client_at = "192.0.2.7:4711";
    let header = b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 7443\r\n".to_vec();
    let proxied = proxy(server.address, header).await;
    let session = within(connect(client(&state, &credential, &[proxied], 1))).await.unwrap();
    eventually(|| server.sessions() == 1).await;
    let at_server = server.sessions.lock().unwrap()[0].clone();
    eventually(|| up(&at_server) == 1).await;
    assert_eq!(remotes(&at_server), [client_at.parse().unwrap()]);
    round_trip(&session, 1 << 16, 1).await;
    // Who is no proxy is a client itself: no header is wanted, and none is believed.
    let direct = ClientConfig {
        paths: vec![path_from(loopback(2))],
        ..client(&state, &credential, &[server.address], 0)
    };
    within(connect(direct)).await.unwrap();
    let liar = TcpSocket::new_v4().unwrap();
    liar.bind(local(3)).unwrap();
    let mut liar = liar.connect(server.address).await.unwrap();
    liar.write_all(b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 7443\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = within(liar.read_to_end(&mut answer)).await;
    assert!(answer.first().is_none_or(|kind| *kind == 21), "a TLS alert or nothing: {answer:?}");
}

/// What networks see of a client's handshake: the server's name, and the application protocols.
async fn seen(mut config: ClientConfig) -> (Option<String>, Vec<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    config.paths = vec![crate::world::path_to("a", address)];
    config.connect_timeout = Duration::from_secs(5);
    let looking = tokio::task::spawn_blocking(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut acceptor = rustls::server::Acceptor::default();
        loop {
            acceptor.read_tls(&mut socket).unwrap();
            let Ok(accepted) = acceptor.accept() else { panic!("no ClientHello") };
            let Some(accepted) = accepted else { continue };
            let hello = accepted.client_hello();
            let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let protocols = hello.alpn().into_iter().flatten().map(text).collect();
            return (hello.server_name().map(str::to_owned), protocols);
        }
    });
    tokio::select! {
        _ = connect(config) => panic!("it connected"),
        seen = looking => seen.unwrap(),
    }
}

#[tokio::test]
async fn networks_see_the_names_that_they_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let state = state(directory.path());
    let credential = state.new_credential("a", CredentialLimits::default()).unwrap();
    let config = |host: &str| {
        let servers = vec![host.parse().unwrap()];
        ClientConfig::new(Link::new(servers, Some(state.fingerprint()), &credential))
    };
    let own = ["fbdt/2", "fbdt/1"].map(str::to_owned).to_vec();
    assert_eq!(seen(config("192.0.2.1:7443")).await, (None, own.clone()));
    let named = seen(config("localhost:7443")).await;
    assert_eq!(named, (Some("localhost".to_owned()), own.clone()));
    let mut other = config("192.0.2.1:7443");
    other.server_name = Some("www.example.org".to_owned());
    other.alpn = vec!["h2".to_owned()];
    let expected = (Some("www.example.org".to_owned()), vec!["h2".to_owned()]);
    assert_eq!(seen(other).await, expected);
}

#[tokio::test]
async fn an_application_protocol_must_be_known_at_both_ends() {
    let directory = tempfile::tempdir().unwrap();
    let state = state(directory.path());
    let credential = state.new_credential("a", CredentialLimits::default()).unwrap();
    let mut config = ServerConfig::new(state.clone(), vec![local(1)]);
    config.alpn = vec!["h2".to_owned()];
    let server = Server::configured(config).await;
    let with = |alpn: &[&str]| {
        let mut config = client(&state, &credential, &[server.address], 1);
        config.alpn = alpn.iter().map(|name| (*name).to_owned()).collect();
        config
    };
    for known in [&[][..], &["h2"], &["http/1.1", "h2"]] {
        let session = within(connect(with(known))).await.unwrap();
        assert!(session.has_messages(), "the newest version: {known:?}");
        round_trip(&session, 1 << 16, 1).await;
    }
    let error = within(connect(with(&["http/1.1"]))).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoCommonVersion { .. }), "{error}");
    assert!(error.to_string().contains("the same --alpn"), "{error}");
}
