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

/// Waits for the exit's answer: no longer than that may take, and not once no path reaches the server. What
/// a server was asked that another one replaces is asked again.
pub(super) async fn answered<T: Tunnel, S, F>(
    tunnel: &T,
    place: Option<&Place>,
    what: &str,
    ask: impl Fn() -> F,
) -> Result<S, ConnectFailure>
where
    F: Future<Output = Result<S, ConnectFailure>>,
{
    let failed = |code, message| Err(ConnectFailure { code, message });
    let timeout = tokio::time::sleep(ANSWER_TIMEOUT);
    tokio::pin!(timeout);
    loop {
        tokio::select! {
            answered = ask() => return answered,
            () = tunnel.replaced() => {}
            why = tunnel.unreachable() => return failed(FailureCode::NetworkUnreachable, why),
            () = &mut timeout => {
                let waited = ANSWER_TIMEOUT.as_secs();
                let message = format!(
                    "the Sumrate server is reachable, but gave no answer about {what} within {waited} s"
                );
                return failed(FailureCode::TimedOut, message);
            }
            waited = given_up(place) => {
                let waited = waited.as_secs_f64();
                let message = format!(
                    "{what} did not answer within {waited:.1} s, and too many other connections are being made"
                );
                return failed(FailureCode::TimedOut, message);
            }
        }
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
    let asked = format!("{host}:{port}");
    let ask = || exchange(tunnel, host, port, class);
    let connected = answered(tunnel, place.as_ref(), &asked, ask).await;
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

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;
    use tokio::time::Instant;

    use super::*;
    use crate::proxy::association::Association;
    use crate::status::SessionReport;
    use crate::tunnel::TunnelError;

    /// A tunnel that opens no stream, and is unreachable after so long.
    #[derive(Clone)]
    struct Silent(Duration);

    impl Tunnel for Silent {
        type Stream = DuplexStream;

        async fn open(&self, _purpose: Use) -> Result<DuplexStream, TunnelError> {
            std::future::pending().await
        }

        async fn unreachable(&self) -> String {
            tokio::time::sleep(self.0).await;
            "no path".to_owned()
        }

        fn report(&self) -> Option<SessionReport> {
            None
        }
    }

    /// What both kinds of programs are told, and when.
    async fn asked(tunnel: &Silent) -> [(FailureCode, Duration); 2] {
        let began = Instant::now();
        let connected = connect_through(tunnel, "192.0.2.1", 80).await.unwrap_err();
        let middle = Instant::now();
        let associated = Association::open(tunnel).await.err().unwrap();
        [(connected.code, middle - began), (associated.code, middle.elapsed())]
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_server_that_no_path_reaches() {
        let soon = Duration::from_secs(2);
        assert_eq!(asked(&Silent(soon)).await, [(FailureCode::NetworkUnreachable, soon); 2]);
        let never = Silent(ANSWER_TIMEOUT * 2);
        assert_eq!(asked(&never).await, [(FailureCode::TimedOut, ANSWER_TIMEOUT); 2]);
    }
}
