//! UDP through SOCKS5, messages, and the classes that they and connections belong to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::Value;
use socket2::{Domain, Socket, Type};

use crate::harness::{Client, PATIENCE, Server, json, run, stderr};
use crate::schemas::conforms;
use crate::web;

/// Sends every datagram back until it is dropped with the process.
fn echo(address: &str) -> SocketAddr {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    let own = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_535];
        while let Ok((size, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..size], from);
        }
    });
    own
}

/// A SOCKS5 association: its connection, where to send to, and a socket to do it with.
struct Association {
    connection: TcpStream,
    socket: UdpSocket,
}

fn ask(client: &Client) -> (TcpStream, [u8; 10]) {
    let mut connection = TcpStream::connect(client.socks()).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.write_all(b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\0\0").unwrap();
    let mut answer = [0; 12];
    connection.read_exact(&mut answer).unwrap();
    (connection, answer[2..].try_into().unwrap())
}

fn associate(client: &Client) -> Association {
    let (connection, answer) = ask(client);
    assert_eq!(answer[..4], [5, 0, 0, 1]);
    let address: [u8; 4] = answer[4..8].try_into().unwrap();
    let relay = SocketAddr::from((address, u16::from_be_bytes([answer[8], answer[9]])));
    assert!(relay.ip().is_loopback() && relay.port() != 0);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(relay).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    Association { connection, socket }
}

fn request(target: SocketAddr, data: &[u8]) -> Vec<u8> {
    let SocketAddr::V4(target) = target else { panic!("{target}") };
    let port = target.port().to_be_bytes();
    [&[0, 0, 0, 1][..], &target.ip().octets(), &port, data].concat()
}

impl Association {
    fn receive(&self) -> Vec<u8> {
        let mut buffer = [0; 65_535];
        let size = self.socket.recv(&mut buffer).unwrap();
        buffer[..size].to_vec()
    }
}

fn client(server: &Server, more: &[&str]) -> Client {
    let paths = ["--path", "a=127.0.0.1", "--path", "b=127.0.0.2"];
    server.client(&[&paths[..], more].concat())
}

#[test]
fn datagrams_reach_an_echo_and_come_back_with_its_address() {
    let target = echo("127.0.0.1");
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let client = client(&server, &[]);
    let association = associate(&client);
    for data in [&b"hello"[..], b"", &[7; 1400], &[9; 30_000]] {
        let sent = request(target, data);
        association.socket.send(&sent).unwrap();
        assert_eq!(association.receive(), sent);
    }
    // By name: it is looked up at the exit, and the answer says which address it was.
    let name =
        [b"\0\0\0\x03\x09localhost".as_slice(), &target.port().to_be_bytes(), b"by name"].concat();
    association.socket.send(&name).unwrap();
    assert_eq!(association.receive(), request(target, b"by name"));
    // A fragment is dropped, and so is what comes from another address.
    let mut fragment = request(target, b"fragment");
    fragment[2] = 1;
    association.socket.send(&fragment).unwrap();
    let stranger = UdpSocket::bind("127.0.0.3:0").unwrap();
    let relay = association.socket.peer_addr().unwrap();
    stranger.send_to(&request(target, b"stranger"), relay).unwrap();
    let other_port = UdpSocket::bind("127.0.0.1:0").unwrap();
    other_port.send_to(&request(target, b"other port"), relay).unwrap();
    let last = request(target, b"last");
    association.socket.send(&last).unwrap();
    assert_eq!(association.receive(), last, "none of those was answered before");
    let socket = client.status_socket();
    let status =
        json(&run(server.runtime(), &["status", "--json", "--socket", socket.to_str().unwrap()]));
    conforms("status", &status);
    let session = &status["sessions"][0];
    assert_eq!(session["messages"]["sent"], 6);
    assert_eq!(session["messages"]["received"], 6);
    assert_eq!(session["classes"][0]["class"], "conversational");
    // By data: 5, 0, 1400, 30 000, 7 and 4 bytes.
    let udp = serde_json::json!({
        "flows": 1, "opened": 1, "sent_datagrams": 6, "sent_bytes": 31_416,
        "received_datagrams": 6, "received_bytes": 31_416,
        "dropped_datagrams": 0, "dropped_bytes": 0
    });
    assert_eq!(status["udp"], udp);
    let there = server.daemon.first["status_socket"].as_str().unwrap();
    let there = json(&run(server.runtime(), &["status", "--json", "--socket", there]));
    conforms("status", &there);
    assert_eq!(there["udp"], udp);
    let table = run(server.runtime(), &["status", "--socket", socket.to_str().unwrap()]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("UDP: 1 flow open, 1 so far; sent 6 datagrams (31.4 kB)"), "{table}");
}

#[test]
fn an_association_ends_with_its_connection() {
    let target = echo("127.0.0.1");
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let client = client(&server, &[]);
    let Association { connection, socket } = associate(&client);
    let hello = request(target, b"hello");
    socket.send(&hello).unwrap();
    socket.recv(&mut [0; 100]).unwrap();
    drop(connection);
    let begun = Instant::now();
    // A closed port answers with an error, on one call or the next.
    while socket.send(&hello).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "the port is still open");
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = client.status_socket();
    let ask = ["status", "--json", "--socket", status.to_str().unwrap()];
    while json(&run(server.runtime(), &ask))["udp"]["flows"] != 0 {
        assert!(begun.elapsed() < PATIENCE, "the flow is still listed");
    }
}

