//! The exit's end of a UDP association: messages of a stream become datagrams, under the same policy
//! as connections, and what comes back from where some were sent becomes messages.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fbdt::{Class, ClassHandle, MessageError, MessageOptions, Messages};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::allowance::Allowance;
use super::dial::Dialer;
use super::pending::Pending;
use super::resolve::Resolver;
use crate::classes::DatagramGuess;
use crate::crowd::Place;
use crate::flows::Flow;
use crate::service::{Datagram, Destination};

/// An association that has been silent for so long ends.
const IDLE: Duration = Duration::from_secs(120);
/// What was checked counts for so long; then it is looked up and checked anew.
const CHECKED: Duration = Duration::from_secs(30);
/// Most places that one association talks to at a time; the one that was used longest ago goes.
const PEERS_MAX: usize = 256;
/// How often an association says that it is in use.
const USED: Duration = Duration::from_secs(1);
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
    /// Datagrams that wait for a name, and the names that are looked up for them.
    pending: Pending,
    lookups: JoinSet<(Destination, Option<SocketAddr>)>,
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
            pending: Pending::default(),
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
        place: &Place,
    ) -> io::Result<()> {
        let mut said = tokio::time::Instant::now();
        let (mut four, mut six) = (vec![0; DATAGRAM_MAX], vec![0; DATAGRAM_MAX]);
        let (mut word, mut last) = ([0; 256], tokio::time::Instant::now());
        loop {
            // Those that are silent give way first.
            if last.duration_since(said) > USED {
                said = last;
                place.used();
            }
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
                    if let Ok((destination, address)) = found {
                        self.found(destination, address).await;
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

    /// Sends a client's datagram to where it wants it. What a name stands for is looked up first: the
    /// datagram waits for it, and nothing else does.
    async fn outward(&mut self, message: &[u8], allowance: &std::sync::Arc<Allowance>) {
        let Ok(Datagram { destination, data }) = Datagram::parse(message) else { return };
        self.flow.received(data.len());
        let now = Instant::now();
        if let Some(known) = self.checked.get_mut(&destination).filter(|known| known.until > now) {
            known.used = now;
            let address = known.address;
            return self.send(address, data).await;
        }
        if destination.host.parse::<IpAddr>().is_ok() {
            // This asks nobody.
            let Some(address) = permitted(&self.dialer, &destination, allowance).await else {
                return self.flow.dropped(data.len());
            };
            self.remember(destination, address);
            return self.send(address, data).await;
        }
        if !self.pending.push(&destination, data) {
            return self.flow.dropped(data.len());
        }
        if self.pending.is_first(&destination) {
            let (dialer, allowance) = (self.dialer.clone(), allowance.clone());
            self.lookups.spawn(async move {
                let address = permitted(&dialer, &destination, &allowance).await;
                (destination, address)
            });
        }
    }

    /// Sends what waited for a destination to the address that the policy permits for it, if there is one.
    async fn found(&mut self, destination: Destination, address: Option<SocketAddr>) {
        let waited = self.pending.take(&destination);
        let Some(address) = address else {
            return waited.iter().for_each(|data| self.flow.dropped(data.len()));
        };
        self.remember(destination, address);
        for data in waited {
            self.send(address, &data).await;
        }
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
            Err(MessageError::Blocked | MessageError::TooLong { .. }) => {
                self.flow.dropped(size);
                Ok(true)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// The address that the policy permits for a destination.
async fn permitted<R: Resolver>(
    dialer: &Dialer<R>,
    destination: &Destination,
    allowance: &Allowance,
) -> Option<SocketAddr> {
    let found = dialer.permitted_address(&destination.host, destination.port, allowance).await;
    found.inspect_err(|error| tracing::debug!(%error, "a datagram was not sent")).ok()
}

async fn receive(socket: Option<&UdpSocket>, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    match socket {
        Some(socket) => socket.recv_from(buffer).await,
        None => std::future::pending().await,
    }
}
