//! Stops that let streams finish, and reloads that drop none.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::config_file::config;
use crate::harness::{Client, Daemon, PATIENCE, Server, json, run, stderr, sumrate};
use crate::policies::until;
use crate::schemas::conforms;

/// A server that says half, and the rest when it is told to.
pub(crate) struct Halves {
    address: SocketAddr,
    go_on: mpsc::Sender<()>,
}

const FIRST: &[u8] = b"the first half";
pub(crate) const SECOND: &[u8] = b" and the second";

impl Halves {
    pub(crate) fn start() -> Self {
        Self::with(SECOND.to_vec())
    }

    /// With another second half.
    pub(crate) fn with(second: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (go_on, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            connection.write_all(FIRST).unwrap();
            if wait.recv().is_ok() {
                let _ = connection.write_all(&second);
            }
        });
        Self { address, go_on }
    }

    /// Connects through a client's HTTP proxy and reads the first half.
    pub(crate) fn first_half(&self, client: &Client) -> TcpStream {
        let mut stream = TcpStream::connect(client.http()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "CONNECT {} HTTP/1.1\r\n\r\n", self.address).unwrap();
        let mut answer = vec![0; b"HTTP/1.1 200 Connection established\r\n\r\n".len()];
        stream.read_exact(&mut answer[..12]).unwrap();
        assert_eq!(&answer[9..12], b"200");
        let mut seen = Vec::new();
        while !seen.ends_with(FIRST) {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            seen.extend(byte);
        }
        stream
    }

    /// Tells the server to go on.
    pub(crate) fn go_on(&self) {
        self.go_on.send(()).unwrap();
    }

    /// Tells the server to go on, and reads to the end.
    pub(crate) fn second_half(&self, mut stream: TcpStream) -> std::io::Result<Vec<u8>> {
        self.go_on();
        let mut rest = Vec::new();
        stream.shutdown(std::net::Shutdown::Write)?;
        stream.read_to_end(&mut rest)?;
        Ok(rest)
    }
}

fn open_server() -> Server {
    Server::start(&["--allow", "127.0.0.0/8", "--drain", "60"])
}

/// Waits until nobody listens any more.
pub(crate) fn wait_for_refusal(address: &str) {
    let begun = std::time::Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "{address} still accepts");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The status counts the stream that is left, and the seconds.
fn says_that_it_stops(server: &Server, daemon: &Daemon) {
    let socket = daemon.first["status_socket"].as_str().unwrap();
    let ask =
        |more: &[&str]| run(server.runtime(), &[&["status", "--socket", socket], more].concat());
    // Those that were refused a moment ago may still be listed.
    let one_left = |status: &Value| status["stopping"]["streams"] == 1;
    let status = until("one stream", || json(&ask(&["--json"])), one_left);
    conforms("status", &status);
    let most = status["stopping"]["most_s"].as_f64().unwrap();
    assert!(0.0 < most && most < 60.0, "{status:#}");
    let table = String::from_utf8(ask(&[]).stdout).unwrap();
    assert!(table.contains("stopping: 1 connection left to finish, at most"), "{table}");
}

#[test]
fn a_stopping_client_lets_streams_finish_and_takes_no_more() {
    let server = open_server();
    let mut client = server.client(&["--drain", "60"]);
    let halves = Halves::start();
    let stream = halves.first_half(&client);
    client.daemon.signal(Signal::SIGTERM);
    wait_for_refusal(&client.socks());
    says_that_it_stops(&server, &client.daemon);
    assert_eq!(halves.second_half(stream).unwrap(), SECOND);
    assert_eq!(client.daemon.wait().code(), Some(0));
    client.daemon.wait_for("stopped");
}

#[test]
fn a_stopping_server_lets_streams_finish_and_takes_no_more() {
    let mut server = open_server();
    let client = server.client(&[]);
    let halves = Halves::start();
    let stream = halves.first_half(&client);
    server.daemon.signal(Signal::SIGTERM);
    // New streams are refused, sooner or later.
    let begun = std::time::Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "new streams are still served");
        let mut another = TcpStream::connect(client.http()).unwrap();
        write!(another, "CONNECT {} HTTP/1.1\r\n\r\n", halves.address).unwrap();
        let mut answer = [0; 12];
        another.read_exact(&mut answer).unwrap();
        if &answer[9..] == b"502" || &answer[9..] == b"503" {
            break;
        }
    }
    says_that_it_stops(&server, &server.daemon);
    assert_eq!(halves.second_half(stream).unwrap(), SECOND);
    assert_eq!(server.daemon.wait().code(), Some(0));
    let lost = client.daemon.wait_for("session_lost");
    assert!(lost["reason"].as_str().unwrap().contains("the server stops"), "{lost}");
}

#[test]
fn the_limit_and_a_second_signal_cut_streams_off() {
    let server = open_server();
    for (drain, second) in
        [("0.1", None), ("60", Some(Signal::SIGTERM)), ("60", Some(Signal::SIGINT))]
    {
        let mut client = server.client(&["--drain", drain]);
        let halves = Halves::start();
        let stream = halves.first_half(&client);
        client.daemon.signal(Signal::SIGTERM);
        if let Some(signal) = second {
            wait_for_refusal(&client.socks());
            client.daemon.signal(signal);
        }
        assert_eq!(client.daemon.wait().code(), Some(0));
        // The end is no end of data that could be taken for all of it.
        let end = halves.second_half(stream).map_err(|error| error.kind());
        let cut = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::NotConnected];
        assert!(end.as_ref().is_err_and(|kind| cut.contains(kind)), "{drain}, {second:?}: {end:?}");
    }
}

