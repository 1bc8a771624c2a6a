//! Requests for `http://` addresses, which come to a proxy in absolute form (RFC 9112 §3.2.2).
//!
//! One request a connection: what is forwarded asks the server to close, so that the client's next
//! request, which may be for another server, comes on a connection of its own.

use super::http::authority;
use super::socks5::Target;

/// Fields that are for the proxy, or about the connection to it (RFC 9110 §7.6.1).
const HOP: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "proxy-authorization"];
const PORT: u16 = 80;

/// Where an absolute-form request goes, and its head as the server there gets it; `None` if the
/// address is no `http://HOST[:PORT]/...`.
pub(super) fn forwarded(request: &httparse::Request<'_, '_>) -> Option<(Target, Vec<u8>)> {
    let (method, address) = (request.method?, request.path?);
    let scheme = address.get(..7)?;
    if !scheme.eq_ignore_ascii_case("http://") {
        return None;
    }
    let rest = &address[7..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let path = path.split('#').next().unwrap_or_default();
    let target = authority(host, Some(PORT))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let version = request.version.unwrap_or(1);
    let mut head = format!("{method} {slash}{path} HTTP/1.{version}\r\n").into_bytes();
    let nominated = nominated(request);
    for field in request.headers.iter() {
        let name = field.name.to_ascii_lowercase();
        if !HOP.contains(&name.as_str()) && !nominated.contains(&name) {
            head.extend_from_slice(field.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(field.value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    Some((target, head))
}

/// Fields that `Connection` says are for this hop.
fn nominated(request: &httparse::Request<'_, '_>) -> Vec<String> {
    let lists = request.headers.iter().filter(|f| f.name.eq_ignore_ascii_case("connection"));
    lists
        .filter_map(|field| std::str::from_utf8(field.value).ok())
        .flat_map(|list| list.split(',').map(|name| name.trim().to_ascii_lowercase()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward(head: &str) -> Option<(String, String)> {
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let mut request = httparse::Request::new(&mut fields);
        assert!(request.parse(head.as_bytes()).unwrap().is_complete());
        let (target, head) = forwarded(&request)?;
        let target = format!("{} {}", target.host, target.port);
        Some((target, String::from_utf8(head).unwrap()))
    }

    #[test]
    fn the_server_gets_the_path_and_no_field_of_this_hop() {
        let asked = "GET http://example.org:8080/a?b=1#c HTTP/1.1\r\nHost: example.org:8080\r\n\
                     Proxy-Authorization: Basic bWU6c2VjcmV0\r\nConnection: keep-alive, X-Hop\r\n\
                     X-Hop: 1\r\nAccept: */*\r\n\r\n";
        let (target, head) = forward(asked).unwrap();
        assert_eq!(target, "example.org 8080");
        assert_eq!(
            head,
            "GET /a?b=1 HTTP/1.1\r\nHost: example.org:8080\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn addresses() {
        let target = |address: &str| {
            forward(&format!("GET {address} HTTP/1.0\r\n\r\n")).map(|(target, head)| {
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                (target, path)
            })
        };
        let is = |target: &str, path: &str| Some((target.to_owned(), path.to_owned()));
        assert_eq!(target("http://a"), is("a 80", "/"));
        assert_eq!(target("HTTP://a?q"), is("a 80", "/?q"));
        assert_eq!(target("http://[2001:db8::1]:81/x"), is("2001:db8::1 81", "/x"));
        assert_eq!(target("http://[2001:db8::1]"), is("2001:db8::1 80", "/"));
        for bad in
            ["/", "*", "https://a/", "ftp://a/", "http://", "http:///x", "http://u@a/", "http"]
        {
            assert_eq!(target(bad), None, "{bad}");
        }
    }
}