#[test]
fn the_exits_policy_holds_for_datagrams() {
    let target = echo("127.0.0.1");
    let forbidden = UdpSocket::bind("127.0.0.1:0").unwrap();
    forbidden.set_nonblocking(true).unwrap();
    let server = Server::start(&["--allow", &target.to_string()]);
    let client = client(&server, &[]);
    let association = associate(&client);
    let address = forbidden.local_addr().unwrap();
    let mapped = [
        &[0, 0, 0, 4][..],
        &"::ffff:127.0.0.1".parse::<std::net::Ipv6Addr>().unwrap().octets(),
        &address.port().to_be_bytes(),
        b"mapped",
    ]
    .concat();
    let name =
        [b"\0\0\0\x03\x09localhost".as_slice(), &address.port().to_be_bytes(), b"x"].concat();
    for refused in [request(address, b"refused"), mapped, name] {
        association.socket.send(&refused).unwrap();
    }
    for _ in 0..3 {
        let sent = request(target, b"permitted");
        association.socket.send(&sent).unwrap();
        assert_eq!(association.receive(), sent);
    }
    let error = forbidden.recv(&mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "nothing came");
    // What comes from elsewhere than where the client sent to goes nowhere: the next answer is the
    // echo's.
    let sent = request(target, b"again");
    association.socket.send(&sent).unwrap();
    assert_eq!(association.receive(), sent);
}

#[test]
fn a_session_without_messages_says_so() {
    let server = Server::start(&["--insecure-plaintext"]);
    let client = client(&server, &["--insecure-plaintext"]);
    assert_eq!(ask(&client).1[1], 7, "the command is not supported");
    let link = server.link();
    let bench = ["bench", &link, "--messages", "--insecure-plaintext", "--json"];
    let output = run(server.runtime(), &bench);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("wire version 1"), "{}", stderr(&output));
}

fn message_bench(server: &Server, more: &[&str]) -> Value {
    let link = server.link();
    let fixed = ["bench", &link, "--json", "--messages", "--time", "0.5", "--path", "a=127.0.0.1"];
    let output = run(server.runtime(), &[&fixed[..], more].concat());
    assert!(output.status.success(), "{more:?}: {}", stderr(&output));
    let report = json(&output);
    conforms("bench-messages", &report);
    report
}

#[test]
fn messages_are_measured() {
    let server = Server::start(&[]);
    for delivery in ["reliable", "duplicated", "best-effort"] {
        let second = ["--path", "b=127.0.0.2", "--message-delivery", delivery];
        let report = message_bench(&server, &second);
        assert_eq!(report["offered"], 50);
        assert_eq!(report["received"], 50, "{report}");
        let [p50, max] = ["p50", "max"].map(|key| report["echo_ms"][key].as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= max, "{report}");
        let copies = report["classes"][0]["redundant_bytes"].as_u64().unwrap();
        match delivery {
            "duplicated" => assert!(copies >= 40 * 200, "{report}"),
            // The request itself is no message.
            "best-effort" => assert!(copies < 200, "{report}"),
            _ => {}
        }
    }
    let alone = message_bench(&server, &["--message-interval", "0.05", "--message-bytes", "1000"]);
    assert_eq!((&alone["offered"], &alone["received"]), (&10.into(), &10.into()));
}

/// The classes of the streams that the server has open.
fn classes(server: &Server, received: u64) -> Vec<(String, u64)> {
    let socket = server.daemon.first["status_socket"].as_str().unwrap();
    let status = json(&run(server.runtime(), &["status", "--json", "--socket", socket]));
    conforms("status", &status);
    let classes = status["sessions"][0]["classes"].as_array().unwrap();
    let sent = |class: &Value| class["sent_bytes"].as_u64().unwrap();
    let busy = classes.iter().filter(|class| sent(class) >= received);
    busy.map(|class| (class["class"].as_str().unwrap().to_owned(), sent(class))).collect()
}