fn reload(server: &Server, daemon: &Daemon) -> std::process::Output {
    let socket = daemon.first["status_socket"].as_str().unwrap();
    run(server.runtime(), &["reload", "--json", "--socket", socket])
}

#[test]
fn a_reload_of_up_opens_another_session_and_drops_no_stream() {
    let server = open_server();
    let link = server.credential(&[]);
    let text = |path: &str, more: &str| {
        format!(
            "[up]\nlink = \"{link}\"\npath = \"{path}\"\nsocks = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\n{more}"
        )
    };
    let file = config(&server, &text("old=127.0.0.1", ""));
    let mut command = sumrate(server.runtime());
    command.args(["up", "--json", "--config", file.to_str().unwrap()]);
    let client = Client { daemon: Daemon::start(command) };
    let halves = Halves::start();
    let stream = halves.first_half(&client);
    config(&server, &text("new=127.0.0.2", "max-connections = 5\n"));
    let answer = json(&reload(&server, &client.daemon));
    conforms("reload", &answer);
    assert_eq!(answer["applied"], serde_json::json!(["path"]));
    assert_eq!(answer["needs_restart"], serde_json::json!(["max-connections"]));
    let socket = client.status_socket();
    let status =
        json(&run(server.runtime(), &["status", "--json", "--socket", socket.to_str().unwrap()]));
    conforms("status", &status);
    assert_eq!(status["sessions"][0]["paths"][0]["name"], "new");
    assert_eq!(halves.second_half(stream).unwrap(), SECOND);
    // A wrong file changes nothing.
    config(&server, &text("new=127.0.0.2", "maxx = 5\n"));
    let refused = reload(&server, &client.daemon);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains(":6: "), "{}", stderr(&refused));
    let web = crate::web::start("127.0.0.1");
    let fetched = client.curl_socks(&[&format!("http://{web}/1000")]);
    assert_eq!(fetched.stdout, crate::web::body(1000), "{}", stderr(&fetched));
}

#[test]
fn a_reload_of_serve_applies_its_rules_and_keeps_sessions() {
    let server = Server::start(&[]);
    let file = config(&server, "[serve]\nallow = \"127.0.0.1\"\n");
    let mut command = sumrate(server.runtime());
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--config"]).arg(&file);
    command.arg("--state").arg(server.runtime().join("other"));
    let daemon = Daemon::start(command);
    let link = daemon.first["link"].as_str().unwrap().to_owned();
    let client = server.client_with(&link, &[]);
    let halves = Halves::start();
    let stream = halves.first_half(&client);
    let web = crate::web::start("127.0.0.2");
    let fetch = || client.curl_socks(&[&format!("http://{web}/10")]);
    assert!(!fetch().status.success());
    let rules = "allow = [\"127.0.0.2\"]\ndeny-port = 6667\n";
    config(&server, &format!("[serve]\n{rules}advertise = \"192.0.2.1:1\"\n"));
    let answer = json(&reload(&server, &daemon));
    conforms("reload", &answer);
    assert_eq!(answer["applied"], serde_json::json!(["allow", "deny-port"]));
    assert_eq!(answer["needs_restart"], serde_json::json!(["advertise"]));
    assert!(fetch().status.success());
    let proxy = format!("http://{}", client.http());
    let refused = crate::harness::curl(&["--proxy", &proxy, "http://203.1.113.5:6667/"]);
    assert!(String::from_utf8_lossy(&refused.stdout).contains("--allow-port"), "{refused:?}");
    assert_eq!(halves.second_half(stream).unwrap(), SECOND);
}

#[test]
fn a_reload_of_up_takes_how_long_streams_may_take_to_finish() {
    let server = open_server();
    let link = server.credential(&[]);
    let text = |seconds: &str| {
        format!(
            "[up]\nlink = \"{link}\"\nsocks = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\ndrain = {seconds}\n"
        )
    };
    let file = config(&server, &text("120"));
    let mut command = sumrate(server.runtime());
    command.args(["up", "--json", "--config", file.to_str().unwrap()]);
    let mut client = Client { daemon: Daemon::start(command) };
    let halves = Halves::start();
    let stream = halves.first_half(&client);
    config(&server, &text("0.1"));
    let answer = json(&reload(&server, &client.daemon));
    assert_eq!(answer["applied"], serde_json::json!(["drain"]));
    assert_eq!(answer["needs_restart"], serde_json::json!([]));
    let begun = std::time::Instant::now();
    client.daemon.signal(Signal::SIGTERM);
    assert_eq!(client.daemon.wait().code(), Some(0));
    assert!(begun.elapsed() < PATIENCE, "it waited for as long as it was told before");
    assert!(halves.second_half(stream).is_err(), "the stream was cut off");
}

#[test]
fn a_server_that_cuts_streams_off_says_so_in_its_own_name() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let mut command = sumrate(directory.path());
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8"]);
    command.args(["--drain", "0.1", "--log-format", "json", "--state"]).arg(place("state"));
    command.env("SUMRATE_LOG", "off,sumrate_cli::commands::serve=warn");
    let log = std::fs::File::create(place("log")).unwrap();
    let daemon = Daemon::start_with_log(command, log.into());
    let mut server = Server { daemon, directory };
    let client = server.client(&[]);
    let halves = Halves::start();
    let _stream = halves.first_half(&client);
    server.daemon.signal(Signal::SIGTERM);
    assert_eq!(server.daemon.wait().code(), Some(0));
    let said = std::fs::read_to_string(server.runtime().join("log")).unwrap();
    let line: serde_json::Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!(line["target"], "sumrate_cli::commands::serve", "{said}");
    let words = line["message"].as_str().unwrap();
    assert!(words.contains("cut off after 100.0ms"), "{words}");
}
