//! The whole machine's packets through a TUN device.
//!
//! TCP ends in this machine's own kernel and not in a second implementation of it: packets are given
//! other addresses and written back to the device, where they meet a listener (`flows`). So connections
//! can be reset, windows grow and nothing is held that the program did not ask for; the crates at hand
//! that end TCP in user space cannot reset a connection, or hold any amount of data.
//!
//! UDP goes to whoever carries it ([`Datagrams`]); what nobody carries is answered with ICMP "port
//! unreachable", so that programs need not wait. Of other protocols nothing is carried, nor answered.

mod flows;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod packet;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tun_rs::{AsyncDevice, DeviceBuilder, SyncDevice};

use self::flows::{Flow, Flows};
use self::packet::{Packet, Transport};
use crate::families::listen_on_both;
use crate::guardian::CaptureError;
pub use crate::rules::{TUN_OWN, TUN_PEER};

/// Largest packet, in bytes: nothing leaves this machine as it is, so pieces may be as large as the
/// protocol allows.
pub const MTU: u16 = 65_520;
/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 1024;
/// Answers over UDP that may wait to be written.
const REPLIES_MAX: usize = 1024;
/// The device's name. There is one: two would have the same addresses.
const NAME: &str = "sumrate0";

/// A datagram of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// The program's address and port.
    pub source: SocketAddr,
    /// Whom it is for.
    pub destination: SocketAddr,
    /// What it says.
    pub payload: Vec<u8>,
}

/// Sends datagrams back to programs.
#[derive(Debug, Clone)]
pub struct Replies(mpsc::Sender<Vec<u8>>);

impl Replies {
    /// At most `waiting` of them wait; the packets that are to be written come out of the receiver.
    pub fn new(waiting: usize) -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (sender, packets) = mpsc::channel(waiting);
        (Self(sender), packets)
    }

    /// Sends `payload` from `datagram`'s destination to its source. Like every datagram it may be lost.
    pub fn answer(&self, datagram: &Datagram, payload: &[u8]) {
        self.send(datagram.destination, datagram.source, payload);
    }

    /// Sends `payload` to a program, from whomever it came. Like every datagram it may be lost.
    pub fn send(&self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        self.write(packet::datagram(from, to, payload));
    }

    /// Tells the program that nobody takes its datagram.
    pub fn refuse(&self, datagram: &Datagram) {
        let sent = packet::datagram(datagram.source, datagram.destination, &datagram.payload);
        let refused = sent.and_then(|bytes| {
            let packet = Packet::parse(&bytes)?;
            packet::port_unreachable(&bytes, &packet)
        });
        self.write(refused);
    }

    fn write(&self, packet: Option<Vec<u8>>) {
        if let Some(packet) = packet {
            let _ = self.0.try_send(packet);
        }
    }
}

/// Carries datagrams.
pub trait Datagrams {
    /// Takes a datagram, and answers later; `false` if it is not carried, of which the program is told.
    /// Whoever finds that out later says [`Replies::refuse`].
    fn carry(&self, datagram: Datagram, replies: &Replies) -> bool;
}

/// The device could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// Another daemon has it.
    #[error("another `sumrate up --tun` has the device {NAME}: stop that one first")]
    Taken,
    /// The system refused.
    #[error("cannot make a TUN device: {0}; /dev/net/tun has to exist and needs CAP_NET_ADMIN")]
    System(#[from] io::Error),
}

/// A device that was made while there were the rights for it. It goes when this is dropped, and its
/// routes with it.
pub struct Device {
    device: SyncDevice,
    name: String,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.name)
    }
}

