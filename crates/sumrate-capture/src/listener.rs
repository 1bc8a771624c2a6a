//! Accepts connections that rules led here, and finds out where they were meant to go.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::errno::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::families::listen_on_both;
use crate::guardian::CaptureError;
use crate::rules::Method;
use crate::tun::Device;

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 1024;
const ACTION: &str = "listen for taken connections";

/// A listener on a loopback address for what is taken.
#[derive(Debug)]
pub struct CaptureListener {
    listener: TcpListener,
    own: SocketAddr,
    /// The kernel changed the destination, and knows what it was.
    redirected: bool,
}

impl CaptureListener {
    /// Listens on free ports of 127.0.0.1 and, unless this machine has no IPv6, ::1.
    ///
    /// # Errors
    /// [`CaptureError`]: no listener for a family that is in use.
    pub fn bind_both(method: &Method) -> Result<[Option<Self>; 2], CaptureError> {
        listen_on_both(ACTION, |ipv6| Self::bind(method, ipv6))
    }

    /// Listens for connections that are redirected beside `device`; without IPv6 where that has none.
    ///
    /// # Errors
    /// [`CaptureError`]: no listener for a family that is in use.
    pub fn bind_beside(device: &Device) -> Result<[Option<Self>; 2], CaptureError> {
        listen_on_both(ACTION, |ipv6| match ipv6 && device.is_without_ipv6() {
            true => Err(Errno::EADDRNOTAVAIL.into()),
            false => Self::bind(&Method::Redirect, ipv6),
        })
    }

    /// Listens on a free port of 127.0.0.1, or ::1 with `ipv6`.
    ///
    /// # Errors
    /// What the system says: no IPv6 here, or for TPROXY no CAP_NET_ADMIN.
    fn bind(method: &Method, ipv6: bool) -> io::Result<Self> {
        let address = match ipv6 {
            false => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            true => SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
        };
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        if ipv6 {
            socket.set_only_v6(true)?;
        }
        let redirected = *method == Method::Redirect;
        if !redirected {
            // A transparent socket gets any address: an ordinary one finds out whether it is there.
            std::net::UdpSocket::bind(address)?;
        }
        match (redirected, ipv6) {
            (true, _) => {}
            (false, false) => socket.set_ip_transparent_v4(true)?,
            (false, true) => socket.set_ip_transparent_v6(true)?,
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let listener = TcpListener::from_std(socket.into())?;
        let own = listener.local_addr()?;
        Ok(Self { listener, own, redirected })
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.own.port()
    }

    /// The next connection, and where it was meant to go. One that was meant for this listener itself,
    /// which would lead to itself, is closed.
    ///
    /// # Errors
    /// What the system says.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match self.destination(&stream) {
                Ok(destination) if destination != self.own => return Ok((stream, destination)),
                Ok(_) => tracing::debug!("somebody connected to the listener itself"),
                Err(error) => tracing::debug!(%error, "a connection without a destination"),
            }
        }
    }

    fn destination(&self, stream: &TcpStream) -> io::Result<SocketAddr> {
        if !self.redirected {
            return stream.local_addr();
        }
        let socket = SockRef::from(stream);
        let found = match self.own {
            SocketAddr::V4(_) => socket.original_dst_v4()?,
            SocketAddr::V6(_) => socket.original_dst_v6()?,
        };
        found.as_socket().ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_to_the_listener_itself_is_closed() {
        let listener = CaptureListener::bind(&Method::Redirect, false).unwrap();
        let port = listener.port();
        let client = tokio::spawn(async move {
            use tokio::io::AsyncReadExt;
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.read(&mut [0; 1]).await
        });
        tokio::select! {
            taken = listener.accept() => panic!("taken: {taken:?}"),
            ended = client => assert!(matches!(ended.unwrap(), Ok(0) | Err(_))),
        }
    }
}
