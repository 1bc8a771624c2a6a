//! Connects a sender or receiver, which blocks on files, to a stream, which must not.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::asked::Asked;
use super::destination::Destination;
use super::message::{Message, MessageError, read_message};
use super::receive::receive;
use super::send::send;
use super::tally::{Progress, Tally};
use super::walk::Source;
use crate::exit::Allowance;
use crate::tunnel::{ABORT_RELAY_FAILED, TunnelStream};

/// Bytes that a receiver may have read and not yet written to its disk.
const RECEIVE_AHEAD: usize = 8 << 20;
/// Bytes of answers that a sender may have read and not yet looked at: beyond it the other end says
/// more than it was asked.
const ANSWERS_MAX: usize = 64 << 20;
/// Messages that wait for the stream.
const OUTGOING: usize = 4;
/// How long a receiver waits for the sender's last word.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(2);
/// What a small message counts as.
const SMALL: usize = 128;

/// Why a copy ended before its end. What is there stays and is gone on from.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The stream failed.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The stream ended in the middle.
    #[error("the other end went away in the middle of the copy")]
    Gone,
    /// The other end does not keep to the protocol.
    #[error("the other end does not keep to the protocol: {0}")]
    Protocol(&'static str),
    /// The sender offers a name that was not asked for.
    #[error(
        "the other end offers {0}, which was not asked for; the copy ends without it, and keeps the \
         entries that were complete before. A server that does this is broken or hostile"
    )]
    NotAsked(String),
    /// The sender offers the same name again, or names out of order.
    #[error(
        "the other end offers {0} twice, or out of order; the copy ends here, and keeps the entries \
         that were complete before. A server that does this is broken or hostile"
    )]
    Twice(String),
    /// The sender ends without having offered or skipped a name.
    #[error("the other end says nothing of {0}, which was asked for; it is not copied")]
    Missing(String),
    /// The destination cannot be used.
    #[error("{0}")]
    Destination(String),
}

impl TransferError {
    /// Whether the connection failed, and another may do.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Gone => true,
            Self::Message(MessageError::Io(error)) => error.kind() != io::ErrorKind::QuotaExceeded,
            _ => false,
        }
    }

    /// True if the other end broke the protocol: its partial files are removed.
    pub fn is_violation(&self) -> bool {
        match self {
            Self::Protocol(_) | Self::NotAsked(_) | Self::Twice(_) | Self::Missing(_) => true,
            Self::Message(error) => !matches!(error, MessageError::Io(_)),
            Self::Gone | Self::Destination(_) => false,
        }
    }
}

/// How fast and how much may pass: each is asked for every message.
#[derive(Debug, Clone, Default)]
pub struct Limits(pub Vec<Arc<Allowance>>);

impl Limits {
    async fn take(&self, bytes: usize) -> io::Result<()> {
        for limit in &self.0 {
            limit.take(bytes).await?;
        }
        Ok(())
    }
}

/// What was read and waits to be looked at; dropping the permit makes room for more.
type Arrived = (Result<Message, MessageError>, Option<OwnedSemaphorePermit>);

/// The blocking side's end of a stream.
pub(super) struct Link {
    out: mpsc::Sender<Message>,
    arrived: mpsc::UnboundedReceiver<Arrived>,
}

impl Link {
    /// A link that delivers these messages, and the receiver of the answers.
    #[cfg(feature = "fuzzing")]
    pub(super) fn of(messages: Vec<Message>) -> (Self, mpsc::Receiver<Message>) {
        // Each is answered with two messages at most.
        let (out, answers) = mpsc::channel(2 * messages.len() + 1);
        let (incoming, arrived) = mpsc::unbounded_channel();
        for message in messages {
            let _ = incoming.send((Ok(message), None));
        }
        (Self { out, arrived }, answers)
    }

    /// Says something; waits while the stream is behind.
    pub(super) fn say(&self, message: Message) -> Result<(), TransferError> {
        self.out.blocking_send(message).map_err(|_| TransferError::Gone)
    }

    /// Waits for the next message.
    pub(super) fn hear(&mut self) -> Result<Message, TransferError> {
        let (message, _room) = self.arrived.blocking_recv().ok_or(TransferError::Gone)?;
        Ok(message?)
    }

    /// The next message, if it is there.
    pub(super) fn hear_now(&mut self) -> Result<Option<Message>, TransferError> {
        match self.arrived.try_recv() {
            Ok((message, _room)) => Ok(Some(message?)),
            Err(mpsc::error::TryRecvError::Empty) => Ok(None),
            Err(mpsc::error::TryRecvError::Disconnected) => Err(TransferError::Gone),
        }
    }

    /// Fails when nobody hears any more, which long work should notice.
    pub(super) fn check(&self) -> Result<(), TransferError> {
        if self.out.is_closed() { Err(TransferError::Gone) } else { Ok(()) }
    }
}

