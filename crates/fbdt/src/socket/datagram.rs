//! UDP sockets for probes of paths: the server's answers from the address that was asked.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::{LocalBinding, SocketError, SocketOptions, bind, option_error};

/// A server's socket; a machine may have several addresses.
pub(crate) struct EchoSocket(UdpSocket);

/// Who sent a datagram, and to which address of this machine.
pub(crate) struct Asker {
    peer: SockaddrStorage,
    own: Option<ControlMessageOwned>,
}

/// A client's socket for probes of one path.
pub(crate) fn probing(
    local: &LocalBinding,
    remote: SocketAddr,
    mark: Option<u32>,
) -> Result<UdpSocket, SocketError> {
    let socket = new_socket(remote, mark)?;
    bind(&socket, local, remote)?;
    socket.connect(&remote.into()).map_err(|source| SocketError::Connect { remote, source })?;
    UdpSocket::from_std(socket.into()).map_err(SocketError::Create)
}

fn new_socket(peer: SocketAddr, mark: Option<u32>) -> Result<Socket, SocketError> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP))
        .map_err(SocketError::Create)?;
    socket.set_nonblocking(true).map_err(SocketError::Create)?;
    if let Some(mark) = mark {
        socket.set_mark(mark).map_err(option_error("SO_MARK"))?;
    }
    Ok(socket)
}

impl EchoSocket {
    /// Takes datagrams at `address`.
    pub(crate) fn bind(address: SocketAddr, options: &SocketOptions) -> Result<Self, SocketError> {
        let socket = new_socket(address, options.mark)?;
        let told = match address.ip() {
            IpAddr::V4(_) => setsockopt(&socket, Ipv4PacketInfo, &true),
            IpAddr::V6(_) => setsockopt(&socket, Ipv6RecvPacketInfo, &true),
        };
        told.map_err(|error| option_error("PKTINFO")(error.into()))?;
        if address.is_ipv6() {
            SockRef::from(&socket).set_only_v6(true).map_err(option_error("IPV6_V6ONLY"))?;
        }
        let failed = |source| SocketError::Address { address, source };
        socket.bind(&address.into()).map_err(failed)?;
        Ok(Self(UdpSocket::from_std(socket.into()).map_err(SocketError::Create)?))
    }

    #[cfg(test)]
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// The next datagram: its length, which may be larger than the buffer, and who sent it.
    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Asker)> {
        self.0.async_io(Interest::READABLE, || self.try_receive(buffer)).await
    }

    fn try_receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Asker)> {
        let mut space = nix::cmsg_space!(libc::in_pktinfo, libc::in6_pktinfo);
        let mut parts = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_TRUNC;
        let message =
            recvmsg::<SockaddrStorage>(self.0.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let own = message.cmsgs().ok().and_then(|mut messages| messages.next());
        let peer = message.address.ok_or_else(|| io::Error::other("a datagram of nobody"))?;
        Ok((message.bytes, Asker { peer, own }))
    }

    /// Answers; what cannot be sent now is dropped.
    pub(crate) fn answer(&self, bytes: &[u8], asker: &Asker) -> io::Result<()> {
        let (mut v4, mut v6) = (None, None);
        match asker.own {
            Some(ControlMessageOwned::Ipv4PacketInfo(info)) => {
                let ipi_spec_dst = info.ipi_addr;
                v4 = Some(libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ..info });
            }
            // Link-local addresses need their interface.
            Some(ControlMessageOwned::Ipv6PacketInfo(info)) => v6 = Some(info),
            _ => {}
        }
        let v4 = v4.as_ref().map(ControlMessage::Ipv4PacketInfo);
        let v6 = v6.as_ref().map(ControlMessage::Ipv6PacketInfo);
        let from: Vec<ControlMessage<'_>> = v4.into_iter().chain(v6).collect();
        let parts = [IoSlice::new(bytes)];
        let flags = MsgFlags::empty();
        sendmsg(self.0.as_raw_fd(), &parts, &from, flags, Some(&asker.peer))?;
        Ok(())
    }
}
