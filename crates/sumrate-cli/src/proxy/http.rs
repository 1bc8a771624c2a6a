//! The proxy's part of HTTP/1.1: the CONNECT method (RFC 9110 §9.3.6), and requests for `http://`
//! addresses.

use std::io;
use std::net::Ipv6Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::plain;
use super::socks5::Target;
use crate::args::ProxyAuth;
use crate::service::FailureCode;

/// Longest request head, in bytes.
const HEAD_MAX: usize = 16 << 10;
/// Most header fields.
pub(super) const FIELDS_MAX: usize = 64;

/// Why an HTTP request was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the client's connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("the request head is longer than 16 KiB")]
    TooLong,
    #[error("the request is not HTTP/1: {0}")]
    Malformed(#[from] httparse::Error),
    #[error("this is a proxy: it carries CONNECT, and requests for http://HOST[:PORT]/...")]
    Method,
    #[error("the target of CONNECT must be HOST:PORT")]
    Target,
    #[error("the proxy wants a user name and password")]
    Unauthorised,
}

/// A request that was understood.
#[derive(Debug, PartialEq)]
pub(crate) struct Asked {
    /// Where to.
    pub(crate) target: Target,
    /// What the server there gets first, of a request for an `http://` address; without one the
    /// client wants a tunnel, and to be told when it is there.
    pub(crate) head: Option<Vec<u8>>,
}

/// A request head that was understood, and its length.
fn parse(bytes: &[u8], auth: Option<&ProxyAuth>) -> Result<Option<(Asked, usize)>, HttpError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(length) = request.parse(bytes)? else {
        return if bytes.len() >= HEAD_MAX { Err(HttpError::TooLong) } else { Ok(None) };
    };
    if let Some(auth) = auth
        && !authorised(request.headers, auth)
    {
        return Err(HttpError::Unauthorised);
    }
    if request.method != Some("CONNECT") {
        let (target, head) = plain::forwarded(&request).ok_or(HttpError::Method)?;
        return Ok(Some((Asked { target, head: Some(head) }, length)));
    }
    let target = request.path.and_then(|path| authority(path, None)).ok_or(HttpError::Target)?;
    Ok(Some((Asked { target, head: None }, length)))
}

/// `HOST:PORT`; `HOST` alone if a port is given for it. IPv6 addresses stand in brackets; without
/// them, as some clients send it, the port is behind the last colon.
pub(super) fn authority(text: &str, port: Option<u16>) -> Option<Target> {
    let (host, port) = match (text.rsplit_once(':'), port) {
        (Some((host, digits)), _) if !digits.ends_with(']') => (host, digits.parse().ok()?),
        (_, Some(port)) => (text, port),
        _ => return None,
    };
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.to_string(),
        None if host.contains(':') => host.parse::<Ipv6Addr>().ok()?.to_string(),
        None if host.is_empty() || host.contains('@') => return None,
        None => host.to_owned(),
    };
    Some(Target { host, port })
}

fn authorised(fields: &[httparse::Header<'_>], auth: &ProxyAuth) -> bool {
    let value = fields
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case("proxy-authorization"))
        .and_then(|field| std::str::from_utf8(field.value).ok());
    let Some((scheme, encoded)) = value.and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let Ok(decoded) = STANDARD.decode(encoded.trim()) else {
        return false;
    };
    let Some(colon) = decoded.iter().position(|byte| *byte == b':') else {
        return false;
    };
    scheme.eq_ignore_ascii_case("basic") && auth.matches(&decoded[..colon], &decoded[colon + 1..])
}

/// Reads one request head. What the client sent beyond it is left in `buffer`; a request that is not
/// carried out has been answered.
pub(crate) async fn handshake<C: AsyncRead + AsyncWrite + Unpin>(
    client: &mut C,
    auth: Option<&ProxyAuth>,
    buffer: &mut Vec<u8>,
) -> Result<Asked, HttpError> {
    loop {
        match parse(buffer, auth) {
            Ok(Some((asked, length))) => {
                buffer.drain(..length);
                return Ok(asked);
            }
            Ok(None) => read_more(client, buffer).await?,
            Err(error) => {
                let (status, extra) = refusal(&error);
                answer(client, status, extra, &error.to_string()).await?;
                return Err(error);
            }
        }
    }
}

fn refusal(error: &HttpError) -> (&'static str, &'static str) {
    match error {
        HttpError::TooLong => ("431 Request Header Fields Too Large", ""),
        HttpError::Method => ("501 Not Implemented", ""),
        HttpError::Unauthorised => {
            ("407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=\"sumrate\"\r\n")
        }
        HttpError::Io(_) | HttpError::Malformed(_) | HttpError::Target => ("400 Bad Request", ""),
    }
}

