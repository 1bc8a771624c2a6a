//! A request for an `http://` address, which comes to a proxy in absolute form (RFC 9112 §3.2.2), and
//! its response: the fields of one hop are removed (RFC 9110 §7.6.1), the body keeps its length.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::Authority;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio_util::task::AbortOnDropHandle;

use super::http::{HEAD_MAX, HttpError};
use super::socks5::Target;
use crate::classes::WatchedStream;
use crate::tunnel::TunnelStream;

/// Fields about one hop, besides those that `Connection` names. `Transfer-Encoding` is set anew.
const HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHORIZATION,
    PROXY_AUTHENTICATE,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];
const HTTP_PORT: u16 = 80;
/// Longest time for a request and the head of its response. A client that has sent its next request
/// already is not seen to leave meanwhile.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);

/// `HOST:PORT`; `HOST` alone if a port is given for it. A user name is refused.
pub(super) fn target_of(authority: &Authority, port: Option<u16>) -> Option<Target> {
    let host = authority.host();
    let port = match authority.as_str().strip_prefix(host)? {
        "" | ":" => port?,
        rest => rest.strip_prefix(':')?.parse().ok()?,
    };
    let host = match host.strip_prefix('[') {
        Some(rest) => {
            rest.strip_suffix(']')?.parse::<std::net::Ipv6Addr>().ok().map(|v6| v6.to_string())?
        }
        None if host.is_empty() => return None,
        None => host.to_owned(),
    };
    Some(Target { host, port })
}

/// Target of an absolute-form request; `None` where the address is no `http://HOST[:PORT]/...`.
pub(super) fn target_of_address(address: &Uri) -> Option<Target> {
    let scheme = address.scheme_str()?;
    if !["http", "ws"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    target_of(address.authority()?, Some(HTTP_PORT))
}

/// The protocol that a client wants to change to. HTTP/2 is declined, which the client takes as an
/// answer by HTTP/1 (RFC 9110 §7.8): its further requests could be for other hosts.
pub(super) fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let wanted = headers.get(UPGRADE)?;
    let protocols = wanted.to_str().ok()?;
    let declined = protocols.split(',').any(|name| name.trim().eq_ignore_ascii_case("h2c"));
    (!declined && nominated(headers).contains(&UPGRADE)).then(|| wanted.clone())
}

/// Fields that `Connection` says are for this hop.
fn nominated(headers: &HeaderMap) -> Vec<HeaderName> {
    let lists = headers.get_all(CONNECTION).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).filter_map(|name| name.trim().parse().ok()).collect()
}

/// Removes the fields of one hop. Fails on a transfer coding besides `chunked`: the body has been
/// read without it, and its other coding would be lost.
fn remove_hop(headers: &mut HeaderMap) -> Result<(), HttpError> {
    let codings = headers.get_all(TRANSFER_ENCODING).iter();
    let mut codings = codings.flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
    if let Some(odd) = codings.find(|coding| !coding.trim_ascii().eq_ignore_ascii_case(b"chunked"))
    {
        return Err(HttpError::Coding(String::from_utf8_lossy(odd).into_owned()));
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        // Of two lengths the chunks count (RFC 9112 §6.3).
        headers.remove(CONTENT_LENGTH);
    }
    for name in nominated(headers).iter().chain(&HOP) {
        // Without its length a body would end with the connection.
        if *name != CONTENT_LENGTH {
            headers.remove(name);
        }
    }
    Ok(())
}

/// The request as the server at its target gets it, on a connection that carries no other one.
pub(super) fn request_to_server(
    request: Request<Incoming>,
    upgrade: Option<HeaderValue>,
) -> Result<Request<Incoming>, HttpError> {
    let (mut parts, body) = request.into_parts();
    let uri = std::mem::take(&mut parts.uri).into_parts();
    let host = uri.authority.as_ref().map(|host| HeaderValue::from_str(host.as_str()));
    let (Some(Ok(host)), Some(path)) = (host, uri.path_and_query) else {
        return Err(HttpError::NotProxied);
    };
    // Written out, `?query` alone gets its slash.
    parts.uri = path.to_string().parse().map_err(|_| HttpError::NotProxied)?;
    parts.version = Version::HTTP_11;
    let headers = &mut parts.headers;
    remove_hop(headers)?;
    headers.insert(HOST, host);
    if body.size_hint().exact().is_none() {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    let connection = if upgrade.is_some() { "upgrade" } else { "close" };
    headers.insert(CONNECTION, HeaderValue::from_static(connection));
    upgrade.and_then(|upgrade| headers.insert(UPGRADE, upgrade));
    Ok(Request::from_parts(parts, body))
}

/// The connection to a server, moved on by a task that ends with it.
pub(super) type Driver = AbortOnDropHandle<()>;

/// Sends one request and reads the head of its response.
pub(super) async fn exchange<S: TunnelStream>(
    stream: WatchedStream<S>,
    request: Request<Incoming>,
) -> Result<(Response<Incoming>, Driver), HttpError> {
    let (mut sender, connection) = http1::Builder::new()
        .preserve_header_case(true)
        .max_buf_size(HEAD_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(HttpError::Server)?;
    let driver = AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to an HTTP server failed");
        }
    }));
    // The request's body comes from the client, and its errors with it.
    let whose = |error: hyper::Error| match error.is_user() {
        true => HttpError::Body(error),
        false => HttpError::Server(error),
    };
    let sent = tokio::time::timeout(RESPONSE_TIMEOUT, sender.send_request(request)).await;
    let response = sent.map_err(|_| HttpError::Silent)?.map_err(whose)?;
    Ok((response, driver))
}

/// The response as the client gets it. A server that answers as the proxy would is not believed: the
/// client would take its words for those of the proxy.
pub(super) fn response_to_client(
    response: Response<Incoming>,
    driver: Driver,
) -> Result<Response<Forwarded>, HttpError> {
    let status = response.status();
    if [StatusCode::PROXY_AUTHENTICATION_REQUIRED, StatusCode::SWITCHING_PROTOCOLS]
        .contains(&status)
    {
        return Err(HttpError::NoAnswer(status));
    }
    let (mut parts, body) = response.into_parts();
    parts.version = Version::HTTP_11;
    remove_hop(&mut parts.headers)?;
    Ok(Response::from_parts(parts, Forwarded { body, driver: Some(driver) }))
}

/// Whether the server changes to a protocol that the client named.
pub(super) fn agrees(response: &Response<Incoming>, wanted: &HeaderValue) -> bool {
    let named = |value: &HeaderValue| -> Vec<String> {
        let names = value.to_str().unwrap_or_default().split(',');
        names.map(|name| name.trim().to_ascii_lowercase()).collect()
    };
    let chosen = response.headers().get(UPGRADE).map(&named).unwrap_or_default();
    response.status() == StatusCode::SWITCHING_PROTOCOLS
        && !chosen.is_empty()
        && chosen.iter().all(|name| named(wanted).contains(name))
}

/// Headers of an answer that changes the protocol: as the server sent them.
pub(super) fn switching(response: &Response<Incoming>) -> HeaderMap {
    let mut headers = response.headers().clone();
    headers.remove(TRANSFER_ENCODING);
    headers.remove(CONTENT_LENGTH);
    headers
}

/// The body of a response, and the connection that it comes from.
pub(super) struct Forwarded {
    body: Incoming,
    driver: Option<Driver>,
}

impl hyper::body::Body for Forwarded {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        // A response that is whole lets its connection end in order; one that nobody wants any more
        // resets it.
        if self.body.is_end_stream() {
            self.driver.take().map(AbortOnDropHandle::detach);
        }
    }
}
