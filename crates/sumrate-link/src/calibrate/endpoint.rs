//! UDP sockets at both ends of a link, made inside their namespaces.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};

use super::CalibrateError;
use crate::config::{LinkConfig, Side};
use crate::netns;

const BUFFER: usize = 32 << 20;

/// Addresses of both ends, in one family.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    addresses: [IpAddr; 2],
}

impl Endpoints {
    /// Chooses the first family that both ends have.
    pub(super) fn new(link: &LinkConfig) -> Result<Endpoints, CalibrateError> {
        let bare = |side: Side| -> Vec<IpAddr> {
            let texts = &link.end(side).address;
            texts.iter().filter_map(|text| text.split('/').next()?.parse().ok()).collect()
        };
        let (a, b) = (bare(Side::A), bare(Side::B));
        let pair = a.iter().find_map(|one| {
            let other = b.iter().find(|other| other.is_ipv4() == one.is_ipv4())?;
            Some([*one, *other])
        });
        let addresses =
            pair.ok_or_else(|| CalibrateError::NoAddress { link: link.name.clone() })?;
        Ok(Endpoints { addresses })
    }

    /// Bytes of IP and UDP headers.
    pub(super) fn header_bytes(&self) -> usize {
        if self.addresses[0].is_ipv4() { 28 } else { 48 }
    }

    /// A socket at `from` that sends to a socket at the other side.
    pub(super) fn pair(
        &self,
        link: &LinkConfig,
        from: Side,
    ) -> Result<[UdpSocket; 2], CalibrateError> {
        let fail = |operation| {
            move |source| CalibrateError::Socket { link: link.name.clone(), operation, source }
        };
        let (here, there) = match from {
            Side::A => (0, 1),
            Side::B => (1, 0),
        };
        let open = |index: usize| -> Result<UdpSocket, CalibrateError> {
            let netns = link.ends[index].netns.as_deref();
            let address = SocketAddr::new(self.addresses[index], 0);
            netns::run_in(netns, || bind(address))?.map_err(fail("opening a UDP socket"))
        };
        let (sender, receiver) = (open(here)?, open(there)?);
        let connect = || -> io::Result<()> {
            sender.connect(receiver.local_addr()?)?;
            receiver.connect(sender.local_addr()?)
        };
        connect().map_err(fail("connecting a UDP socket"))?;
        Ok([sender, receiver])
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    // As large as is allowed.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
    }
    Ok(socket)
}

/// Sends packets from one end to the other until one arrives: addresses are then resolved.
pub(super) fn resolve(
    link: &LinkConfig,
    [sender, receiver]: [&UdpSocket; 2],
) -> Result<(), CalibrateError> {
    const SECONDS: u64 = 10;
    let fail = |source| CalibrateError::Socket {
        link: link.name.clone(),
        operation: "resolving the other end",
        source,
    };
    let mut buffer = [0; 16];
    receiver.set_read_timeout(Some(Duration::from_millis(100))).map_err(fail)?;
    for _ in 0..SECONDS * 10 {
        // An unreachable host is an error of a later send, and what is waited for here.
        let _ = sender.send(&[0]);
        if receiver.recv(&mut buffer).is_ok() {
            return drain(receiver).map_err(fail);
        }
    }
    Err(CalibrateError::Silent { link: link.name.clone(), seconds: SECONDS })
}

/// Reads away what is still on its way.
fn drain(receiver: &UdpSocket) -> io::Result<()> {
    let mut buffer = [0; 16];
    loop {
        match receiver.recv(&mut buffer) {
            Ok(_) => {}
            Err(error) if is_timeout(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Whether a read ran into its timeout.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
