//! The exit's end of a UDP association: messages of a stream become datagrams, under the same policy
//! as connections, and what comes back from where some were sent becomes messages.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fbdt::{Class, ClassHandle, MessageError, MessageOptions, Messages};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::allowance::Allowance;
use super::dial::Dialer;
use super::resolve::Resolver;
use crate::classes::DatagramGuess;
use crate::flows::Flow;
use crate::service::{Datagram, Destination};

/// An association that has been silent for so long ends.
const IDLE: Duration = Duration::from_secs(120);
/// What was checked counts for so long; then it is looked up and checked anew.
const CHECKED: Duration = Duration::from_secs(30);
/// Most places that one association talks to at a time; the one that was used longest ago goes.
const PEERS_MAX: usize = 256;
/// Most names that one association has looked up at a time; datagrams beyond are dropped.
const LOOKUPS_MAX: usize = 8;
/// Largest datagram, in bytes.
const DATAGRAM_MAX: usize = 65_535;
/// An answer that is older than this is worth nothing any more.
const LIFETIME: Duration = Duration::from_secs(1);

/// A place that was checked.
#[derive(Debug, Clone, Copy)]
struct Checked {
    address: SocketAddr,
    until: Instant,
    used: Instant,
}

/// One association.
pub struct Association<R> {
    dialer: Dialer<R>,
    messages: Messages,
    class: ClassHandle,
    /// `None` once the client has said the class.
    guess: Option<DatagramGuess>,
    v4: UdpSocket,
    /// Absent on hosts without IPv6.
    v6: Option<UdpSocket>,
    /// What clients asked for, with the address that the policy permits.
    checked: HashMap<Destination, Checked>,
    /// Datagrams that wait for a name.
    lookups: JoinSet<(Destination, Vec<u8>, Option<SocketAddr>)>,
    /// Where it is counted.
    flow: Flow,
}

impl<R: Resolver> Association<R> {
    /// An association whose datagrams are the messages. The class of what this end sends is guessed
    /// until the client names one.
    ///
    /// # Errors
    /// No socket can be had.
    pub async fn new(
        dialer: Dialer<R>,
        messages: Messages,
        class: ClassHandle,
        flow: Flow,
    ) -> io::Result<Self> {
        let guess = DatagramGuess::default();
        class.guess(guess.class());
        Ok(Self {
            dialer,
            messages,
            class,
            guess: Some(guess),
            v4: UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?,
            v6: UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await.ok(),
            checked: HashMap::new(),
            lookups: JoinSet::new(),
            flow,
        })
    }

    /// Relays until the client ends its stream, nothing has moved for two minutes, or the allowance
    /// is spent.
    ///
    /// # Errors
    /// The session is over, or the quota spent.
    pub async fn relay(
        mut self,
        stream: &mut (impl AsyncRead + Unpin),
        allowance: &std::sync::Arc<Allowance>,
    ) -> io::Result<()> {
        let (mut four, mut six) = (vec![0; DATAGRAM_MAX], vec![0; DATAGRAM_MAX]);
        let (mut word, mut last) = ([0; 256], tokio::time::Instant::now());
        loop {
            tokio::select! {
                message = self.messages.receive() => {
                    last = tokio::time::Instant::now();
                    let message = message.map_err(io::Error::other)?;
                    allowance.take(message.len()).await?;
                    self.outward(&message, allowance).await;
                }
                received = self.v4.recv_from(&mut four) => {
                    if self.inward(received, &four, allowance).await? {
                        last = tokio::time::Instant::now();
                    }
                }
                received = receive(self.v6.as_ref(), &mut six) => {
                    if self.inward(received, &six, allowance).await? {
                        last = tokio::time::Instant::now();
                    }
                }
                Some(found) = self.lookups.join_next() => {
                    if let Ok((destination, data, Some(address))) = found {
                        self.remember(destination, address);
                        self.send(address, &data).await;
                    }
                }
                read = stream.read(&mut word) => match read {
                    Ok(0) | Err(_) => return Ok(()),
                    Ok(count) => self.told(&word[..count]),
                },
                () = tokio::time::sleep_until(last + IDLE) => return Ok(()),
            }
        }
    }

    /// The client says of which class its datagrams are, each time in one byte; what this version does
    /// not know is passed over.
    fn told(&mut self, said: &[u8]) {
        if let Some(class) = said.iter().rev().find_map(|number| Class::from_wire(*number)) {
            self.name_class(class);
        }
    }

    /// What this end sends is of this class from now on.
    pub fn name_class(&mut self, class: Class) {
        self.guess = None;
        self.class.set(class);
    }

    /// Sends a client's datagram to where it wants it, or looks that up and checks it first.
    async fn outward(&mut self, message: &[u8], allowance: &std::sync::Arc<Allowance>) {
        let Ok(Datagram { destination, data }) = Datagram::parse(message) else { return };
        self.flow.received(data.len());
        let now = Instant::now();
        if let Some(known) = self.checked.get_mut(&destination).filter(|known| known.until > now) {
            known.used = now;
            let address = known.address;
            return self.send(address, data).await;
        }
        if self.lookups.len() >= LOOKUPS_MAX {
            return;
        }
        let (dialer, allowance, data) = (self.dialer.clone(), allowance.clone(), data.to_vec());
        self.lookups.spawn(async move {
            let found = dialer.permitted_address(&destination.host, destination.port, &allowance);
            let address = match found.await {
                Ok(address) => Some(address),
                Err(error) => {
                    tracing::debug!(%error, "a datagram was not sent");
                    None
                }
            };
            (destination, data, address)
        });
    }

    fn remember(&mut self, destination: Destination, address: SocketAddr) {
        let now = Instant::now();
        if self.checked.len() >= PEERS_MAX {
            let oldest = self.checked.iter().min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(destination, _)| destination.clone()) {
                self.checked.remove(&oldest);
            }
        }
        self.checked.insert(destination, Checked { address, until: now + CHECKED, used: now });
    }

    /// What cannot be sent is lost, as datagrams are.
    async fn send(&self, address: SocketAddr, data: &[u8]) {
        let socket = if address.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        if let Some(socket) = socket
            && let Err(error) = socket.send_to(data, address).await
        {
            tracing::debug!(%address, %error, "a datagram was not sent");
        }
    }

    /// Passes on what came from a place that the client talks to; says whether it did.
    async fn inward(
        &mut self,
        received: io::Result<(usize, SocketAddr)>,
        buffer: &[u8],
        allowance: &Allowance,
    ) -> io::Result<bool> {
        // An error here is about an earlier datagram: a closed port, say.
        let Ok((size, from)) = received else { return Ok(false) };
        if !self.checked.values().any(|known| known.address == from) {
            return Ok(false);
        }
        let message = Datagram::encode(from, &buffer[..size]);
        allowance.take(message.len()).await?;
        if let Some(guess) = &mut self.guess
            && let Some(class) = guess.sent(Instant::now(), size as u64)
        {
            self.class.guess(class);
        }
        let options = MessageOptions { lifetime: Some(LIFETIME), ..MessageOptions::default() };
        match self.messages.try_send(Bytes::from(message), options) {
            Ok(()) => {
                self.flow.sent(size);
                Ok(true)
            }
            Err(MessageError::Blocked | MessageError::TooLong { .. }) => Ok(true),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

async fn receive(socket: Option<&UdpSocket>, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    match socket {
        Some(socket) => socket.recv_from(buffer).await,
        None => std::future::pending().await,
    }
}
