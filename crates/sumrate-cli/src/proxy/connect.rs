//! Asks the exit for a connection over a new stream.

use std::time::Duration;

use fbdt::Class;

use crate::crowd::{Owner, Place};
use crate::refusals::Refusals;
use crate::service::{
    Answer, ConnectRequest, FailureCode, Request, ServiceError, read_answer, write_request,
};
use crate::tunnel::{Tunnel, Use};

/// Longest time for the exit's answer: its own limits and a slow path.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(25);

/// Why a connection was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectFailure {
    /// Why, for programs.
    pub code: FailureCode,
    /// Why, for people.
    pub message: String,
}

impl ConnectFailure {
    fn general(message: String) -> Self {
        Self { code: FailureCode::General, message }
    }

    /// Notes a destination that the server refuses. Of a name it does not tell whether it refuses its
    /// addresses or knows none.
    fn note(&self, refusals: &Refusals, host: &str, port: u16) {
        let reason = match self.code {
            FailureCode::NotAllowed => "not-allowed",
            FailureCode::NameFailure => "name",
            _ => return,
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let destination = format!("{host}:{port}");
        let words = match self.message.contains(&destination) {
            true => self.message.clone(),
            false => format!("no connection to {destination}: {}", self.message),
        };
        refusals.note(&destination, reason, &words);
    }
}

/// A stream whose other end is connected to `host`:`port`; each end guesses its class.
///
/// # Errors
/// [`ConnectFailure`]
pub async fn connect_through<T: Tunnel>(
    tunnel: &T,
    host: &str,
    port: u16,
) -> Result<T::Stream, ConnectFailure> {
    connect_as(tunnel, host, port, None).await
}

/// The same with a class that is known.
///
/// # Errors
/// [`ConnectFailure`]
pub async fn connect_as<T: Tunnel>(
    tunnel: &T,
    host: &str,
    port: u16,
    class: Option<Class>,
) -> Result<T::Stream, ConnectFailure> {
    let place = tunnel.pending().map(|pending| pending.enter(Owner::only(host.to_lowercase())));
    let failed = |code, message| Err(ConnectFailure { code, message });
    let timeout = tokio::time::sleep(ANSWER_TIMEOUT);
    tokio::pin!(timeout);
    let connected = loop {
        tokio::select! {
            answered = exchange(tunnel, host, port, class) => break answered,
            // What the one before was asked is asked again.
            () = tunnel.replaced() => {}
            why = tunnel.unreachable() => break failed(FailureCode::NetworkUnreachable, why),
            () = &mut timeout => {
                let waited = ANSWER_TIMEOUT.as_secs();
                let message = format!(
                    "the Sumrate server is reachable, but gave no answer about {host}:{port} within \
                     {waited} s"
                );
                break failed(FailureCode::TimedOut, message);
            }
            waited = given_up(place.as_ref()) => {
                let waited = waited.as_secs_f64();
                let message = format!(
                    "{host}:{port} did not answer within {waited:.1} s, and too many other connections are being made"
                );
                break failed(FailureCode::TimedOut, message);
            }
        }
    };
    if let (Err(failure), Some(refusals)) = (&connected, tunnel.refusals()) {
        failure.note(refusals, host, port);
    }
    connected
}

/// Waits until the place is needed for another connection, and says after how long that was.
async fn given_up(place: Option<&Place>) -> Duration {
    match place {
        Some(place) => {
            place.evicted().await;
            place.age()
        }
        None => std::future::pending().await,
    }
}

/// One request and its answer.
async fn exchange<T: Tunnel>(
    tunnel: &T,
    host: &str,
    port: u16,
    class: Option<Class>,
) -> Result<T::Stream, ConnectFailure> {
    let purpose = class.map_or(Use::Interactive, Use::Known);
    let mut stream = tunnel.open(purpose).await.map_err(|error| ConnectFailure {
        code: FailureCode::NetworkUnreachable,
        message: error.to_string(),
    })?;
    let request = Request::Connect(ConnectRequest {
        host: host.to_owned(),
        port,
        class: class.map(|class| class.name().to_owned()),
    });
    let general = |error: ServiceError| ConnectFailure::general(error.to_string());
    write_request(&mut stream, &request).await.map_err(general)?;
    match read_answer(&mut stream).await.map_err(general)? {
        Answer::Ready(_) => Ok(stream),
        Answer::Refused { code, message } => Err(ConnectFailure { code, message }),
    }
}
