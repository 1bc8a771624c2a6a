//! Both proxies' handshakes with bytes of a stranger, in one piece, with and without a password.

use tokio::io::join;

use super::socks5::Target;
use crate::args::ProxyAuth;
use crate::fuzzing::now;

fn passwords() -> [Option<ProxyAuth>; 2] {
    [None, "me:secret".parse().ok()]
}

/// What was read beyond the request is the end of what was read, and the target can be passed on.
fn check(read: &[u8], buffer: &[u8], target: &Target, answer: &[u8]) {
    assert!(read.ends_with(buffer), "bytes behind the request are kept as they came");
    assert!(!target.host.is_empty() || answer.is_empty(), "a target has a host");
}

/// The SOCKS5 proxy.
pub fn socks5(data: &[u8]) {
    silent(data);
    for auth in passwords() {
        let (mut buffer, mut answer, mut rest) = (Vec::new(), Vec::new(), data);
        let mut client = join(&mut rest, &mut answer);
        let outcome = now(super::socks5::handshake(&mut client, auth.as_ref(), &mut buffer));
        if let Ok(request) = &outcome {
            check(&data[..data.len() - rest.len()], &buffer, &request.target, &[]);
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
            check(&data[..data.len() - rest.len()], &buffer, &request.target, &[]);
            assert!(auth.is_none() || data.windows(6).any(|w| w == b"secret"), "without password");
        }
    }
}

/// The HTTP CONNECT proxy.
pub fn http(data: &[u8]) {
    for auth in passwords() {
        let (mut buffer, mut answer, mut rest) = (Vec::new(), Vec::new(), data);
        let mut client = join(&mut rest, &mut answer);
        let outcome = now(super::http::handshake(&mut client, auth.as_ref(), &mut buffer));
        match &outcome {
            Ok(asked) => {
                let read = &data[..data.len() - rest.len()];
                check(read, &buffer, &asked.target, &answer);
                if let Some(head) = &asked.head {
                    assert!(head.ends_with(b"Connection: close\r\n\r\n"), "one request");
                    // Each field may gain a space and a CR; a path its slash, the end its last field.
                    let most = read.len() + 2 * super::http::FIELDS_MAX + 64;
                    assert!(head.len() <= most, "a head grows by no more than that");
                }
            }
            Err(super::http::HttpError::Io(_)) => {}
            Err(_) => assert!(answer.starts_with(b"HTTP/1.1 "), "a refusal is an answer"),
        }
    }
}
