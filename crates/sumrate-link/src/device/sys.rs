//! The system calls that no safe wrapper offers. The only unsafe code of this crate.
#![allow(unsafe_code)]

use std::ffi::{CString, c_int, c_uint, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::Received;
use crate::packet::vnet::VNET_HEADER;

const TUN_F_CSUM: c_uint = 0x01;
const TUN_F_TSO4: c_uint = 0x02;
const TUN_F_TSO6: c_uint = 0x04;
const TUN_F_TSO_ECN: c_uint = 0x08;
const TUN_F_USO4: c_uint = 0x20;
const TUN_F_USO6: c_uint = 0x40;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// An unbound, non-blocking packet socket.
pub(super) fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: plain system call without pointers.
    let descriptor = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Sets an option that is an int.
pub(super) fn set_option(
    socket: &OwnedFd,
    level: c_int,
    name: c_int,
    value: c_int,
) -> io::Result<()> {
    let size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: `value` lives through the call and `size` is its size.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast::<c_void>(), size)
    })
    .map(drop)
}

/// Binds a packet socket to all protocols of one interface.
pub(super) fn bind_packet_socket(socket: &OwnedFd, interface: &str) -> io::Result<()> {
    let name = CString::new(interface)?;
    // SAFETY: `name` is a C string that lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zeroes is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = c_int::try_from(index).unwrap_or(c_int::MAX);
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` lives through the call and `size` is its size.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) }).map(drop)
}

/// The length's type in a message header is the C library's choice, wider than this.
const CONTROL_BYTES: u8 = 64;

/// Room for one timestamp control message, aligned as control messages must be.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES as usize]);

/// Reads one packet and the kernel's time of receipt.
pub(super) fn receive_with_time(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    wall: Duration,
) -> io::Result<Received> {
    let mut control = Control([0; CONTROL_BYTES as usize]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeroes is a valid msghdr.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES.into();
    // SAFETY: `message` points to `part`, `buffer` and `control`, which live through the call and are exclusively ours.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let Ok(length) = usize::try_from(length) else {
        return Err(io::Error::last_os_error());
    };
    Ok(Received {
        length,
        age: timestamp(&message).map_or(Duration::ZERO, |received| wall.saturating_sub(received)),
    })
}

/// The SCM_TIMESTAMPNS message of a filled message header, as time since 1970.
fn timestamp(message: &libc::msghdr) -> Option<Duration> {
    // SAFETY: the kernel has filled the control buffer that `message` points to.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if header.cmsg_level != libc::SOL_SOCKET || header.cmsg_type != libc::SCM_TIMESTAMPNS {
        return None;
    }
    // SAFETY: a message of this type carries one timespec; the read tolerates any alignment.
    let time: libc::timespec =
        unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

/// Makes the TUN interface `interface` and attaches the descriptor to it.
pub(super) fn attach_tun(tun: &OwnedFd, interface: &str) -> io::Result<()> {
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (target, byte) in request.ifr_name.iter_mut().take(15).zip(interface.bytes()) {
        *target = byte as libc::c_char;
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which lives through the call.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    let size = VNET_HEADER as c_int;
    // SAFETY: TUNSETVNETHDRSZ reads one int, which lives through the call.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const size) }).map(drop)
}

/// Lets the kernel hand over super-packets; UDP segmentation too where the kernel knows it.
pub(super) fn enable_tun_offload(tun: &OwnedFd) -> io::Result<()> {
    let tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    let all = tcp | TUN_F_USO4 | TUN_F_USO6;
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    let set = |flags: c_uint| {
        check(unsafe {
            libc::ioctl(tun.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags))
        })
    };
    set(all).or_else(|_| set(tcp)).map(drop)
}

#[repr(C)]
struct SchedulerAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    clamp_min: u32,
    clamp_max: u32,
}

impl SchedulerAttributes {
    const NEW: SchedulerAttributes = SchedulerAttributes {
        size: size_of::<SchedulerAttributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: 0,
        deadline: 0,
        period: 0,
        clamp_min: 0,
        clamp_max: 0,
    };
}

/// Asks the scheduler to bring this thread on as soon as it wakes.
///
/// Turns of 0.1 ms, which need no privilege and which a kernel before 6.12 ignores. Real-time
/// priority was tried: on two cores it takes the processor from the hosts under test at the wrong
/// moments and is hardly more punctual.
pub fn request_prompt_scheduling() {
    // Refused: nothing is lost but promptness, which is measured.
    let _ = set_scheduler(&SchedulerAttributes { runtime: 100_000, ..SchedulerAttributes::NEW });
}

fn set_scheduler(attributes: &SchedulerAttributes) -> io::Result<()> {
    // SAFETY: sched_setattr reads one structure of the size that it states, which lives through the call.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
