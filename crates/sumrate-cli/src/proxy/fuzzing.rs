//! Both proxies with bytes of a stranger, in one piece, with and without a password.
#![allow(clippy::panic)] // this is what finds

use tokio::io::{AsyncReadExt, AsyncWriteExt, join};
use tokio_util::sync::CancellationToken;

use super::http::HttpProxy;
use super::passwords::PasswordCheck;
use super::socks5::Target;
use crate::args::ProxyAuth;
use crate::classes::ClassRules;
use crate::fuzzing::now;
use crate::service::{Answer, Request, read_request, write_answer};
use crate::tunnel::in_memory::pipe_tunnel;

fn passwords() -> [Option<ProxyAuth>; 2] {
    [None, "me:secret".parse().ok()]
}

/// What was read beyond the request is the end of what was read, and the target can be passed on.
fn check(read: &[u8], buffer: &[u8], target: &Target) {
    assert!(read.ends_with(buffer), "bytes behind the request are kept as they came");
    assert!(!target.host.is_empty(), "a target has a host");
}

/// The SOCKS5 proxy.
pub fn socks5(data: &[u8]) {
    silent(data);
    for auth in passwords() {
        let (mut buffer, mut answer, mut rest) = (Vec::new(), Vec::new(), data);
        let mut client = join(&mut rest, &mut answer);
        let outcome = now(super::socks5::handshake(&mut client, auth.as_ref(), &mut buffer));
        if let Ok(request) = &outcome {
            check(&data[..data.len() - rest.len()], &buffer, &request.target);
            assert!(answer.len() >= 2, "the client was told which method");
            assert!(auth.is_none() || data.windows(6).any(|w| w == b"secret"), "without password");
        }
    }
}

/// The form of SOCKS5 that has no answers.
fn silent(data: &[u8]) {
    for auth in passwords() {
        let (mut buffer, mut rest) = (Vec::new(), data);
        if !matches!(now(super::silent::is_wanted(&mut rest, &mut buffer)), Ok(true)) {
            continue;
        }
        let outcome = now(super::silent::handshake(&mut rest, auth.as_ref(), &mut buffer));
        if let Ok(request) = &outcome {
            check(&data[..data.len() - rest.len()], &buffer, &request.target);
            assert!(auth.is_none() || data.windows(6).any(|w| w == b"secret"), "without password");
        }
    }
}

/// The HTTP proxy: each server gets one request, which names it.
pub fn http(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
    for auth in passwords() {
        runtime.block_on(async {
            let (here, mut there) = tokio::io::duplex(data.len().max(1));
            let (tunnel, streams) = pipe_tunnel();
            let (rules, stop) = (ClassRules::default(), CancellationToken::new());
            let password = auth.as_ref().map(|auth| auth as &dyn PasswordCheck);
            let proxy = HttpProxy::new(password, &tunnel, &rules);
            let talk = async {
                let _ = there.write_all(data).await;
                let _ = there.shutdown().await;
                let _ = tokio::io::copy(&mut there, &mut tokio::io::sink()).await;
            };
            let serve = async {
                let _ = proxy.converse(here, &stop).await;
                // What follows a tunnel is its target's.
                drop(proxy.switched());
            };
            tokio::select! {
                () = async { tokio::join!(serve, talk); } => {}
                () = servers(streams, auth.is_some(), data) => {}
            }
        });
    }
}

/// Plays the servers, one after the other as the proxy asks for them.
async fn servers(
    mut streams: tokio::sync::mpsc::UnboundedReceiver<tokio::io::DuplexStream>,
    has_password: bool,
    data: &[u8],
) {
    while let Some(mut stream) = streams.recv().await {
        assert!(!has_password || data.windows(12).any(|w| w == b"bWU6c2VjcmV0"), "no password");
        let Ok(Request::Connect(asked)) = read_request(&mut stream).await else { continue };
        let _ = write_answer(&mut stream, &Answer::Ready(String::new())).await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { break };
            head.push(byte);
        }
        if head.is_empty() {
            continue;
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let mut body = Vec::new();
        let _ = stream.read_to_end(&mut body).await;
        check_request(&asked.host, asked.port, &head, &body);
    }
    std::future::pending().await
}

/// One request with one `Host`, the server's own, and no byte behind its body.
fn check_request(host: &str, port: u16, head: &[u8], body: &[u8]) {
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut fields);
    let parsed = request.parse(head);
    assert_eq!(parsed, Ok(httparse::Status::Complete(head.len())), "a request is whole");
    let values = |name: &str| -> Vec<String> {
        let named = request.headers.iter().filter(|f| f.name.eq_ignore_ascii_case(name));
        named.map(|field| String::from_utf8_lossy(field.value).into_owned()).collect()
    };
    let [named] = &values("host")[..] else { panic!("one host: {head:?}") };
    let authority = named.parse().unwrap_or_else(|error| panic!("{error}: {named}"));
    let target = super::forward::target_of(&authority, Some(80));
    assert_eq!(target, Some(Target { host: host.to_owned(), port }), "the server is the host");
    assert!(values("proxy-authorization").is_empty(), "the password is for the proxy alone");
    match (&values("content-length")[..], &values("transfer-encoding")[..]) {
        ([], []) => assert!(body.is_empty(), "no length, no body"),
        ([length], []) => {
            let length: usize = length.parse().unwrap_or_else(|error| panic!("{error}: {length}"));
            assert!(body.len() <= length, "more than its length");
        }
        ([], [coding]) => {
            assert_eq!(coding, "chunked");
            assert!(chunked(body).is_none_or(<[u8]>::is_empty), "bytes behind the last chunk");
        }
        both => panic!("two lengths: {both:?}"),
    }
}

/// The bytes behind a chunked body (RFC 9112 §7.1); `None` while its end is not there.
fn chunked(mut body: &[u8]) -> Option<&[u8]> {
    loop {
        let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(body) else {
            return None;
        };
        let size = usize::try_from(size).ok()?;
        if size == 0 {
            let end = body.windows(4).position(|four| four == b"\r\n\r\n")?;
            return body.get(end + 4..);
        }
        body = body.get(start + size + 2..)?;
    }
}
