//! A small HTTP/1.1 server: a few connections at a time, a request at a time, answers from memory.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::Guard;

/// Connections at a time; more wait.
const CONNECTIONS_MAX: usize = 32;
/// How long a connection may take for a request's head, and may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one may last.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(600);
/// Largest head of a request, in bytes.
const HEAD_MAX: usize = 16 << 10;

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
            Ok(Self { listener, address, any_host: false })
        };
        listen().map_err(|error| HttpError::Listen { flag, address, error })
    }

    /// Answers whatever the Host header names, if `any` is set: only for what everybody may read.
    pub fn answering_any_host(mut self, any: bool) -> Self {
        self.any_host = any;
        self
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the future is dropped; requests that [`Guard`] refuses never reach `answer`.
    pub async fn serve<F>(&self, answer: F)
    where
        F: Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static,
    {
        let answer = Arc::new(answer);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            while connections.try_join_next().is_some() {}
            let (answer, any_host) = (Arc::clone(&answer), self.any_host);
            // In a set, so that they end with this future.
            connections.spawn(async move {
                let conversation = converse(stream, any_host, &*answer);
                let _ = tokio::time::timeout(CONNECTION_TIMEOUT, conversation).await;
                drop(place);
            });
        }
    }
}

async fn converse<F>(stream: TcpStream, any_host: bool, answer: &F)
where
    F: Fn(&Request<Incoming>) -> Answer,
{
    let Ok(local) = stream.local_addr() else { return };
    let guard = Guard { local, any_host };
    let respond = |request: Request<Incoming>| {
        let answer = match guard.check(request.method(), request.headers()) {
            Ok(()) => answer(&request),
            Err(refusal) => text(refusal.status(), refusal.advice()),
        };
        async move { Ok::<_, std::convert::Infallible>(answer) }
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

/// An answer of plain text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
