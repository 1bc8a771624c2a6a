use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;

use super::*;
use crate::proxy::server::{Proxy, ProxyKind};
use crate::service::{Answer, Request as Asked, read_request, write_answer};
use crate::tunnel::in_memory::pipe_tunnel;

/// Connections that the proxy serves at a time.
const PLACES: u32 = 8;

/// A proxy, and the streams that it opens.
struct Scene {
    address: std::net::SocketAddr,
    streams: UnboundedReceiver<DuplexStream>,
    task: tokio::task::JoinHandle<()>,
}

impl Scene {
    async fn with(auth: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let auth = auth.map(|text| std::sync::Arc::new(text.parse().unwrap()));
        let proxy = Proxy::new(ProxyKind::Http, listener, auth, PLACES);
        let (address, (tunnel, streams)) = (proxy.address().unwrap(), pipe_tunnel());
        Self { address, streams, task: tokio::spawn(proxy.run(tunnel)) }
    }

    async fn new() -> Self {
        Self::with(None).await
    }

    /// A client that has sent this.
    async fn client(&self, sent: impl AsRef<[u8]>) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(sent.as_ref()).await.unwrap();
        client
    }

    /// The next connection that the exit is asked for, made, and its target.
    async fn server(&mut self) -> (String, DuplexStream) {
        let mut stream = self.streams.recv().await.unwrap();
        let Asked::Connect(asked) = read_request(&mut stream).await.unwrap() else { panic!() };
        write_answer(&mut stream, &Answer::Ready(String::new())).await.unwrap();
        (format!("{}:{}", asked.host, asked.port), stream)
    }

    /// The answer to a client; no server is asked.
    async fn refusal(sent: impl AsRef<[u8]>, auth: Option<&str>) -> String {
        let mut scene = Self::with(auth).await;
        let mut client = scene.client(sent).await;
        let mut answered = vec![0; 4096];
        let count = client.read(&mut answered).await.unwrap();
        let answered = String::from_utf8_lossy(&answered[..count]).into_owned();
        assert!(scene.streams.try_recv().is_err(), "{answered}");
        answered
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One head, as it was sent.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn text(stream: &mut (impl AsyncRead + Unpin), length: usize) -> String {
    let mut text = vec![0; length];
    stream.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn the_next_request_goes_to_its_own_host() {
    let mut scene = Scene::new().await;
    let mut client = scene.client("GET http://a/1 HTTP/1.1\r\nCookie: of-a\r\n\r\n").await;
    let (target, mut first) = scene.server().await;
    assert_eq!(target, "a:80");
    let asked = head(&mut first).await;
    assert!(asked.starts_with("GET /1 HTTP/1.1\r\n") && asked.contains("of-a"), "{asked}");
    // The server keeps its connection open and would like to hear more.
    first.write_all(OK).await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(text(&mut client, 2).await, "ok");
    client.write_all(b"GET http://b:81/login HTTP/1.1\r\nCookie: of-b\r\n\r\n").await.unwrap();
    let (target, mut second) = scene.server().await;
    assert_eq!(target, "b:81");
    let asked = head(&mut second).await;
    assert!(asked.starts_with("GET /login ") && asked.contains("of-b"), "{asked}");
    let mut more = String::new();
    first.read_to_string(&mut more).await.unwrap();
    assert_eq!(more, "", "the first server gets one request");
}

#[tokio::test]
async fn pipelined_requests_and_bodies_reach_their_own_hosts() {
    let chunked =
        "POST http://a/1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n0\r\n\r\n";
    let counted = "POST http://a/1 HTTP/1.1\r\nContent-Length: 4\r\n\r\ndata";
    for (request, body) in [(chunked, "4\r\ndata\r\n0\r\n\r\n"), (counted, "data")] {
        let mut scene = Scene::new().await;
        let second = "GET http://b/login HTTP/1.1\r\nCookie: secret\r\n\r\n";
        let mut client = scene.client([request, second].concat()).await;
        let (_, mut first) = scene.server().await;
        let asked = head(&mut first).await;
        assert!(!(asked.contains("ontent-") && asked.contains("ransfer-")), "{asked}");
        assert_eq!(text(&mut first, body.len()).await, body);
        first.write_all(OK).await.unwrap();
        head(&mut client).await;
        let (target, mut other) = scene.server().await;
        assert_eq!(target, "b:80");
        assert!(head(&mut other).await.contains("secret"));
        let mut more = String::new();
        first.read_to_string(&mut more).await.unwrap();
        assert_eq!(more, "");
    }
}

/// RFC 9112 §6.3: such a request may be an attack, and is its connection's last.
#[tokio::test]
async fn a_body_with_two_lengths_ends_its_connection() {
    let mut scene = Scene::new().await;
    let both = "POST http://a/1 HTTP/1.1\r\nContent-Length: 40\r\n\
                Transfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n0\r\n\r\n\
                GET http://b/login HTTP/1.1\r\nCookie: secret\r\n\r\n";
    let mut client = scene.client(both).await;
    let (_, mut first) = scene.server().await;
    let asked = head(&mut first).await.to_ascii_lowercase();
    assert!(!asked.contains("content-length") && asked.contains("transfer-encoding"), "{asked}");
    first.write_all(OK).await.unwrap();
    let mut body = String::new();
    first.read_to_string(&mut body).await.unwrap();
    assert_eq!(body, "4\r\ndata\r\n0\r\n\r\n");
    let mut answered = String::new();
    client.read_to_string(&mut answered).await.unwrap();
    assert!(answered.ends_with("\r\n\r\nok"), "{answered}");
    assert!(scene.streams.try_recv().is_err());
}

/// A server that answers twice answers for nobody else.
#[tokio::test]
async fn a_second_response_answers_no_other_request() {
    let mut scene = Scene::new().await;
    let two = "GET http://a/ HTTP/1.1\r\n\r\nGET http://b/ HTTP/1.1\r\n\r\n";
    let mut client = scene.client(two).await;
    let (_, mut first) = scene.server().await;
    head(&mut first).await;
    first
        .write_all(&[OK, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"].concat())
        .await
        .unwrap();
    head(&mut client).await;
    assert_eq!(text(&mut client, 2).await, "ok");
    let (_, mut second) = scene.server().await;
    head(&mut second).await;
    second.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood").await.unwrap();
    head(&mut client).await;
    assert_eq!(text(&mut client, 4).await, "good");
}

#[tokio::test]
async fn the_server_gets_no_field_of_this_hop() {
    let mut scene = Scene::new().await;
    let asked = "GET http://example.org:8080/a?b=1 HTTP/1.0\r\nHost: other.example\r\n\
                 Proxy-Authorization: Basic bWU6c2VjcmV0\r\nConnection: keep-alive, X-Hop, Content-Length\r\n\
                 Keep-Alive: timeout=5\r\nX-Hop: 1\r\nTE: trailers\r\naCCept: */*\r\n\r\n";
    let mut client = scene.client(asked).await;
    let (target, mut server) = scene.server().await;
    assert_eq!(target, "example.org:8080");
    let mut fields: Vec<_> = head(&mut server).await.lines().map(str::to_owned).collect();
    assert_eq!(fields.remove(0), "GET /a?b=1 HTTP/1.1");
    fields.retain(|field| !field.is_empty());
    fields.sort_by_key(|field| field.to_ascii_lowercase());
    let wanted = ["aCCept: */*", "Connection: close", "Host: example.org:8080"];
    assert!(
        fields.iter().zip(wanted).all(|(is, wanted)| is.eq_ignore_ascii_case(wanted)),
        "{fields:?}"
    );
    assert_eq!(fields.len(), wanted.len());
    assert!(fields[0].starts_with("aCCept"), "names keep their case");
    server
        .write_all(
            b"HTTP/1.1 200 Fine\r\nConnection: X-Far\r\nX-Far: 1\r\nX-Near: 2\r\n\r\nuntil the end",
        )
        .await
        .unwrap();
    drop(server);
    let mut answered = String::new();
    client.read_to_string(&mut answered).await.unwrap();
    assert!(answered.contains("X-Near: 2") && !answered.contains("X-Far"), "{answered}");
    assert!(answered.starts_with("HTTP/1.0 200 Fine\r\n") && answered.ends_with("until the end"));
}

#[tokio::test]
async fn a_protocol_is_changed_when_both_agree() {
    for scheme in ["http", "ws"] {
        let mut scene = Scene::new().await;
        let upgrade = format!(
            "GET {scheme}://a/chat HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: k\r\n\r\nearly"
        );
        let mut client = scene.client(upgrade).await;
        let (target, mut server) = scene.server().await;
        assert_eq!(target, "a:80");
        let asked = head(&mut server).await.to_ascii_lowercase();
        for field in
            ["upgrade: websocket\r\n", "connection: upgrade\r\n", "sec-websocket-key: k\r\n"]
        {
            assert!(asked.contains(field), "{asked}");
        }
        server
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
            .await
            .unwrap();
        let answered = head(&mut client).await.to_ascii_lowercase();
        assert!(answered.starts_with("http/1.1 101 ") && answered.contains("upgrade: websocket"));
        assert_eq!(text(&mut client, 5).await, "hello");
        assert_eq!(text(&mut server, 5).await, "early");
        client.write_all(b"GET http://b/ HTTP/1.1\r\n\r\n").await.unwrap();
        assert!(head(&mut server).await.contains("http://b/"), "it is the server's connection now");
        assert!(scene.streams.try_recv().is_err());
    }
}

#[tokio::test]
async fn a_server_changes_nothing_that_nobody_asked_for() {
    for (asked, answer) in [
        ("", "101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket"),
        ("Upgrade: websocket\r\n", "101 Switching Protocols\r\nUpgrade: websocket"),
        ("Connection: upgrade\r\nUpgrade: h2c\r\n", "101 Switching Protocols\r\nUpgrade: h2c"),
        ("Connection: upgrade\r\nUpgrade: bar\r\n", "101 Switching Protocols\r\nUpgrade: foo"),
        ("", "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x"),
    ] {
        let mut scene = Scene::new().await;
        let mut client = scene.client(format!("GET http://a/ HTTP/1.1\r\n{asked}\r\n")).await;
        let (_, mut server) = scene.server().await;
        let head = head(&mut server).await.to_ascii_lowercase();
        assert_eq!(head.contains("upgrade"), asked.contains("bar"), "{head}");
        server.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await.unwrap();
        let mut answered = String::new();
        client.read_to_string(&mut answered).await.unwrap();
        assert!(answered.starts_with("HTTP/1.1 502 "), "{answered}");
        assert!(!answered.to_ascii_lowercase().contains("realm"), "{answered}");
    }
}

/// Bytes behind the request hide the client's end from whoever reads in order.
#[tokio::test]
async fn a_gone_client_is_noticed_behind_its_bytes() {
    for reset in [false, true] {
        let mut scene = Scene::new().await;
        let mut client = scene.client("GET http://a/ HTTP/1.1\r\n\r\nGET http://b/").await;
        let (_, mut server) = scene.server().await;
        head(&mut server).await;
        server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await.unwrap();
        head(&mut client).await;
        if reset {
            socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        }
        drop(client);
        assert_eq!(server.read(&mut [0; 9]).await.unwrap(), 0, "the server hears of it");
    }
}

/// RFC 9112 §6.3: the chunks count, and a length beside them would cut them off.
#[tokio::test]
async fn a_response_with_two_lengths_arrives_whole() {
    let mut scene = Scene::new().await;
    let mut client = scene.client("GET http://a?q HTTP/1.1\r\n\r\n").await;
    let (_, mut server) = scene.server().await;
    assert!(head(&mut server).await.starts_with("GET /?q HTTP/1.1\r\n"));
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
    server.write_all(both.as_bytes()).await.unwrap();
    server.write_all(b"5\r\nhello\r\n0\r\n\r\n").await.unwrap();
    let answered = head(&mut client).await.to_ascii_lowercase();
    assert!(!answered.contains("content-length"), "{answered}");
    assert_eq!(text(&mut client, 15).await, "5\r\nhello\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_broken_body_is_the_clients_fault() {
    let mut scene = Scene::new().await;
    let broken = "POST http://a/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n";
    let mut client = scene.client(broken).await;
    let (_, _server) = scene.server().await;
    let answered = head(&mut client).await;
    assert!(answered.starts_with("HTTP/1.1 400 "), "{answered}");
}

#[tokio::test]
async fn a_response_that_is_cut_off_is_no_whole_one() {
    // Only the end of the connection ends the body of an HTTP/1.0 client.
    for version in ["1.0", "1.1"] {
        let mut scene = Scene::new().await;
        let mut client = scene.client(format!("GET http://a/ HTTP/{version}\r\n\r\n")).await;
        let (_, mut server) = scene.server().await;
        head(&mut server).await;
        server
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n")
            .await
            .unwrap();
        head(&mut client).await;
        drop(server);
        let mut body = Vec::new();
        let end = client.read_to_end(&mut body).await;
        assert!(body.windows(5).any(|part| part == b"begun"));
        assert!(end.is_err(), "HTTP/{version}: {body:?}");
    }
}

#[tokio::test]
async fn a_request_ends_with_its_client() {
    let mut scene = Scene::new().await;
    // More than the proxy has places; each server stays silent, or falls silent in its answer.
    for number in 0..3 * PLACES {
        let client = scene.client("GET http://a/ HTTP/1.1\r\n\r\n").await;
        let (_, mut server) = scene.server().await;
        head(&mut server).await;
        if number % 2 == 1 {
            server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun").await.unwrap();
        }
        if number % 3 == 1 {
            socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        }
        drop(client);
        assert_eq!(server.read(&mut [0; 9]).await.unwrap(), 0, "the server hears of it");
    }
}

#[tokio::test]
async fn refusals_are_answered_in_words() {
    for (asked, status, words) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 501, "CONNECT"),
        ("GET https://a/ HTTP/1.1\r\n\r\n", 501, "CONNECT"),
        ("GET ftp://a/ HTTP/1.1\r\n\r\n", 501, "CONNECT"),
        ("GET http://u@a/ HTTP/1.1\r\n\r\n", 501, "CONNECT"),
        ("GET http://a:70000/ HTTP/1.1\r\n\r\n", 501, "CONNECT"),
        (
            "POST http://a/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            501,
            "gzip",
        ),
        ("CONNECT a HTTP/1.1\r\n\r\n", 400, "HOST:PORT"),
        ("CONNECT u@a:1 HTTP/1.1\r\n\r\n", 400, "HOST:PORT"),
        ("CONNECT a:70000 HTTP/1.1\r\n\r\n", 400, ""),
        ("CONNECT :443 HTTP/1.1\r\n\r\n", 400, ""),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400, ""),
        ("POST http://a/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nab", 400, ""),
        ("\x05\x01\0", 400, ""),
    ] {
        let answered = Scene::refusal(asked, None).await;
        assert!(answered.starts_with(&format!("HTTP/1.1 {status} ")), "{asked:?}: {answered}");
        assert!(answered.contains(words), "{asked:?}: {answered}");
    }
    let long = format!("CONNECT a:1 HTTP/1.1\r\nA: {}", "x".repeat(2 * HEAD_MAX));
    assert!(Scene::refusal(long, None).await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn each_request_needs_the_password() {
    let request =
        |value: &str| format!("GET http://a/ HTTP/1.1\r\nproxy-Authorization: {value}\r\n\r\n");
    for wrong in ["", "Basic", "Basic !", "Bearer bWU6c2VjcmV0", "Basic bWU6d3Jvbmc="] {
        let answered = Scene::refusal(request(wrong), Some("me:secret")).await;
        assert!(answered.starts_with("HTTP/1.1 407 "), "{wrong}: {answered}");
        assert!(answered.to_ascii_lowercase().contains("proxy-authenticate: basic"), "{answered}");
    }
    let mut scene = Scene::with(Some("me:secret")).await;
    let right = request(&format!("basic {}", STANDARD.encode("me:secret")));
    let mut client = scene.client(right + "GET http://b/ HTTP/1.1\r\n\r\n").await;
    let (_, mut server) = scene.server().await;
    assert!(!head(&mut server).await.to_ascii_lowercase().contains("authorization"));
    server.write_all(OK).await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(text(&mut client, 2).await, "ok");
    assert!(head(&mut client).await.starts_with("HTTP/1.1 407 "), "the second has none");
    assert!(scene.streams.try_recv().is_err());
}

#[tokio::test]
async fn wrong_passwords_are_not_checked_for_ever() {
    let mut scene = Scene::with(Some("me:secret")).await;
    let request = |password: &str| {
        let value = STANDARD.encode(format!("me:{password}"));
        format!("GET http://a/ HTTP/1.1\r\nProxy-Authorization: Basic {value}\r\n\r\n")
    };
    let mut refused = 0;
    loop {
        let mut client = scene.client(request("wrong")).await;
        let mut answered = Vec::new();
        client.read_to_end(&mut answered).await.unwrap();
        if answered.starts_with(b"HTTP/1.1 429 ") {
            break;
        }
        assert!(answered.starts_with(b"HTTP/1.1 407 "));
        refused += 1;
        assert!(refused < 1000, "guessing goes on");
    }
    let mut client = scene.client(request("secret")).await;
    let answered = head(&mut client).await;
    assert!(answered.starts_with("HTTP/1.1 429 "), "nor is a right one from there: {answered}");
    assert!(scene.streams.try_recv().is_err());
}

#[test]
fn targets() {
    let target = |address: &str| forward::target_of_address(&address.parse().unwrap());
    let is = |host: &str, port| Some(Target { host: host.to_owned(), port });
    assert_eq!(target("http://a"), is("a", 80));
    assert_eq!(target("HTTP://a?q"), is("a", 80));
    assert_eq!(target("ws://a:81/"), is("a", 81));
    assert_eq!(target("http://[2001:db8::1]:81/x"), is("2001:db8::1", 81));
    assert_eq!(target("http://[2001:db8::1]"), is("2001:db8::1", 80));
    for bad in ["/", "*", "https://a/", "wss://a/", "http://u@a/", "http://u:p@a/", "a:80"] {
        assert_eq!(target(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn any_request_reaches_the_host_it_names(
        host in "[a-z]{1,9}(\\.[a-z]{1,9})?", port in 1u16.., path in "(/[a-z0-9%]{0,9}){0,3}",
        fields in prop::collection::vec("[A-Za-z-]{1,12}: [ -~]{0,20}", 0..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let request = format!("GET http://{host}:{port}{path} HTTP/1.1\r\n{fields}\r\n");
        runtime.block_on(async {
            let mut scene = Scene::new().await;
            let client = scene.client(&request).await;
            let asked = tokio::select! {
                (target, mut stream) = scene.server() => Some((target, head(&mut stream).await)),
                _ = client.readable() => None,
            };
            let Some((target, head)) = asked else { return Ok(()) };
            prop_assert_eq!(target, format!("{host}:{port}"));
            let hosts = head.to_ascii_lowercase().matches("\r\nhost:").count();
            prop_assert_eq!(hosts, 1, "{}", head);
            prop_assert!(head.contains(&format!("{host}:{port}\r\n")), "{}", head);
            Ok(())
        })?;
    }
}
