//! The HTTP/1.1 proxy: the CONNECT method (RFC 9110 §9.3.6), and requests for `http://` addresses.
//! Each request goes to the target that it names, whatever the client's connection carried before.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::connect::{ConnectFailure, connect_as};
use super::forward::{self, Driver, Forwarded};
use super::passwords::{PasswordCheck, Verdict};
use super::socks5::Target;
use crate::classes::{ClassRules, Guess, WatchedStream};
use crate::service::FailureCode;
use crate::tunnel::Tunnel;

/// Longest head of a request or response, in bytes: browsers send cookies of tens of kilobytes.
pub(super) const HEAD_MAX: usize = 64 << 10;
/// Longest time for a client to send a request's head, and between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("this is a proxy: it carries CONNECT, and requests for http://HOST[:PORT]/...")]
    NotProxied,
    #[error("the target of CONNECT must be HOST:PORT")]
    Target,
    #[error("the proxy wants a user name and password")]
    NoPassword,
    #[error("wrong user name or password")]
    WrongPassword,
    #[error("the transfer coding {0:?} is not passed on: only chunked is")]
    Coding(String),
    #[error("{0}")]
    NotConnected(#[from] ConnectFailure),
    #[error("the server did not answer by HTTP/1.1: {0}")]
    Server(hyper::Error),
    #[error("the server sent nothing within 10 minutes")]
    Silent,
    #[error("the request's body is malformed or was cut off: {0}")]
    Body(hyper::Error),
    #[error("the server answered {0}, and the request did not ask for it")]
    NoAnswer(StatusCode),
    #[error("too many wrong passwords from this address: wait for some minutes")]
    TooManyPasswords,
}

