//! Socket options that every socket of this program gets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::libc;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A silent peer is probed after this time, so that a vanished one does not hold a stream for ever.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Bytes that the peer of a connection within this machine may send before they are read.
const HELD: u32 = 256 << 10;

/// Connects with the options set before the handshake.
///
/// # Errors
/// What the system says, among it that the kernel lacks the congestion control.
pub async fn connect(target: SocketAddr, congestion_control: &str) -> io::Result<TcpStream> {
    let socket = if target.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    set_options(&SockRef::from(&socket), congestion_control)?;
    socket.connect(target).await
}

/// Listens; accepted sockets inherit the options.
///
/// # Errors
/// What the system says: address in use, not this machine's, port below 1024 without privilege.
pub fn listen(address: SocketAddr, congestion_control: &str) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    set_options(&SockRef::from(&socket), congestion_control)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}

/// Sets the options again on an accepted socket: not every kernel passes all of them on.
pub fn tune_accepted(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
}

/// Bounds what may wait in the kernel for this program to read it, where the peer is on this machine.
/// A window that follows the peer's rate grows to megabytes, and when a session is what limits, all
/// that an application writes stands in it first. Between two machines the kernel's choice stays:
/// a bound would be one on the rate, too.
pub fn hold_little(stream: &TcpStream) {
    let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return };
    let (local, peer) = (local.ip().to_canonical(), peer.ip().to_canonical());
    if local == peer || local.is_loopback() || peer.is_loopback() {
        // The first alone leaves older kernels with the window of the handshake, the second alone with
        // one that grows again.
        let _ = SockRef::from(stream).set_recv_buffer_size(HELD as usize);
        let _ = clamp_window(stream, HELD as libc::c_int);
    }
}

/// Sets `TCP_WINDOW_CLAMP` (tcp(7)).
#[allow(unsafe_code)] // no crate here offers it
fn clamp_window(stream: &TcpStream, bytes: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer and length describe an int that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_options(socket: &SockRef<'_>, congestion_control: &str) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_congestion(congestion_control.as_bytes())?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE))
}

/// Makes the socket's close a reset, so that the peer sees a failure and no end of data.
pub fn reset_on_close(stream: &impl AsFd) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Undoes [`reset_on_close`]: what was written still reaches the peer.
pub fn deliver_on_close(stream: &impl AsFd) {
    let _ = SockRef::from(stream).set_linger(None);
}

/// Why a congestion control cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CongestionRefusal {
    /// The kernel does not have it; these it has.
    Unknown(String),
    /// The kernel has it, but not for this process; these it may use.
    NotPermitted(String),
}

/// Whether this process can have the congestion control.
///
/// # Errors
/// Why not.
pub fn check_congestion_control(name: &str) -> Result<(), CongestionRefusal> {
    let setting = |key: &str| {
        let path = format!("/proc/sys/net/ipv4/tcp_{key}_congestion_control");
        std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
    };
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .and_then(|socket| socket.set_tcp_congestion(name.as_bytes()))
        .map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => CongestionRefusal::NotPermitted(setting("allowed")),
            _ => CongestionRefusal::Unknown(setting("available")),
        })
}

/// The kernel's own choice, which every process may use.
pub fn default_congestion_control() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")
        .map(|name| name.trim().to_owned())
        .unwrap_or_else(|_| "reno".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn congestion_control_and_nodelay_are_set_on_both_ends() {
        let listener = listen("127.0.0.1:0".parse().unwrap(), "cubic").unwrap();
        let dialled = connect(listener.local_addr().unwrap(), "cubic").await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        tune_accepted(&accepted);
        for stream in [&dialled, &accepted] {
            assert!(stream.nodelay().unwrap());
            let name = SockRef::from(stream).tcp_congestion().unwrap();
            assert!(name.starts_with(b"cubic"));
        }
    }

    #[tokio::test]
    async fn little_waits_to_be_read_of_a_connection_within_this_machine() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = listen("127.0.0.1:0".parse().unwrap(), "cubic").unwrap();
        let mut dialled = connect(listener.local_addr().unwrap(), "cubic").await.unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        hold_little(&accepted);
        // A reader as fast as its peer makes the kernel widen a window that it is left.
        let mut piece = vec![0; 64 << 10];
        for _ in 0..1024 {
            dialled.write_all(&piece).await.unwrap();
            accepted.read_exact(&mut piece).await.unwrap();
        }
        let size = SockRef::from(&accepted).recv_buffer_size().unwrap();
        assert!(size <= 2 * HELD as usize, "{size}");
    }

    #[test]
    fn unknown_algorithms_are_told_apart() {
        assert!(check_congestion_control(&default_congestion_control()).is_ok());
        let refusal = check_congestion_control("nonsense").unwrap_err();
        assert!(matches!(refusal, CongestionRefusal::Unknown(known) if known.contains("reno")));
    }
}
