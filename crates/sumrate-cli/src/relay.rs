//! Copies bytes both ways between a stream of a session and a TCP connection. An end of data in one
//! direction is passed on and the other direction goes on; a failure is passed on as a reset.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::classes::{Guess, Watch};
use crate::exit::Allowance;
use crate::socket;
use crate::tunnel::{ABORT_RELAY_FAILED, TunnelStream};

/// First size of a copy buffer: thousands of idle connections must fit into memory.
const BUFFER_MIN: usize = 16 << 10;
/// Size that a busy connection's buffer grows to. Thousands of busy ones whose reader stops must fit
/// into memory, too (`sumrate-lab faults --fault stream-flood` says what two thousand take).
const BUFFER_MAX: usize = 64 << 10;

/// What a failed connection has left behind is given up when none of it has arrived for this long.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(10);
/// How often that is looked at.
const DELIVERY_LOOK: Duration = Duration::from_millis(20);

/// Bytes copied in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relayed {
    /// From the stream to the connection.
    pub to_connection: u64,
    /// From the connection to the stream.
    pub to_stream: u64,
}

/// Relays until both directions have ended. `early` goes to the stream first: what a proxy had read
/// of the connection beyond its own protocol. With a `guess`, the class of what goes into the stream
/// follows its behaviour. Bytes pass as far and as fast as `allowance` lets them.
///
/// # Errors
/// The first failure of either side; both sides were then reset.
pub async fn relay<S: TunnelStream>(
    stream: S,
    mut connection: TcpStream,
    early: &[u8],
    allowance: &Allowance,
    guess: Option<Guess>,
) -> io::Result<Relayed> {
    // Whatever ends this process or this future before the ends of data have passed is a failure.
    socket::reset_on_close(&connection);
    socket::hold_little(&connection);
    let mut watch = guess.zip(stream.class_setter()).map(|(guess, class)| Watch::new(guess, class));
    let (mut stream_in, mut stream_out) = tokio::io::split(stream);
    let (mut connection_in, mut connection_out) = connection.split();
    let outward = async {
        if !early.is_empty() {
            stream_out.write_all(early).await.map_err(Failure::at(End::Stream))?;
        }
        let (from, to) = ((&mut connection_in, End::Connection), (&mut stream_out, End::Stream));
        copy(from, to, allowance, watch.as_mut()).await
    };
    let (from, to) = ((&mut stream_in, End::Stream), (&mut connection_out, End::Connection));
    let inward = copy(from, to, allowance, None);
    match tokio::try_join!(inward, outward) {
        Ok((to_connection, to_stream)) => {
            socket::deliver_on_close(&connection);
            Ok(Relayed { to_connection, to_stream })
        }
        Err(Failure { error, end }) => {
            let mut stream = stream_in.unsplit(stream_out);
            if end == Some(End::Connection) {
                deliver(&mut stream).await;
            }
            stream.abort(ABORT_RELAY_FAILED);
            Err(error)
        }
    }
}

/// Who failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stream,
    Connection,
}

/// What ended a relay, and at which end; at none where the quota is spent.
struct Failure {
    error: io::Error,
    end: Option<End>,
}

impl Failure {
    const fn at(end: End) -> impl Fn(io::Error) -> Self {
        move |error| Self { error, end: Some(end) }
    }
}

/// Lets what a connection had given before it failed reach the other end, as the kernel does where it
/// has acknowledged it; a path that moves nothing for long ends that.
async fn deliver(stream: &mut impl TunnelStream) {
    let (mut owed, mut since) = (stream.owed(), Instant::now());
    while owed > 0 && since.elapsed() < DELIVERY_PATIENCE {
        tokio::time::sleep(DELIVERY_LOOK).await;
        let left = stream.owed();
        if left < owed {
            (owed, since) = (left, Instant::now());
        }
    }
}

/// Copies to the end of data and passes the end on.
async fn copy<R, W>(
    (reader, from): (&mut R, End),
    (writer, to): (&mut W, End),
    allowance: &Allowance,
    mut watch: Option<&mut Watch>,
) -> Result<u64, Failure>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER_MIN];
    let mut total = 0;
    loop {
        let asked = Instant::now();
        let count = reader.read(&mut buffer).await.map_err(Failure::at(from))?;
        if count == 0 {
            writer.shutdown().await.map_err(Failure::at(to))?;
            return Ok(total);
        }
        if let Some(watch) = &mut watch {
            watch.read(asked.elapsed(), count);
        }
        allowance.take(count).await.map_err(|error| Failure { error, end: None })?;
        writer.write_all(&buffer[..count]).await.map_err(Failure::at(to))?;
        writer.flush().await.map_err(Failure::at(to))?;
        if let Some(watch) = &mut watch {
            watch.wrote();
        }
        total += count as u64;
        if count == buffer.len() && count < BUFFER_MAX {
            buffer.resize((count * 4).min(BUFFER_MAX), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn connection_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (dialled, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        (dialled.unwrap(), accepted.unwrap().0)
    }

    #[tokio::test]
    async fn both_directions_and_half_close() {
        let (mut application, inner) = connection_pair().await;
        let (stream, mut far) = tokio::io::duplex(1 << 20);
        let task = tokio::spawn(async move {
            relay(stream, inner, b"early ", &Allowance::default(), None).await
        });
        application.write_all(b"request").await.unwrap();
        application.shutdown().await.unwrap();
        let mut request = Vec::new();
        far.read_to_end(&mut request).await.unwrap();
        assert_eq!(request, b"early request");
        let body = vec![7; 3 << 20];
        let writer = tokio::spawn(async move {
            far.write_all(&body).await.unwrap();
            far.shutdown().await.unwrap();
        });
        let mut answer = Vec::new();
        application.read_to_end(&mut answer).await.unwrap();
        writer.await.unwrap();
        assert_eq!(answer.len(), 3 << 20);
        let relayed = task.await.unwrap().unwrap();
        assert_eq!(relayed, Relayed { to_connection: 3 << 20, to_stream: 7 });
    }

    #[tokio::test]
    async fn a_failure_reaches_the_application_as_a_reset() {
        let (mut application, inner) = connection_pair().await;
        let (stream, far) = tokio::io::duplex(1024);
        let task =
            tokio::spawn(
                async move { relay(stream, inner, b"", &Allowance::default(), None).await },
            );
        drop(far);
        // Writing into the closed pipe fails, which must not look like a clean end.
        let mut buffer = [0; 1];
        let _ = application.write_all(b"x").await;
        let end = application.read(&mut buffer).await;
        let outcome = task.await.unwrap();
        assert!(outcome.is_err());
        assert!(matches!(end, Ok(0) | Err(_)));
    }
}
