//! The client's end of a UDP association: a stream of its own, whose messages are datagrams with their
//! addresses, so that each takes the path that delivers first, and the small ones a second one too.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fbdt::{Class, MessageError, MessageOptions, Messages};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::connect::{ConnectFailure, answered};
use crate::classes::{ClassRules, DatagramGuess};
use crate::flows::Flow;
use crate::service::{
    Answer, AssociateRequest, Datagram, FailureCode, Request, read_answer, write_request,
};
use crate::tunnel::{Tunnel, TunnelStream, Use};

/// A datagram that is older than this is worth nothing any more.
const LIFETIME: Duration = Duration::from_secs(1);

/// Carries datagrams to the exit and back; a test puts something else in its place.
pub(crate) trait Carrier: Send {
    /// Longest datagram with its address, in bytes.
    fn longest(&self) -> usize;

    /// Sends a datagram with its address; it may be lost, as datagrams are. A rule may say its class.
    ///
    /// # Errors
    /// The association is over.
    fn send(
        &mut self,
        message: &[u8],
        rules: &ClassRules,
    ) -> impl Future<Output = io::Result<()>> + Send;

    /// The next datagram for the client, with its address; `None` if the exit has ended it.
    ///
    /// # Errors
    /// The session is over.
    fn receive(&mut self) -> impl Future<Output = io::Result<Option<Bytes>>> + Send;
}

/// An association that the exit has granted. It ends when this is dropped.
pub(crate) struct Association<S> {
    stream: S,
    messages: Messages,
    guess: DatagramGuess,
    /// A rule has said the class.
    is_known: bool,
    flow: Option<Flow>,
}

impl<S: TunnelStream> Association<S> {
    /// Asks the exit for one.
    ///
    /// # Errors
    /// [`ConnectFailure`]
    pub(crate) async fn open<T: Tunnel<Stream = S>>(tunnel: &T) -> Result<Self, ConnectFailure> {
        answered(tunnel, None, "a UDP association", || Self::ask(tunnel)).await
    }

    async fn ask<T: Tunnel<Stream = S>>(tunnel: &T) -> Result<Self, ConnectFailure> {
        let failed = |code: FailureCode, message: String| ConnectFailure { code, message };
        let general = |message: String| failed(FailureCode::General, message);
        let stream = tunnel.open(Use::Known(Class::Conversational)).await;
        let mut stream =
            stream.map_err(|error| failed(FailureCode::NetworkUnreachable, error.to_string()))?;
        let messages = stream.messages().ok_or_else(|| {
            let words = "the server speaks wire version 1, which has no messages; update it";
            failed(FailureCode::Unsupported, words.to_owned())
        })?;
        let request = Request::Associate(AssociateRequest::default());
        write_request(&mut stream, &request).await.map_err(|error| general(error.to_string()))?;
        match read_answer(&mut stream).await.map_err(|error| general(error.to_string()))? {
            Answer::Ready(_) => {
                let flow = tunnel.flows().map(|flows| flows.begin());
                let guess = DatagramGuess::default();
                if let Some(setter) = stream.class_setter() {
                    setter.guess(guess.class());
                }
                Ok(Self { stream, messages, guess, is_known: false, flow })
            }
            Answer::Refused { code, message } => Err(failed(code, message)),
        }
    }
}

impl<S: TunnelStream> Carrier for Association<S> {
    fn longest(&self) -> usize {
        self.messages.longest()
    }

    async fn send(&mut self, message: &[u8], rules: &ClassRules) -> io::Result<()> {
        let Ok(Datagram { destination, data }) = Datagram::parse(message) else { return Ok(()) };
        let options = MessageOptions { lifetime: Some(LIFETIME), ..MessageOptions::default() };
        match self.messages.try_send(Bytes::copy_from_slice(message), options) {
            Ok(()) => {}
            Err(MessageError::Blocked | MessageError::TooLong { .. }) => {
                self.flow.iter().for_each(|flow| flow.dropped(data.len()));
                return Ok(());
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        if let Some(flow) = &self.flow {
            flow.sent(data.len());
        }
        let named = rules.class_of(&destination.host, destination.port);
        let guessed = self.guess.sent(Instant::now(), message.len() as u64);
        if let (false, Some(setter)) = (self.is_known, self.stream.class_setter()) {
            match (named, guessed) {
                (Some(class), _) => setter.set(class),
                (None, Some(class)) => setter.guess(class),
                (None, None) => {}
            }
        }
        // What a rule names holds for what comes back, too: the exit is told.
        if let (Some(class), false) = (named, self.is_known) {
            self.stream.write_all(&[class.to_wire()]).await?;
            self.stream.flush().await?;
            self.is_known = true;
        }
        Ok(())
    }

    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        let mut word = [0; 256];
        loop {
            tokio::select! {
                message = self.messages.receive() => {
                    let message = message.map_err(io::Error::other)?;
                    if let (Some(flow), Ok(arrived)) = (&self.flow, Datagram::parse(&message)) {
                        flow.received(arrived.data.len());
                    }
                    return Ok(Some(message));
                }
                // It says nothing more on its stream; the association ends with it.
                read = self.stream.read(&mut word) => if matches!(read, Ok(0) | Err(_)) {
                    return Ok(None);
                },
            }
        }
    }
}
