//! Peers that do not keep to the rules: each is turned away, and others are served on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::str::FromStr;

use fbdt::{Class, ClientConfig, Link, PathSpec, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::Server;
use crate::web;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

#[test]
fn malformed_requests_on_streams_are_answered_and_the_session_goes_on() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&["--allow", "127.0.0.1"]);
    let link = Link::from_str(&server.link()).unwrap();
    block_on(async {
        let mut config = ClientConfig::new(link);
        config.paths = vec![PathSpec { name: "any".to_owned(), ..PathSpec::default() }];
        let session = connect(config).await.unwrap();
        let malformed: [(&[u8], u8); 5] = [
            (b"\x09\x00\x00", 7),
            (b"\x01\x00\x02{}", 9),
            (b"\x01\xff\xff", 9),
            (b"\x02\x00\x04null", 9),
            (b"\x03\x00\x14{\"id\":77,\"index\":300}", 9),
        ];
        for (request, status) in malformed {
            let mut stream = session.open_stream(Class::Interactive).await.unwrap();
            stream.write_all(request).await.unwrap();
            let code = stream.read_u8().await.unwrap();
            assert_eq!(code, status, "{request:?}");
        }
        let mut stream = session.open_stream(Class::Interactive).await.unwrap();
        let body = format!(r#"{{"host":"127.0.0.1","port":{}}}"#, web.port());
        stream.write_all(&[1, 0, body.len() as u8]).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), 0);
        session.close(0, "done").await;
    });
}

#[test]
fn garbage_on_every_port_harms_nobody() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&["--allow", "127.0.0.1"]);
    let client = server.client(&[]);
    let mut garbage = vec![0xa5; 200_000];
    garbage[0] = 22;
    for port in [server.listen(), client.socks(), client.http()] {
        for length in [1, 3, 1000, garbage.len()] {
            let mut connection = TcpStream::connect(&port).unwrap();
            let _ = connection.write_all(&garbage[..length]);
            let _ = connection.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            // Ends, whether with an answer, an end or a reset.
            let _ = connection.read_to_end(&mut answer);
        }
    }
    let output = client.curl_socks(&[&format!("http://{web}/100")]);
    assert_eq!(output.stdout, web::body(100));
}

#[test]
fn a_wrong_secret_and_a_wrong_key_are_told_apart() {
    let server = Server::start(&[]);
    let other = Server::start(&[]);
    let (link, other) = (server.link(), other.link());
    let key = |link: &str| link.split("k=").nth(1).unwrap()[..43].to_owned();
    let run =
        |link: &str| crate::harness::run(server.runtime(), &["bench", link, "--bytes", "1Ki"]);
    let wrong_key = run(&link.replace(&key(&link), &key(&other)));
    assert_eq!(wrong_key.status.code(), Some(1), "{wrong_key:?}");
    assert!(crate::harness::stderr(&wrong_key).contains("key"), "{wrong_key:?}");
    let credential = |link: &str| link.split("c=").nth(1).unwrap().to_owned();
    let unknown = run(&link.replace(&credential(&link), &credential(&other)));
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    assert!(
        crate::harness::stderr(&unknown).contains("does not accept the link's credential"),
        "{unknown:?}"
    );
}

#[test]
fn an_application_that_never_reads_does_not_stop_the_others() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&["--allow", "127.0.0.1"]);
    let client = server.client(&[]);
    let mut idle = TcpStream::connect(client.http()).unwrap();
    let request = format!("CONNECT {web} HTTP/1.1\r\n\r\nGET /60000000 HTTP/1.1\r\n\r\n");
    idle.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    for _ in 0..3 {
        let output = client.curl_socks(&[&format!("http://{web}/3000000")]);
        assert_eq!(output.stdout.len(), 3_000_000);
    }
}
