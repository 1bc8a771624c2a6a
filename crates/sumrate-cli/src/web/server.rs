//! A small HTTP/1.1 server: a few connections at a time, a request at a time, answers from memory.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use super::Guard;
use super::connections::OpenConnections;

/// How long a connection may take for a request's head, and may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one may last.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(600);
/// Largest head of a request, in bytes.
const HEAD_MAX: usize = 16 << 10;
/// Largest body of a request, in bytes, and how long it may take.
const BODY_MAX: usize = 4 << 10;
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer.
pub type Answer = Response<Full<Bytes>>;

/// The server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Others could use it.
    #[error(
        "{flag} {address} could be read from other machines: name 127.0.0.1, or pass {flag}-open"
    )]
    Open {
        /// The flag.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
    },
    /// The system refused.
    #[error("{flag} cannot listen on {address}: {error}; choose another address or port")]
    Listen {
        /// The flag.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

impl HttpError {
    /// Whether a privilege would cure it.
    pub fn is_privilege(&self) -> bool {
        matches!(self, Self::Listen { error, .. } if error.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// A listening server.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    any_host: bool,
    changes_at: Option<&'static str>,
}

impl HttpServer {
    /// Listens. An address that other machines reach must be allowed by `open`.
    ///
    /// # Errors
    /// [`HttpError`]
    pub fn bind(flag: &'static str, address: SocketAddr, open: bool) -> Result<Self, HttpError> {
        if !address.ip().is_loopback() && !open {
            return Err(HttpError::Open { flag, address });
        }
        let listen = || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let listener = TcpListener::from_std(listener)?;
            Ok(Self { listener, address, any_host: false, changes_at: None })
        };
        listen().map_err(|error| HttpError::Listen { flag, address, error })
    }

    /// Answers whatever the Host header names, if `any` is set: only for what everybody may read.
    pub fn answering_any_host(mut self, any: bool) -> Self {
        self.any_host = any;
        self
    }

    /// Takes changes with POST at this path.
    pub fn taking_changes_at(mut self, path: Option<&'static str>) -> Self {
        self.changes_at = path;
        self
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the future is dropped; requests that [`Guard`] refuses never reach `answer`.
    pub async fn serve<F>(&self, answer: F)
    where
        F: Fn(&Request<Bytes>) -> Answer + Send + Sync + 'static,
    {
        let answer = Arc::new(answer);
        let mut open = OpenConnections::default();
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let Ok((stream, client)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            while connections.try_join_next().is_some() {}
            open.make_room(client.ip());
            let answer = Arc::clone(&answer);
            let (any_host, changes_at) = (self.any_host, self.changes_at);
            // In a set, so that they end with this future.
            let connection = connections.spawn(async move {
                let Ok(local) = stream.local_addr() else { return };
                let guard = Guard { local, any_host, changes_at };
                let conversation = converse(stream, guard, &*answer);
                let _ = tokio::time::timeout(CONNECTION_TIMEOUT, conversation).await;
            });
            open.enter(client.ip(), connection);
        }
    }
}

async fn converse<F>(stream: TcpStream, guard: Guard, answer: &F)
where
    F: Fn(&Request<Bytes>) -> Answer,
{
    let respond = |request: Request<Incoming>| async move {
        let (head, body) = request.into_parts();
        let answer = match guard.check(&head.method, head.uri.path(), &head.headers) {
            Err(refusal) => text(refusal.status(), refusal.advice()),
            Ok(()) if head.method != Method::POST => {
                answer(&Request::from_parts(head, Bytes::new()))
            }
            Ok(()) => match read(body).await {
                Some(body) => answer(&Request::from_parts(head, body)),
                None => text(StatusCode::PAYLOAD_TOO_LARGE, "the change is too long or cut off\n"),
            },
        };
        Ok::<_, std::convert::Infallible>(answer)
    };
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service_fn(respond))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the HTTP server failed");
    }
}

/// The whole body of a request, if it is short and comes soon.
async fn read(body: Incoming) -> Option<Bytes> {
    let whole = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, BODY_MAX).collect());
    Some(whole.await.ok()?.ok()?.to_bytes())
}

/// An answer of plain text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
