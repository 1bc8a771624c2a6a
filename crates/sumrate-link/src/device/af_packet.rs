//! A packet socket with `PACKET_VNET_HDR`: super-packets pass whole, with their checksums still to be made.

use super::sys;
use super::{Device, DeviceError, Kind};

/// Receive buffer asked for; without CAP_NET_ADMIN in the first namespace the system's limit applies.
const RECEIVE_BUFFER: i32 = 64 << 20;
const SEND_BUFFER: i32 = 64 << 20;

/// Opens a socket on the emulator's own end of a veth pair.
pub fn open(interface: &str) -> Result<Device, DeviceError> {
    let fail = |operation| move |source| DeviceError::new(operation, interface, source);
    // Protocol 0 receives nothing until the socket is bound, so nothing arrives without a vnet header.
    let socket = sys::packet_socket().map_err(fail("opening a packet socket"))?;
    for (operation, level, name, value) in [
        ("PACKET_VNET_HDR", libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1),
        ("PACKET_IGNORE_OUTGOING", libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1),
        ("SO_TIMESTAMPNS", libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1),
    ] {
        sys::set_option(&socket, level, name, value).map_err(fail(operation))?;
    }
    for (force, plain, size) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER),
    ] {
        if sys::set_option(&socket, libc::SOL_SOCKET, force, size).is_err() {
            sys::set_option(&socket, libc::SOL_SOCKET, plain, size).map_err(fail("SO_RCVBUF"))?;
        }
    }
    sys::bind_packet_socket(&socket, interface).map_err(fail("binding a packet socket"))?;
    Ok(Device::new(socket, Kind::Packet))
}