/// Tells the client that the connection is made.
pub(crate) async fn established<C: AsyncWrite + Unpin>(client: &mut C) -> io::Result<()> {
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    client.flush().await
}

/// Tells the client why there is no connection.
pub(crate) async fn failed<C: AsyncWrite + Unpin>(
    client: &mut C,
    code: FailureCode,
    message: &str,
) -> io::Result<()> {
    let status = match code {
        FailureCode::NotAllowed => "403 Forbidden",
        FailureCode::TimedOut => "504 Gateway Timeout",
        FailureCode::Busy => "503 Service Unavailable",
        _ => "502 Bad Gateway",
    };
    answer(client, status, "", message).await
}

async fn answer<C: AsyncWrite + Unpin>(
    client: &mut C,
    status: &str,
    extra: &str,
    message: &str,
) -> io::Result<()> {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         {extra}Connection: close\r\n\r\n{message}\n",
        message.len() + 1
    );
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}

async fn read_more<C: AsyncRead + Unpin>(client: &mut C, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut chunk = [0; 2048];
    match client.read(&mut chunk).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            buffer.extend_from_slice(&chunk[..count]);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn run(input: &[u8], auth: Option<&ProxyAuth>) -> (Result<Asked, HttpError>, String) {
        let (mut client, mut server) = tokio::io::duplex(64 << 10);
        client.write_all(input).await.unwrap();
        client.shutdown().await.unwrap();
        let outcome = handshake(&mut server, auth, &mut Vec::new()).await;
        drop(server);
        let mut answered = String::new();
        client.read_to_string(&mut answered).await.unwrap();
        (outcome, answered)
    }

    #[test]
    fn targets() {
        let connect = |target: &str| {
            let head = format!("CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\nearly");
            parse(head.as_bytes(), None).map(|parsed| parsed.map(|(asked, _)| asked.target))
        };
        let good = |target: &str| connect(target).unwrap().unwrap();
        assert_eq!(good("example.org:443"), Target { host: "example.org".to_owned(), port: 443 });
        assert_eq!(good("[2001:db8::1]:80").host, "2001:db8::1");
        assert_eq!(good("2001:db8::1:80"), Target { host: "2001:db8::1".to_owned(), port: 80 });
        for bad in
            ["example.org", ":443", "[x]:1", "[::1]", "a:1:80", "a:b", "a:70000", "http://a/"]
        {
            assert!(matches!(connect(bad), Err(HttpError::Target)), "{bad}");
        }
    }

    #[tokio::test]
    async fn refusals_are_answered_in_words() {
        let (_, answered) = run(b"GET / HTTP/1.1\r\n\r\n", None).await;
        assert!(
            answered.starts_with("HTTP/1.1 501 ") && answered.contains("CONNECT"),
            "{answered}"
        );
        let (_, answered) = run(b"\x05\x01\x00", None).await;
        assert!(answered.starts_with("HTTP/1.1 400 "), "{answered}");
        let long = [b"CONNECT a:1 HTTP/1.1\r\nA: ".as_slice(), &vec![b'x'; 40_000]].concat();
        let (outcome, answered) = run(&long, None).await;
        assert!(matches!(outcome, Err(HttpError::TooLong)));
        assert!(answered.starts_with("HTTP/1.1 431 "));
    }

    #[tokio::test]
    async fn password() {
        let auth: ProxyAuth = "me:secret".parse().unwrap();
        let request = |value: &str| {
            format!("CONNECT a:1 HTTP/1.1\r\nproxy-Authorization: {value}\r\n\r\n").into_bytes()
        };
        let right = format!("basic {}", STANDARD.encode("me:secret"));
        assert!(run(&request(&right), Some(&auth)).await.0.is_ok());
        for wrong in ["", "Basic", "Basic !", "Bearer bWU6c2VjcmV0", "Basic bWU6d3Jvbmc="] {
            let (outcome, answered) = run(&request(wrong), Some(&auth)).await;
            assert!(matches!(outcome, Err(HttpError::Unauthorised)), "{wrong}");
            assert!(answered.contains("Proxy-Authenticate: Basic"), "{answered}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let auth: ProxyAuth = "me:secret".parse().unwrap();
            let _ = parse(&bytes, Some(&auth));
            let _ = parse(&[b"CONNECT ".as_slice(), &bytes].concat(), None);
            let head: Vec<u8> = [
                b"CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: Basic ".as_slice(), &bytes, b"\r\n\r\n",
            ].concat();
            let _ = parse(&head, Some(&auth));
        }
    }
}