#[test]
fn a_rule_for_datagrams_holds_in_both_directions() {
    let (target, other) = (echo("127.0.0.1"), echo("127.0.0.1"));
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let rule = format!("{}=background", target.port());
    let client = client(&server, &["--class-rule", &rule]);
    for (target, expected) in [(target, "background"), (other, "conversational")] {
        let association = associate(&client);
        for _ in 0..10 {
            let sent = request(target, &[7; 1000]);
            association.socket.send(&sent).unwrap();
            assert_eq!(association.receive(), sent);
        }
        // The first answer may leave before the exit has heard of the rule.
        let found = classes(&server, 8 * 1000);
        let back = found.iter().find(|(class, _)| class == expected);
        assert!(back.is_some(), "{expected}: {found:?}");
        let here = client.status_socket();
        let far = server.daemon.first["status_socket"].as_str().unwrap();
        let is_guessed = [here.to_str().unwrap(), far].map(|socket| {
            let status = json(&run(server.runtime(), &["status", "--json", "--socket", socket]));
            let streams = status["sessions"][0]["streams"].as_array().unwrap().clone();
            streams.iter().any(|of| of["class"] == expected && of["class_guessed"] == true)
        });
        assert_eq!(is_guessed, [expected == "conversational"; 2], "{expected}");
    }
}

/// Sends without end to whoever connects.
fn endless() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            std::thread::spawn(move || while connection.write_all(&[7; 1 << 16]).is_ok() {});
        }
    });
    address
}

/// Takes `bytes` of a file, pauses, and again; whether the server takes it for a stream. The reader's
/// socket holds little: one that grows lets what is read in small pieces come in large ones, as
/// large as the machine's limits of buffers allow.
fn played(bytes: usize, pause: Duration, times: usize) -> bool {
    let source = endless();
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let client = client(&server, &["--stream-buffer", "1048576"]);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(1 << 18).unwrap();
    let proxy: SocketAddr = client.socks().parse().unwrap();
    socket.connect(&proxy.into()).unwrap();
    let mut player = TcpStream::from(socket);
    player.set_read_timeout(Some(PATIENCE)).unwrap();
    let port = source.port().to_be_bytes();
    player.write_all(&[&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &port].concat()).unwrap();
    player.read_exact(&mut [0; 12]).unwrap();
    let mut buffer = vec![0; bytes];
    (0..times).any(|_| {
        player.read_exact(&mut buffer).unwrap();
        let streaming = |(class, _): &(String, u64)| class == "streaming";
        if classes(&server, 1 << 20).iter().any(streaming) {
            return true;
        }
        std::thread::sleep(pause);
        false
    })
}

/// A player that reads some seconds' worth, plays it, and reads on makes bursts of a file: for the
/// time between them the stream waits for nothing but its reader.
#[test]
fn a_file_that_is_played_while_it_arrives_is_streaming() {
    assert!(played(8 << 20, Duration::from_secs(1), 30), "never taken for a stream");
}

#[test]
fn a_file_that_is_read_slowly_is_none() {
    assert!(!played(256 << 10, Duration::from_millis(100), 60), "taken for a stream");
}

#[test]
fn classes_follow_rules_and_else_behaviour() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let rule = format!("{}=streaming", web.port());
    let client =
        client(&server, &["--class-rule", "localhost=conversational", "--class-rule", &rule]);
    let get = |host: &str, size: usize| {
        let output = client.curl_socks(&[&format!("http://{host}:{}/{size}", web.port())]);
        assert_eq!(output.stdout.len(), size, "{}", stderr(&output));
    };
    get("127.0.0.1", 500_000);
    assert_eq!(
        classes(&server, 500_000).iter().map(|c| &c.0[..]).collect::<Vec<_>>(),
        ["streaming"]
    );
    get("localhost", 600_000);
    assert_eq!(classes(&server, 500_000)[0].0, "conversational", "the first rule counts");
    let other = web::start("127.0.0.1");
    let output = client.curl_socks(&[&format!("http://127.0.0.1:{}/20000000", other.port())]);
    assert_eq!(output.stdout.len(), 20_000_000);
    let found = classes(&server, 1_000_000);
    assert!(
        found.iter().any(|(class, sent)| class == "background" && *sent > 15_000_000),
        "{found:?}"
    );
    let bad = run(server.runtime(), &["up", "x", "--class-rule", "22=fast"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(stderr(&bad).contains("fast"), "{}", stderr(&bad));
}