impl Device {
    /// Makes the device.
    ///
    /// # Errors
    /// [`TunError`]
    pub fn open() -> Result<Self, TunError> {
        let made = DeviceBuilder::new().name(NAME).build_sync();
        let device = made.map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => TunError::Taken,
            _ => TunError::System(error),
        })?;
        Ok(Self { device, name: NAME.to_owned() })
    }

    /// Makes it again; `None` if it is there.
    ///
    /// # Errors
    /// [`TunError`]
    pub(crate) fn open_again() -> Result<Option<Self>, TunError> {
        match Self::open() {
            Ok(device) => Ok(Some(device)),
            Err(TunError::Taken) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Its descriptor, while it is not dropped.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.device.as_raw_fd()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the kernel gives it no IPv6 address.
    fn is_without_ipv6(&self) -> bool {
        let switch = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", self.name);
        std::fs::read_to_string(switch).is_ok_and(|value| value.trim() != "0")
    }
}

/// The device at work.
pub struct Tun {
    /// Another one takes its place when somebody has removed it.
    device: watch::Sender<Arc<AsyncDevice>>,
    /// New connections and datagrams over IPv6 are refused.
    refuses_ipv6: AtomicBool,
    flows: [Mutex<Flows>; 2],
    listeners: [Option<TcpListener>; 2],
    ports: [u16; 2],
}

impl Tun {
    /// Listens for what comes through the device. Its addresses need not be there yet.
    ///
    /// # Errors
    /// [`CaptureError`]: no listener for a family that is in use.
    pub fn new(device: Device) -> Result<Self, CaptureError> {
        const ACTION: &str = "listen behind the TUN device";
        let failed = |error| CaptureError::System { action: ACTION, error };
        let listeners = listen_on_both(ACTION, |ipv6| match ipv6 {
            false => listen(TUN_OWN.0.into()),
            true if device.is_without_ipv6() => Err(Errno::EADDRNOTAVAIL.into()),
            true => listen(TUN_OWN.1.into()),
        })?;
        let mut ports = [0; 2];
        for (port, listener) in ports.iter_mut().zip(&listeners) {
            let bound = listener.as_ref().map_or(Ok(0), |l| l.local_addr().map(|a| a.port()));
            *port = bound.map_err(failed)?;
        }
        let device = AsyncDevice::new(device.device).map_err(failed)?;
        let flows = [Mutex::default(), Mutex::default()];
        let device = watch::Sender::new(Arc::new(device));
        let refuses_ipv6 = AtomicBool::default();
        Ok(Self { device, refuses_ipv6, flows, listeners, ports })
    }

    /// Ports of the listeners for IPv4 and IPv6, 0 where there is none.
    pub fn ports(&self) -> [u16; 2] {
        self.ports
    }

    fn flows(&self, family: usize) -> MutexGuard<'_, Flows> {
        self.flows[family].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next connection of a program, and where it was meant to go.
    ///
    /// # Errors
    /// What the system says.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let (stream, from) = tokio::select! {
                accepted = accept(self.listeners[0].as_ref()) => accepted?,
                accepted = accept(self.listeners[1].as_ref()) => accepted?,
            };
            let family = usize::from(from.is_ipv6());
            if from.ip() != peer(family) {
                tracing::debug!(%from, "somebody connected to the listener itself");
                continue;
            }
            if let Some(flow) = self.flows(family).at(from.port()) {
                return Ok((stream, flow.destination));
            }
        }
    }

    /// Goes on with another device of the same name.
    ///
    /// # Errors
    /// It is none.
    pub fn replace(&self, device: OwnedFd) -> io::Result<()> {
        // SAFETY: the guardian has made it as this process makes its own: without packet information
        // and offloads; nobody else has this descriptor.
        #[allow(unsafe_code)]
        let device = unsafe { SyncDevice::from_fd(device.into_raw_fd()) }?;
        self.device.send_replace(Arc::new(AsyncDevice::new(device)?));
        Ok(())
    }

    /// Refuses new connections and datagrams over IPv6 from now on, or no longer.
    pub fn refuse_ipv6(&self, refused: bool) {
        self.refuses_ipv6.store(refused, Ordering::Relaxed);
    }

    /// Moves packets until the future is dropped. A device that somebody removes is waited for.
    ///
    /// # Errors
    /// What the system says of a device that fails in another way.
    pub async fn run(&self, datagrams: &impl Datagrams) -> io::Result<()> {
        let (replies, mut packets) = Replies::new(REPLIES_MAX);
        let mut devices = self.device.subscribe();
        loop {
            let device = Arc::clone(&devices.borrow_and_update());
            let failed = tokio::select! {
                failed = self.run_on(&device, datagrams, &replies, &mut packets) => failed,
                _ = devices.changed() => continue,
            };
            match failed {
                Err(error) if is_gone(&error) => tracing::error!(
                    "{NAME} was removed; captured connections are refused until it is back"
                ),
                failed => return failed,
            }
            let _ = devices.changed().await;
        }
    }

    async fn run_on(
        &self,
        device: &AsyncDevice,
        datagrams: &impl Datagrams,
        replies: &Replies,
        packets: &mut mpsc::Receiver<Vec<u8>>,
    ) -> io::Result<()> {
        let writing = async {
            while let Some(packet) = packets.recv().await {
                forgive(device.send(&packet).await)?;
            }
            Ok(())
        };
        let reading = async {
            let mut buffer = vec![0; usize::from(u16::MAX)];
            loop {
                let length = device.recv(&mut buffer).await?;
                self.handle(device, &mut buffer[..length], datagrams, replies).await?;
            }
        };
        tokio::select! {
            failed = writing => failed,
            failed = reading => failed,
        }
    }

    async fn handle(
        &self,
        device: &AsyncDevice,
        bytes: &mut [u8],
        datagrams: &impl Datagrams,
        replies: &Replies,
    ) -> io::Result<()> {
        let Some(packet) = Packet::parse(bytes) else { return Ok(()) };
        let is_refused = packet.source.is_ipv6() && self.refuses_ipv6.load(Ordering::Relaxed);
        let answer = match packet.transport {
            Transport::Tcp { .. } if is_refused && packet.begins() => {
                packet::refused_segment(bytes, &packet)
            }
            Transport::Udp { .. } if is_refused => packet::port_unreachable(bytes, &packet),
            Transport::Tcp { .. } => match self.translation(&packet) {
                Some((source, destination)) => {
                    packet.readdress(bytes, source, destination);
                    // A full queue of the device is a lost packet, which TCP sends again.
                    return forgive(device.send(bytes).await);
                }
                None => packet::refused_segment(bytes, &packet),
            },
            Transport::Udp { payload, end } => {
                let datagram = Datagram {
                    source: packet.source,
                    destination: packet.destination,
                    payload: bytes.get(payload..end).unwrap_or_default().to_vec(),
                };
                match datagrams.carry(datagram, replies) {
                    true => None,
                    false => packet::port_unreachable(bytes, &packet),
                }
            }
        };
        match answer {
            Some(answer) => forgive(device.send(&answer).await),
            None => Ok(()),
        }
    }

    /// The addresses that a segment gets: on the way to the listener, or back. `None` if it belongs to
    /// no connection that began here.
    fn translation(&self, packet: &Packet) -> Option<(SocketAddr, SocketAddr)> {
        let family = usize::from(packet.source.is_ipv6());
        let own = SocketAddr::new(own(family), self.ports[family]);
        let now = Instant::now();
        let mut flows = self.flows(family);
        if packet.source == own && packet.destination.ip() == peer(family) {
            let flow = flows.seen(packet.destination.port(), packet.ends(), now)?;
            return Some((flow.destination, flow.source));
        }
        let flow = Flow { source: packet.source, destination: packet.destination };
        let port = match packet.begins() {
            true => flows.begin(flow, now)?,
            false => flows.number(&flow)?,
        };
        flows.seen(port, packet.ends(), now)?;
        Some((SocketAddr::new(peer(family), port), own))
    }
}

fn own(family: usize) -> IpAddr {
    if family == 0 { TUN_OWN.0.into() } else { TUN_OWN.1.into() }
}

fn peer(family: usize) -> IpAddr {
    if family == 0 { TUN_PEER.0.into() } else { TUN_PEER.1.into() }
}

/// Somebody has removed the device.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::EBADFD)
}

/// What a device has no room for is lost, as on every link.
fn forgive(sent: io::Result<usize>) -> io::Result<()> {
    match sent {
        Err(error) if is_gone(&error) => Err(error),
        Err(error) => {
            tracing::debug!(%error, "a packet was lost");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

fn listen(address: IpAddr) -> io::Result<TcpListener> {
    let address = SocketAddr::new(address, 0);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// How long a connection that has ended, or never came about, keeps its number: as long as the kernel
/// may remember its end.
const KEPT_AFTER_END: Duration = Duration::from_secs(120);
/// How long a silent connection keeps it: longer than the kernel's keep-alives (two hours).
const KEPT_SILENT: Duration = Duration::from_secs(3 * 3600);
