//! The task of one subflow: reads promptly, samples TCP, sends what the protocol gives.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fbdt_proto::{DATA_OVERHEAD, Frame, FrameDecoder, Instant, Outgoing, SubflowId, WireError};
use tokio::time::timeout;

use super::connection::{Connection, ConnectionError, Received};
use super::handshake::Established;
use crate::session::{CLOSE_TIME, PathError, Shared, SubflowIo};
use crate::trouble::PathTrouble;

/// Bytes read, and bytes sent, before the other direction and the other tasks get their turn.
const TURN: usize = 1 << 20;

/// Small frames are sent together up to this size, so that they share a record.
const COALESCE: usize = 8 * 1024;

/// Least rest of a frame that is read to where it stays, at a system call of its own.
const LARGE: usize = 16 * 1024;
/// Frames given to the protocol at once while each is read by itself.
const TOGETHER: usize = 4;

/// A subflow that holds bytes is sampled as often as the protocol asks; one that makes no progress,
/// less and less, down to this.
const SLOWEST_TICK: Duration = Duration::from_millis(5);

/// Why a subflow's task ends.
enum End {
    /// The session replaced or removed it; it is reset.
    Retired,
    /// The session is over and said so to the peer.
    Closed,
    /// The socket or its records failed.
    Failed(ConnectionError),
}

/// What a turn found.
enum Turn {
    /// Nothing to do until something happens, or until a sample is due.
    Wait(Option<Duration>),
    /// There is more to do; others go first.
    Again,
}

/// What the subflow holds, and since when that has not changed: how dense sampling must be.
#[derive(Default)]
struct Outstanding {
    bytes: u64,
    since: Instant,
    /// How often to look at it, if silence would mean something.
    watched: Option<Duration>,
}

/// Everything that one subflow's task owns.
pub(crate) struct SubflowTask {
    shared: Arc<Shared>,
    id: SubflowId,
    io: Arc<SubflowIo>,
    connection: Connection,
    decoder: FrameDecoder,
    /// Plaintext that came with the handshake's last message.
    rest: Vec<u8>,
    frames: Vec<Frame>,
    /// The frame that is being read goes to where it stays.
    in_place: bool,
    out: Outgoing,
    outstanding: Outstanding,
}