impl HttpError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotProxied | Self::Coding(_) => StatusCode::NOT_IMPLEMENTED,
            Self::Target | Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::Silent => StatusCode::GATEWAY_TIMEOUT,
            Self::TooManyPasswords => StatusCode::TOO_MANY_REQUESTS,
            Self::NoPassword | Self::WrongPassword => StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            Self::NotConnected(failure) => match failure.code {
                FailureCode::NotAllowed => StatusCode::FORBIDDEN,
                FailureCode::TimedOut => StatusCode::GATEWAY_TIMEOUT,
                FailureCode::Busy => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::BAD_GATEWAY,
            },
            Self::Server(_) | Self::NoAnswer(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// Tells the client why, in words.
    fn answer(&self) -> Response<Body> {
        let mut response = Response::new(Either::Left(Full::from(format!("{self}\n"))));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if matches!(self, Self::NoPassword | Self::WrongPassword) {
            let realm = HeaderValue::from_static("Basic realm=\"sumrate\"");
            headers.insert(PROXY_AUTHENTICATE, realm);
        }
        if !matches!(self, Self::NoPassword) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

type Body = Either<Full<Bytes>, Forwarded>;

/// A client's connection after its last request: it carries bytes between client and target.
pub(super) struct Switched<S> {
    pub(super) target: Target,
    pub(super) client: OnUpgrade,
    pub(super) server: Server<S>,
}

/// The other side of [`Switched`].
pub(super) enum Server<S> {
    /// The stream that CONNECT asked for.
    Connected(S),
    /// The connection on which both agreed on another protocol.
    Upgraded(OnUpgrade, Driver),
}

/// Answers the requests of one client.
pub(super) struct HttpProxy<'a, T: Tunnel> {
    password: Option<&'a dyn PasswordCheck>,
    tunnel: &'a T,
    rules: &'a ClassRules,
    switched: Mutex<Option<Switched<T::Stream>>>,
}

impl<'a, T: Tunnel> HttpProxy<'a, T> {
    pub(super) fn new(
        password: Option<&'a dyn PasswordCheck>,
        tunnel: &'a T,
        rules: &'a ClassRules,
    ) -> Self {
        Self { password, tunnel, rules, switched: Mutex::default() }
    }

    /// Serves until the connection ends or is switched. After `stop` the request that is under way is
    /// the last.
    ///
    /// # Errors
    /// The client sent no HTTP/1, or a response was cut off ([`hyper::Error::is_user`]).
    pub(super) async fn converse<I>(&self, io: I, stop: &CancellationToken) -> hyper::Result<()>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_MAX)
            .preserve_header_case(true)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(io), service_fn(|request| self.answer(request)))
            .with_upgrades();
        let mut connection = pin!(connection);
        tokio::select! {
            served = &mut connection => return served,
            () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    }

    /// The tunnel that the last request made of the connection.
    pub(super) fn switched(&self) -> Option<Switched<T::Stream>> {
        self.switched.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn switch(&self, target: Target, client: OnUpgrade, server: Server<T::Stream>) {
        let switched = Switched { target, client, server };
        *self.switched.lock().unwrap_or_else(PoisonError::into_inner) = Some(switched);
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let carried = match self.check_password(request.headers()) {
            Err(error) => Err(error),
            Ok(()) if request.method() == Method::CONNECT => self.connect(request).await,
            Ok(()) => self.forward(request).await,
        };
        Ok(carried.unwrap_or_else(|error| {
            tracing::debug!(%error, "a request was not carried out");
            error.answer()
        }))
    }

    fn check_password(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        let Some(password) = &self.password else { return Ok(()) };
        let value = headers.get(PROXY_AUTHORIZATION).ok_or(HttpError::NoPassword)?;
        let (user, secret) = credentials(value).ok_or(HttpError::WrongPassword)?;
        match password.check(&user, &secret) {
            Verdict::Right => Ok(()),
            Verdict::Wrong => Err(HttpError::WrongPassword),
            Verdict::Unchecked => Err(HttpError::TooManyPasswords),
        }
    }

    async fn connect(&self, mut request: Request<Incoming>) -> Result<Response<Body>, HttpError> {
        let target = request.uri().authority().and_then(|host| forward::target_of(host, None));
        let target = target.ok_or(HttpError::Target)?;
        let stream = self.stream_to(&target).await?;
        let client = hyper::upgrade::on(&mut request);
        self.switch(target, client, Server::Connected(stream));
        Ok(Response::new(Either::Left(Full::default())))
    }

    async fn forward(&self, mut request: Request<Incoming>) -> Result<Response<Body>, HttpError> {
        let target = forward::target_of_address(request.uri()).ok_or(HttpError::NotProxied)?;
        let upgrade = forward::upgrade_of(request.headers());
        let client = upgrade.clone().map(|wanted| (hyper::upgrade::on(&mut request), wanted));
        let request = forward::request_to_server(request, upgrade)?;
        let stream = self.stream_to(&target).await?;
        let guess = self.guess(&target);
        let (mut response, driver) =
            forward::exchange(WatchedStream::new(stream, guess), request).await?;
        let Some((client, _)) = client.filter(|(_, wanted)| forward::agrees(&response, wanted))
        else {
            return forward::response_to_client(response, driver)
                .map(|whole| whole.map(Either::Right));
        };
        let server = hyper::upgrade::on(&mut response);
        self.switch(target, client, Server::Upgraded(server, driver));
        let mut answer = Response::new(Either::Left(Full::default()));
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *answer.headers_mut() = forward::switching(&response);
        Ok(answer)
    }

    async fn stream_to(&self, target: &Target) -> Result<T::Stream, ConnectFailure> {
        let Target { host, port } = target;
        let class = self.rules.class_of(host, *port);
        connect_as(self.tunnel, host, *port, class)
            .await
            .inspect_err(|failure| tracing::info!("no connection to {host}:{port}: {failure}"))
    }

    /// A guess of the class, unless a rule gives it.
    pub(super) fn guess(&self, target: &Target) -> Option<Guess> {
        self.rules.class_of(&target.host, target.port).is_none().then(Guess::default)
    }
}

/// User name and password of a `Proxy-Authorization` field (RFC 7617).
fn credentials(value: &HeaderValue) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
    let mut user = STANDARD.decode(encoded.trim()).ok()?;
    let colon = user.iter().position(|byte| *byte == b':')?;
    let password = user.split_off(colon).split_off(1);
    scheme.eq_ignore_ascii_case("basic").then_some((user, password))
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
