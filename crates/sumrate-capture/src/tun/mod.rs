//! The machine's datagrams through a TUN device. Everything that is captured is routed into it; rules
//! redirect TCP to a listener before it gets there, as firewalls accept that.
//!
//! UDP goes to whoever carries it ([`Datagrams`]); what nobody carries is answered with ICMP "port
//! unreachable", so that programs need not wait. Of other protocols nothing is carried, nor answered:
//! a TCP segment gets here only while the rules are being restored, and is sent again.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod packet;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tun_rs::{AsyncDevice, DeviceBuilder, SyncDevice};

use self::packet::Packet;
pub use crate::rules::TUN_OWN;

/// Largest packet, in bytes: nothing leaves this machine as it is, so pieces may be as large as the
/// protocol allows.
pub const MTU: u16 = 65_520;
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
    pub(crate) fn is_without_ipv6(&self) -> bool {
        let switch = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", self.name);
        std::fs::read_to_string(switch).is_ok_and(|value| value.trim() != "0")
    }
}

/// The device at work.
pub struct Tun {
    /// Another one takes its place when somebody has removed it.
    device: watch::Sender<Arc<AsyncDevice>>,
}

impl Tun {
    /// Reads and writes the device from now on.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(device: Device) -> io::Result<Self> {
        Ok(Self { device: watch::Sender::new(Arc::new(AsyncDevice::new(device.device)?)) })
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
                let answer = answer(&buffer[..length], datagrams, replies);
                if let Some(answer) = answer {
                    forgive(device.send(&answer).await)?;
                }
            }
        };
        tokio::select! {
            failed = writing => failed,
            failed = reading => failed,
        }
    }
}

/// Has a datagram carried; the answer to one that nobody carries.
fn answer(bytes: &[u8], datagrams: &impl Datagrams, replies: &Replies) -> Option<Vec<u8>> {
    let packet = Packet::parse(bytes)?;
    let datagram = Datagram {
        source: packet.source,
        destination: packet.destination,
        payload: bytes.get(packet.payload..packet.end).unwrap_or_default().to_vec(),
    };
    match datagrams.carry(datagram, replies) {
        true => None,
        false => packet::port_unreachable(bytes, &packet),
    }
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