impl SubflowTask {
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: SubflowId,
        io: Arc<SubflowIo>,
        established: Established,
        max_frame: u32,
    ) -> Self {
        Self {
            shared,
            id,
            io,
            connection: established.connection,
            decoder: FrameDecoder::new(max_frame),
            rest: established.rest,
            frames: Vec::new(),
            in_place: false,
            out: Outgoing::default(),
            outstanding: Outstanding::default(),
        }
    }

    /// Serves the subflow to its end; gives the session back for the account of tasks.
    pub(crate) async fn run(mut self) -> Arc<Shared> {
        let mut failure = None;
        match self.serve().await {
            End::Retired => self.connection.reset_on_close(),
            End::Closed => {
                let _ = timeout(CLOSE_TIME, self.close()).await;
            }
            End::Failed(error) => {
                tracing::debug!(subflow = self.id.0, %error, "subflow down");
                self.connection.reset_on_close();
                failure = Some(PathError::now(
                    PathTrouble::Lost,
                    format!("the connection was lost: {error}"),
                ));
            }
        }
        self.shared.update(|inner, now| inner.remove_subflow(now, self.id, failure));
        self.shared
    }

    async fn serve(&mut self) -> End {
        let rest = std::mem::take(&mut self.rest);
        if let Err(error) = self.decode(&rest) {
            self.break_off(error);
        }
        loop {
            match self.turn() {
                Err(end) => return end,
                Ok(Turn::Again) => tokio::task::yield_now().await,
                Ok(Turn::Wait(sample)) => {
                    if let Err(end) = self.wait(sample).await {
                        return end;
                    }
                }
            }
        }
    }

    async fn wait(&mut self, sample: Option<Duration>) -> Result<(), End> {
        let notified = self.io.notify.notified();
        let ready = self.connection.ready();
        let result = match sample {
            Some(delay) => tokio::select! {
                ready = ready => ready.map(drop),
                () = notified => Ok(()),
                () = tokio::time::sleep(delay) => Ok(()),
            },
            None => tokio::select! {
                ready = ready => ready.map(drop),
                () = notified => Ok(()),
            },
        };
        result.map_err(|error| End::Failed(error.into()))
    }

    /// Reads what is there, then sends what may go.
    fn turn(&mut self) -> Result<Turn, End> {
        let more_to_read = self.receive()?;
        let more_to_send = self.transmit()?;
        if more_to_read || more_to_send {
            return Ok(Turn::Again);
        }
        Ok(Turn::Wait(self.next_sample()))
    }

    /// Takes in what the socket has, up to a turn's worth; says whether that was not all.
    fn receive(&mut self) -> Result<bool, End> {
        let mut taken = 0;
        while taken < TURN {
            match self.read() {
                Ok(Received::Nothing) => {
                    self.deliver();
                    return Ok(false);
                }
                Ok(Received::Bytes(count)) => taken += count,
                Ok(Received::Stopped(error)) => {
                    self.deliver();
                    self.break_off(error);
                    return Ok(false);
                }
                // The frames before the end count: the last one may say why.
                Err(error) => {
                    self.deliver();
                    return Err(self.ended(error));
                }
            }
            if !self.in_place || self.frames.len() >= TOGETHER {
                self.deliver();
            }
        }
        self.deliver();
        Ok(true)
    }

    /// Reads once. Payloads that are not encrypted go to where they stay, without a copy, while
    /// frames are large; then the next frame's header is read by itself.
    fn read(&mut self) -> Result<Received<WireError>, ConnectionError> {
        let Self { connection, decoder, frames, in_place, .. } = self;
        if connection.is_plain() {
            let expected = std::mem::take(in_place);
            if let Some(mut room) = decoder.room(if expected { 1 } else { LARGE }) {
                *in_place = true;
                let received = connection.read_to(&mut room)?;
                return Ok(match decode(decoder, &[], frames) {
                    Ok(()) => received,
                    Err(error) => Received::Stopped(error),
                });
            }
            if expected {
                // A frame that was large has ended; the next one is expected to be as well.
                let header = connection.read(DATA_OVERHEAD, |piece| sink(decoder, piece, frames));
                *in_place = decoder.room(LARGE).is_some();
                return header;
            }
        }
        connection.read(usize::MAX, |piece| sink(decoder, piece, frames))
    }

    fn decode(&mut self, piece: &[u8]) -> Result<(), WireError> {
        let result = decode(&mut self.decoder, piece, &mut self.frames);
        self.deliver();
        result
    }

    /// Gives decoded frames to the protocol. A frame that breaks a rule closes the session, and
    /// what came behind it no longer matters.
    fn deliver(&mut self) {
        if self.frames.is_empty() {
            return;
        }
        let Self { shared, id, frames, .. } = self;
        shared.update_except(Some(*id), |inner, now| {
            for frame in frames.drain(..) {
                if !inner.has_subflow(*id) {
                    return;
                }
                if let Err(error) = inner.protocol.handle_frame(now, *id, frame) {
                    tracing::debug!(subflow = id.0, %error, "the peer broke the protocol");
                    return;
                }
            }
        });
    }

    /// The peer's bytes are no frames: the session cannot trust this peer.
    fn break_off(&mut self, error: WireError) {
        tracing::debug!(subflow = self.id.0, %error, "the peer sent what is no frame");
        self.shared.update(|inner, _| inner.protocol.handle_wire_error(error));
    }

    /// A connection that ends after the session did has ended well.
    fn ended(&self, error: ConnectionError) -> End {
        if self.shared.inspect(|inner| inner.closed().is_some()) {
            End::Closed
        } else {
            End::Failed(error)
        }
    }

    /// Sends while the protocol has something and the socket takes it; says whether a turn's
    /// worth did not suffice.
    fn transmit(&mut self) -> Result<bool, End> {
        let mut sent = 0;
        while sent < TURN {
            self.connection.flush().map_err(End::Failed)?;
            self.io.held.store(self.connection.pending(), Ordering::Relaxed);
            if self.connection.pending() > 0 {
                // Sampling goes on while the socket is full: it shows progress, or none.
                self.poll(false)?;
                return Ok(false);
            }
            let closed = self.poll(true)?;
            if self.out.is_empty() {
                return if closed { Err(End::Closed) } else { Ok(false) };
            }
            sent += self.out.len();
            self.connection.send(&mut self.out).map_err(End::Failed)?;
        }
        Ok(true)
    }

    /// Under the lock: samples TCP and, if asked to, takes frames into `out`. Says whether the
    /// session is over.
    fn poll(&mut self, take: bool) -> Result<bool, End> {
        let Self { shared, id, io, out, outstanding, .. } = self;
        shared.update_except(Some(*id), |inner, now| {
            if !inner.has_subflow(*id) {
                return Err(End::Retired);
            }
            let bytes = inner.sample(now, *id);
            if take {
                let enough = inner.protocol.batch(*id).max(COALESCE);
                while out.len() < enough && inner.protocol.poll_transmit(now, *id, out) {}
                io.held.store(out.len(), Ordering::Relaxed);
            }
            if outstanding.bytes != bytes {
                (outstanding.bytes, outstanding.since) = (bytes, now);
            }
            let matters = inner.protocol.needs_sample(*id);
            outstanding.watched = matters.then(|| inner.protocol.sample_interval(*id));
            Ok(inner.closed().is_some())
        })
    }

    /// When to look at TCP again although nothing happens.
    fn next_sample(&self) -> Option<Duration> {
        let interval = self.outstanding.watched?;
        let silence = self.shared.now().saturating_since(self.outstanding.since);
        Some((silence / 20).clamp(interval, SLOWEST_TICK))
    }

    /// The session is over and everything is with the kernel: says that nothing follows and waits
    /// for the peer to see it. Closing at once could turn into a reset that overtakes the news.
    async fn close(&mut self) -> Result<(), ConnectionError> {
        loop {
            self.connection.flush()?;
            if self.connection.pending() == 0 {
                break;
            }
            self.connection.writable().await?;
        }
        self.connection.finish()?;
        loop {
            self.connection.readable().await?;
            match self.connection.discard() {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
    }
}

fn sink(
    decoder: &mut FrameDecoder,
    piece: &[u8],
    frames: &mut Vec<Frame>,
) -> ControlFlow<WireError> {
    match decode(decoder, piece, frames) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

fn decode(
    decoder: &mut FrameDecoder,
    mut piece: &[u8],
    frames: &mut Vec<Frame>,
) -> Result<(), WireError> {
    loop {
        match decoder.push(&mut piece)? {
            Some(frame) => frames.push(frame),
            None if piece.is_empty() => return Ok(()),
            None => {}
        }
    }
}