/// Sends sources over a stream that the other end receives from.
///
/// # Errors
/// [`TransferError`]; single entries that cannot be sent are in the tally.
pub async fn send_over<S: TunnelStream>(
    stream: S,
    sources: Vec<Source>,
    limits: &Limits,
    progress: Arc<Progress>,
) -> Result<Tally, TransferError> {
    let work = move |mut link: Link| send(&mut link, &sources, &progress);
    run(stream, limits, false, CancellationToken::new(), work).await
}

/// Receives the requested names from a stream into a destination.
///
/// # Errors
/// [`TransferError`]; single entries that cannot be stored are in the tally.
pub async fn receive_over<S: TunnelStream>(
    stream: S,
    destination: Destination,
    asked: Asked,
    limits: &Limits,
    progress: Arc<Progress>,
) -> Result<Tally, TransferError> {
    let stop = destination.writer.stop.clone();
    let done = stop.clone().drop_guard();
    let work = move |mut link: Link| receive(&mut link, &destination, &asked, &progress);
    let outcome = run(stream, limits, true, stop, work).await;
    drop(done);
    outcome
}

async fn run<S: TunnelStream>(
    stream: S,
    limits: &Limits,
    receives: bool,
    stop: CancellationToken,
    work: impl FnOnce(Link) -> Result<Tally, TransferError> + Send + 'static,
) -> Result<Tally, TransferError> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let (out, outgoing) = mpsc::channel(OUTGOING);
    let (incoming, arrived) = mpsc::unbounded_channel();
    let work = tokio::task::spawn_blocking(move || work(Link { out, arrived }));
    let writing = write(&mut writer, outgoing, limits);
    let reading = read(&mut reader, incoming, limits, receives);
    let outcome = {
        let (mut writing, mut reading) = (std::pin::pin!(writing), std::pin::pin!(reading));
        let mut work = std::pin::pin!(work);
        let mut written = None;
        let mut read_on = true;
        loop {
            tokio::select! {
                finished = &mut work => {
                    let finished = finished.unwrap_or(Err(TransferError::Gone));
                    // What it said last must go out.
                    let sent = match written.take() {
                        Some(sent) => sent,
                        None => writing.await,
                    };
                    // A sender ends its side once it has heard that all is in place.
                    if receives && read_on && finished.is_ok() {
                        let _ = tokio::time::timeout(FAREWELL, reading).await;
                    }
                    break match (finished, sent) {
                        (Err(TransferError::Gone), Err(error)) => Err(error),
                        (finished, sent) => finished.and_then(|tally| sent.map(|()| tally)),
                    };
                }
                // Another copy of the same file has taken this one's place.
                () = stop.cancelled() => break Err(TransferError::Gone),
                sent = &mut writing, if written.is_none() => written = Some(sent),
                () = &mut reading, if read_on => read_on = false,
            }
        }
    };
    if outcome.is_err() {
        reader.unsplit(writer).abort(ABORT_RELAY_FAILED);
    }
    outcome
}

/// Writes what is said until the blocking side has nothing more to say.
async fn write<W: AsyncWrite + Unpin>(
    writer: &mut W,
    mut outgoing: mpsc::Receiver<Message>,
    limits: &Limits,
) -> Result<(), TransferError> {
    while let Some(message) = outgoing.recv().await {
        let bytes = message.encode();
        limits.take(bytes.len()).await.map_err(MessageError::from)?;
        writer.write_all(&bytes).await.map_err(MessageError::from)?;
    }
    writer.shutdown().await.map_err(MessageError::from)?;
    Ok(())
}

/// Reads until the stream ends or fails. A receiver is given no more than it can write; a sender's
/// answers are all taken, so that both ends never wait for each other, but not without a bound.
async fn read<R: AsyncRead + Unpin>(
    reader: &mut R,
    incoming: mpsc::UnboundedSender<Arrived>,
    limits: &Limits,
    receives: bool,
) {
    let room = Arc::new(Semaphore::new(if receives { RECEIVE_AHEAD } else { ANSWERS_MAX }));
    loop {
        let message = match read_message(reader).await {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(error) => {
                let _ = incoming.send((Err(error), None));
                return;
            }
        };
        let refuse = |what| {
            let error = MessageError::Malformed { kind: 0, what };
            let _ = incoming.send((Err(error), None));
        };
        if message.is_senders() != receives {
            return refuse("it is the other side's to say");
        }
        let size = match &message {
            Message::Data { bytes, .. } => bytes.len(),
            Message::Have { hashes, .. } => hashes.len() * 32,
            _ => 0,
        } + SMALL;
        if receives && let Err(error) = limits.take(size).await {
            let _ = incoming.send((Err(error.into()), None));
            return;
        }
        let permits = u32::try_from(size).unwrap_or(u32::MAX);
        let permit = match receives {
            true => Arc::clone(&room).acquire_many_owned(permits).await.ok(),
            false => Arc::clone(&room).try_acquire_many_owned(permits).ok(),
        };
        let Some(permit) = permit else {
            return refuse("answers that nobody asked for");
        };
        if incoming.send((Ok(message), Some(permit))).is_err() {
            return;
        }
    }
}
