//! Addresses as the system calls take them.
#![allow(unsafe_code)] // sockaddr is read and written through raw pointers, as its callers pass it

use std::mem::{offset_of, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{AF_INET, AF_INET6, c_int, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// Longest address of these families, in bytes.
pub(crate) const LONGEST: usize = size_of::<sockaddr_in6>();

/// An address as a program gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawAddress {
    pub(crate) bytes: [u8; LONGEST],
    pub(crate) length: usize,
}

impl RawAddress {
    /// Copies the address of an IPv4 or IPv6 connection; `None` for every other one.
    ///
    /// # Safety
    /// `address` is null or points to `length` readable bytes.
    pub(crate) unsafe fn read(address: *const sockaddr, length: socklen_t) -> Option<Self> {
        let length = length as usize;
        if address.is_null() || length < size_of::<libc::sa_family_t>() {
            return None;
        }
        // SAFETY: the caller's promise, and the family is within `length`; it need not be aligned.
        let family = c_int::from(unsafe { address.cast::<libc::sa_family_t>().read_unaligned() });
        let wanted = match family {
            AF_INET => size_of::<sockaddr_in>(),
            AF_INET6 => size_of::<sockaddr_in6>(),
            _ => return None,
        };
        // Without the scope, an IPv6 address is as long as RFC 2133 had it; the kernel takes that, too.
        let least =
            if family == AF_INET6 { offset_of!(sockaddr_in6, sin6_scope_id) } else { wanted };
        if length < least {
            return None;
        }
        let mut bytes = [0; LONGEST];
        let given = length.min(wanted);
        // SAFETY: so many bytes are readable as checked, and fit into `bytes`.
        unsafe { std::ptr::copy_nonoverlapping(address.cast(), bytes.as_mut_ptr(), given) };
        Some(Self { bytes, length: wanted })
    }

    /// Address and port.
    pub(crate) fn socket_address(&self) -> SocketAddr {
        let part = |at: usize| self.bytes.get(at..);
        let port = part(offset_of!(sockaddr_in, sin_port)).and_then(|b| b.first_chunk().copied());
        let ip = if self.length == size_of::<sockaddr_in>() {
            let at = part(offset_of!(sockaddr_in, sin_addr));
            IpAddr::V4(Ipv4Addr::from(
                at.and_then(|b| b.first_chunk::<4>().copied()).unwrap_or([0; 4]),
            ))
        } else {
            let at = part(offset_of!(sockaddr_in6, sin6_addr));
            let octets = at.and_then(|b| b.first_chunk::<16>().copied()).unwrap_or([0; 16]);
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        SocketAddr::new(ip, u16::from_be_bytes(port.unwrap_or([0; 2])))
    }

    /// Writes the address as `getpeername` does: as much as fits, and how long it is.
    ///
    /// # Safety
    /// `length` points to a number and `address` to that many writable bytes.
    pub(crate) unsafe fn write(&self, address: *mut sockaddr, length: *mut socklen_t) {
        // SAFETY: the caller's promise; no more is written than there is room for.
        unsafe {
            let room = (*length as usize).min(self.length);
            std::ptr::copy_nonoverlapping(self.bytes.as_ptr(), address.cast(), room);
            *length = self.length as socklen_t;
        }
    }
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        let mut raw = Self { bytes: [0; LONGEST], length: 0 };
        let mut put = |at: usize, part: &[u8]| {
            for (to, from) in raw.bytes.iter_mut().skip(at).zip(part) {
                *to = *from;
            }
        };
        let port = address.port().to_be_bytes();
        match address {
            SocketAddr::V4(v4) => {
                put(offset_of!(sockaddr_in, sin_family), &(AF_INET as u16).to_ne_bytes());
                put(offset_of!(sockaddr_in, sin_port), &port);
                put(offset_of!(sockaddr_in, sin_addr), &v4.ip().octets());
                raw.length = size_of::<sockaddr_in>();
            }
            SocketAddr::V6(v6) => {
                put(offset_of!(sockaddr_in6, sin6_family), &(AF_INET6 as u16).to_ne_bytes());
                put(offset_of!(sockaddr_in6, sin6_port), &port);
                put(offset_of!(sockaddr_in6, sin6_addr), &v6.ip().octets());
                raw.length = size_of::<sockaddr_in6>();
            }
        }
        raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_both_ways() {
        for text in ["192.0.2.1:80", "[2001:db8::1]:443", "[::ffff:192.0.2.1]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            let raw = RawAddress::from(address);
            assert_eq!(raw.socket_address(), address);
            let pointer = raw.bytes.as_ptr().cast();
            // SAFETY: the bytes live on this stack.
            let read = unsafe { RawAddress::read(pointer, raw.length as socklen_t) };
            assert_eq!(read, Some(raw));
            let least = if address.is_ipv6() { 24 } else { 16 };
            // SAFETY: as above.
            unsafe {
                assert_eq!(RawAddress::read(pointer, least), Some(raw));
                assert_eq!(RawAddress::read(pointer, least - 1), None);
            }
        }
        let unix = [1_u8, 0, b'/', 0];
        // SAFETY: the bytes live on this stack.
        assert_eq!(unsafe { RawAddress::read(unix.as_ptr().cast(), 4) }, None);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { RawAddress::read(std::ptr::null(), 16) }, None);
    }

    #[test]
    fn a_short_buffer_gets_as_much_as_fits() {
        let raw = RawAddress::from("192.0.2.1:80".parse::<SocketAddr>().unwrap());
        let (mut buffer, mut length) = ([0xee_u8; 16], 4);
        // SAFETY: four bytes are writable.
        unsafe { raw.write(buffer.as_mut_ptr().cast(), &raw mut length) };
        assert_eq!((length, buffer[3], buffer[4]), (16, 80, 0xee));
    }
}
