//! A TUN interface with `IFF_VNET_HDR` and segmentation offload: the kernel hands over super-packets.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use super::sys;
use super::{Device, DeviceError, Kind};

/// Makes the interface in the calling thread's network namespace; it disappears when the device is closed.
pub fn open(interface: &str) -> Result<Device, DeviceError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
        .map_err(|source| DeviceError::Tun { source })?;
    let descriptor = OwnedFd::from(file);
    let fail = |operation| move |source: io::Error| DeviceError::new(operation, interface, source);
    sys::attach_tun(&descriptor, interface).map_err(fail("making a TUN interface"))?;
    sys::enable_tun_offload(&descriptor).map_err(fail("enabling TSO"))?;
    Ok(Device::new(descriptor, Kind::Tun))
}
