//! Paths follow the machine's interfaces.
//!
//! The test runs itself again in a user and network namespace of its own, which needs no root,
//! and gives the server a second network namespace behind two veth pairs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use fbdt::{
    Class, ClientConfig, CredentialLimits, Health, Link, Listener, ServerConfig, ServerState,
    Session, WhyLeftOut, connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const INSIDE: &str = "FBDT_TEST_INSIDE_NAMESPACE";
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn paths_follow_interfaces() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let unshare = |command: &mut Command| command.env(INSIDE, "1").status().unwrap().success();
    if !unshare(Command::new("unshare").args(["-Urn", "true"])) {
        return test_skip::skipped("this machine allows no user namespaces");
    }
    let own = std::env::current_exe().unwrap();
    let mut again = Command::new("unshare");
    again.args(["-Urn", "--"]).arg(own);
    again.args(["--exact", "paths_follow_interfaces", "--nocapture"]);
    assert!(unshare(&mut again), "the test failed inside its namespace");
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    let message = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments}: {message}");
}

/// A veth pair: `a{n}` here with 10.{n}.1.1, `b{n}` in the server's namespace with 10.{n}.1.2.
fn add_link(n: u8, server: &Server) {
    ip(&format!("link add a{n} type veth peer name b{n}"));
    ip(&format!("link set b{n} netns {}", server.thread));
    ip(&format!("address add 10.{n}.1.1/24 dev a{n}"));
    ip(&format!("link set a{n} up"));
    server.run(format!("address add 10.{n}.1.2/24 dev b{n}"));
    server.run(format!("link set b{n} up"));
}

/// A thread in a network namespace of its own, which runs `ip` commands and then the server.
struct Server {
    thread: String,
    commands: tokio::sync::mpsc::UnboundedSender<(String, mpsc::Sender<()>)>,
    link: mpsc::Receiver<Link>,
}

impl Server {
    fn start() -> Self {
        let (ready, started) = mpsc::channel();
        let (link_sender, link) = mpsc::channel();
        let (commands, received) = tokio::sync::mpsc::unbounded_channel();
        std::thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let me = std::fs::read_link("/proc/thread-self").unwrap();
            let id = me.file_name().unwrap().to_string_lossy().into_owned();
            ready.send(id).unwrap();
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(received, link_sender));
        });
        Self { thread: started.recv().unwrap(), commands, link }
    }

    fn run(&self, command: String) {
        let (done, wait) = mpsc::channel();
        self.commands.send((command, done)).unwrap();
        wait.recv().unwrap();
    }
}

async fn serve(
    mut commands: tokio::sync::mpsc::UnboundedReceiver<(String, mpsc::Sender<()>)>,
    link: mpsc::Sender<Link>,
) {
    let directory = tempfile::tempdir().unwrap();
    let state = ServerState::open(directory.path().join("state")).unwrap();
    let credential = state.new_credential("test", CredentialLimits::default()).unwrap();
    let mut config = ServerConfig::new(state, vec!["0.0.0.0:4433".parse().unwrap()]);
    config.advertise =
        ["10.1.1.2:4433", "10.2.1.2:4433"].map(|text| text.parse().unwrap()).to_vec();
    let listener = Listener::bind(config).await.unwrap();
    link.send(listener.link(&credential)).unwrap();
    loop {
        tokio::select! {
            Some((command, done)) = commands.recv() => {
                ip(&command);
                done.send(()).unwrap();
            }
            session = listener.accept() => {
                tokio::spawn(echo(session.unwrap()));
            }
        }
    }
}

async fn echo(session: Session) {
    while let Some(mut stream) = session.accept_stream().await {
        while let Ok(Some(piece)) = stream.read_chunk(usize::MAX).await {
            stream.write_all(&piece).await.unwrap();
        }
        let _ = stream.shutdown().await;
    }
}

fn inside() {
    let server = Server::start();
    ip("link set lo up");
    add_link(1, &server);
    add_link(2, &server);
    // A network of this machine's own, like that of its containers: no route to the server.
    ip("link add a3 type veth peer name b3");
    ip("address add 10.3.1.1/24 dev a3");
    ip("link set a3 up");
    ip("link set b3 up");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let checked = async { tokio::time::timeout(PATIENCE, come_and_go(&server)).await };
    runtime.block_on(checked).expect("it did not end");
}

async fn come_and_go(server: &Server) {
    let link = server.link.recv().unwrap();
    let config = ClientConfig::new(link);
    let left_out = config.left_out.clone();
    let session = connect(config).await.unwrap();
    wait_for(&session, &["a1", "a2"]).await;
    round_trip(&session).await;
    assert_eq!(left_out.list(), [("a3".to_owned(), WhyLeftOut::NoRoute)]);

    ip("link set a2 down");
    wait_for(&session, &["a1"]).await;
    round_trip(&session).await;
    ip("link set a2 up");
    wait_for(&session, &["a1", "a2"]).await;

    ip("link del a1");
    wait_for(&session, &["a2"]).await;
    round_trip(&session).await;
    add_link(1, server);
    wait_for(&session, &["a1", "a2"]).await;
    round_trip(&session).await;
    assert_eq!(session.paths().len(), 2, "an interface keeps its number");

    // A radio that falls silent: its packets vanish, and nobody says so.
    server.run("address del 10.2.1.2/24 dev b2".to_owned());
    while health(&session, "a2") == Health::Active {
        round_trip(&session).await;
    }
    round_trip(&session).await;
    server.run("address add 10.2.1.2/24 dev b2".to_owned());
    while health(&session, "a2") != Health::Active {
        round_trip(&session).await;
    }

    assert!(!has_path(&session, "a3"), "it has no route to a server");
    ip("route add 10.1.1.2/32 dev a3 metric 50");
    while !has_path(&session, "a3") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(left_out.list().is_empty());
}

fn has_path(session: &Session, name: &str) -> bool {
    session.paths().iter().any(|path| path.name == name)
}

fn health(session: &Session, name: &str) -> Health {
    let paths = session.paths();
    let path = paths.iter().find(|path| path.name == name).unwrap();
    path.health
}

/// Waits until exactly these paths have a subflow, each to the server address of its own network.
async fn wait_for(session: &Session, names: &[&str]) {
    loop {
        let paths = session.paths();
        let up: Vec<&str> = paths
            .iter()
            .filter(|path| path.remote.is_some())
            .map(|path| path.name.as_str())
            .collect();
        if up == names {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn round_trip(session: &Session) {
    let stream = session.open_stream(Class::Background).await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sent: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let write = async {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let ((), read) = tokio::join!(write, reader.read_to_end(&mut received));
    read.unwrap();
    assert!(received == sent);
}
