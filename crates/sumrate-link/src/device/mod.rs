//! Where packets come from and go to: packet sockets on veth, or TUN descriptors.

mod af_packet;
mod sys;
mod tun;

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::packet::Frame;

pub use af_packet::open as open_af_packet;
pub use sys::request_prompt_scheduling;
pub use tun::open as open_tun;

/// Bytes before IP on Ethernet.
const ETHERNET_HEADER: usize = 14;

/// Why a device could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel refused for lack of privilege.
    #[error(
        "{operation} on {interface:?} needs CAP_NET_RAW and CAP_NET_ADMIN; run inside `unshare -Urnm`, or as root"
    )]
    Privilege {
        /// What was tried.
        operation: &'static str,
        /// On which interface.
        interface: String,
    },
    /// Anything else.
    #[error("{operation} on {interface:?} failed: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// On which interface.
        interface: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// /dev/net/tun cannot be used.
    #[error(
        "cannot open /dev/net/tun: {source}; use backend = \"af-packet\", which does not need it"
    )]
    Tun {
        /// The kernel's answer.
        source: io::Error,
    },
}

impl DeviceError {
    fn new(operation: &'static str, interface: &str, source: io::Error) -> DeviceError {
        let interface = interface.to_owned();
        if source.kind() == io::ErrorKind::PermissionDenied {
            DeviceError::Privilege { operation, interface }
        } else {
            DeviceError::System { operation, interface, source }
        }
    }
}

/// A packet that was read.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes, the vnet header included.
    pub length: usize,
    /// How long ago the kernel received it; 0 where the device does not say.
    pub age: Duration,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel took it.
    Taken,
    /// The kernel has no room, or the other interface is down.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Packet,
    Tun,
}

/// One end of a link as the emulator sees it: non-blocking, one packet per call, each with a vnet header.
#[derive(Debug)]
pub struct Device {
    file: File,
    kind: Kind,
}

impl Device {
    fn new(descriptor: OwnedFd, kind: Kind) -> Device {
        Device { file: File::from(descriptor), kind }
    }

    /// Bytes before IP in each frame.
    pub fn link_header(&self) -> usize {
        match self.kind {
            Kind::Packet => ETHERNET_HEADER,
            Kind::Tun => 0,
        }
    }

    /// Reads one packet into `buffer`; `None`: none is there.
    ///
    /// `wall` is the wall clock (since 1970) to which the kernel's time of receipt is compared.
    pub fn receive(&self, buffer: &mut [u8], wall: Duration) -> io::Result<Option<Received>> {
        let result = match self.kind {
            Kind::Packet => sys::receive_with_time(self.file.as_fd(), buffer, wall),
            Kind::Tun => io::Read::read(&mut &self.file, buffer)
                .map(|length| Received { length, age: Duration::ZERO }),
        };
        match result {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes one frame.
    pub fn send(&self, frame: &Frame) -> Sent {
        let [head, body] = frame.parts();
        let parts = [IoSlice::new(head), IoSlice::new(body)];
        let used = if head.is_empty() { &parts[1..] } else { &parts[..] };
        match (&self.file).write_vectored(used) {
            // A frame is taken whole or not at all.
            Ok(written) if written == head.len() + body.len() => Sent::Taken,
            _ => Sent::Refused,
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
