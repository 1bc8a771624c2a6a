//! TCP sockets as FBDT wants them: bound to a path, tuned, and ready to be asked for TCP_INFO.

mod congestion;
mod coupling;
mod datagram;
mod pacing;
mod tcp_info;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

pub use congestion::{CongestionControl, ParseCongestionControlError};
pub use coupling::Coupling;
pub(crate) use coupling::SessionSockets;
pub(crate) use datagram::{EchoSocket, probing};
pub(crate) use tcp_info::TcpInfo;

/// Unsent bytes above which a socket is not writable (F7: what the kernel holds is beyond recall).
const NOTSENT_LOWAT: u32 = 128 * 1024;

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 1024;

/// Where a path's sockets leave this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum LocalBinding {
    /// Wherever the routing table says.
    #[default]
    Any,
    /// Through this interface (SO_BINDTODEVICE).
    Interface(String),
    /// With this source address.
    Address(IpAddr),
}

/// What every socket of a client or server is given.
#[derive(Debug, Clone, Default)]
pub(crate) struct SocketOptions {
    pub(crate) congestion_control: CongestionControl,
    /// SO_MARK, so that policy routing can tell these sockets apart.
    pub(crate) mark: Option<u32>,
}

/// A socket could not be made as asked for.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The interface cannot be used.
    #[error(
        "cannot bind to interface `{interface}`: {source}; check that it exists (`ip link`), kernels before 5.7 need CAP_NET_RAW"
    )]
    Interface {
        /// Its name.
        interface: String,
        /// The reason.
        source: io::Error,
    },
    /// The local address cannot be used.
    #[error(
        "cannot bind to {address}: {source}; check that this machine has the address (`ip address`) and that the port is free"
    )]
    Address {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The local and the remote address are not of one family.
    #[error("local address {local} cannot reach {remote}: one is IPv4, the other IPv6")]
    Family {
        /// The path's source address.
        local: IpAddr,
        /// The server.
        remote: SocketAddr,
    },
    /// The congestion control is not to be had.
    #[error(
        "congestion control `{algorithm}` is refused: {source}; the kernel offers: {offered} (others may need CAP_NET_ADMIN or a module)"
    )]
    CongestionControl {
        /// Its name.
        algorithm: String,
        /// net.ipv4.tcp_available_congestion_control.
        offered: String,
        /// The reason.
        source: io::Error,
    },
    /// An option was refused.
    #[error("cannot set {option}: {source}")]
    Option {
        /// Its name.
        option: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// No socket could be made.
    #[error("cannot make a TCP socket: {0}; check the limit of open files (`ulimit -n`)")]
    Create(io::Error),
    /// The connection failed.
    #[error("cannot connect to {remote}: {source}")]
    Connect {
        /// The server.
        remote: SocketAddr,
        /// The reason.
        source: io::Error,
    },
}

fn option_error(option: &'static str) -> impl FnOnce(io::Error) -> SocketError {
    move |source| SocketError::Option { option, source }
}

/// Connects to `remote` from `local`, all options set before the first packet.
pub(crate) async fn connect(
    local: &LocalBinding,
    remote: SocketAddr,
    options: &SocketOptions,
) -> Result<TcpStream, SocketError> {
    let socket = new_socket(remote)?;
    tune(&SockRef::from(&socket), options)?;
    bind(&socket, local, remote)?;
    TcpSocket::from_std_stream(socket.into())
        .connect(remote)
        .await
        .map_err(|source| SocketError::Connect { remote, source })
}

/// Sets the options of an accepted socket.
pub(crate) fn accepted(stream: &TcpStream, options: &SocketOptions) -> Result<(), SocketError> {
    tune(&SockRef::from(stream), options)
}

/// Paces a connected socket, unless its RTT is too short to need it.
pub(crate) fn pace(stream: &TcpStream) -> Result<(), SocketError> {
    let rtt = TcpInfo::of(stream).map_err(option_error("TCP_INFO"))?.min_rtt();
    pacing::turn_on_for(stream, rtt).map_err(option_error("SO_MAX_PACING_RATE"))
}

/// Listens on `address`; accepted sockets inherit the congestion control.
pub(crate) fn listen(
    address: SocketAddr,
    options: &SocketOptions,
) -> Result<TcpListener, SocketError> {
    let socket = new_socket(address)?;
    tune(&SockRef::from(&socket), options)?;
    socket.set_reuse_address(true).map_err(option_error("SO_REUSEADDR"))?;
    if address.is_ipv6() {
        socket.set_only_v6(true).map_err(option_error("IPV6_V6ONLY"))?;
    }
    let failed = |source| SocketError::Address { address, source };
    socket.bind(&address.into()).map_err(failed)?;
    socket.listen(BACKLOG).map_err(failed)?;
    TcpListener::from_std(socket.into()).map_err(SocketError::Create)
}

/// Sets the options that hold before and after a connection is there.
fn tune(socket: &SockRef<'_>, options: &SocketOptions) -> Result<(), SocketError> {
    set_congestion_control(socket, options.congestion_control.algorithm())?;
    socket.set_tcp_nodelay(true).map_err(option_error("TCP_NODELAY"))?;
    socket.set_tcp_notsent_lowat(NOTSENT_LOWAT).map_err(option_error("TCP_NOTSENT_LOWAT"))?;
    if let Some(mark) = options.mark {
        socket.set_mark(mark).map_err(option_error("SO_MARK"))?;
    }
    Ok(())
}

/// Sets or changes the congestion control.
pub(crate) fn set_congestion_control(
    socket: &SockRef<'_>,
    algorithm: &str,
) -> Result<(), SocketError> {
    socket.set_tcp_congestion(algorithm.as_bytes()).map_err(|source| {
        SocketError::CongestionControl {
            algorithm: algorithm.to_owned(),
            offered: congestion::offered(),
            source,
        }
    })
}

/// Makes closing a reset: what the socket still holds is never sent (F9b).
pub(crate) fn reset_on_close(stream: &TcpStream) {
    // A socket that refuses the option is closed in the ordinary way.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

fn new_socket(peer: SocketAddr) -> Result<Socket, SocketError> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))
        .map_err(SocketError::Create)?;
    socket.set_nonblocking(true).map_err(SocketError::Create)?;
    Ok(socket)
}

fn bind(socket: &Socket, local: &LocalBinding, remote: SocketAddr) -> Result<(), SocketError> {
    match local {
        LocalBinding::Any => Ok(()),
        LocalBinding::Interface(interface) => socket
            .bind_device(Some(interface.as_bytes()))
            .map_err(|source| SocketError::Interface { interface: interface.clone(), source }),
        LocalBinding::Address(local) if local.is_ipv4() != remote.is_ipv4() => {
            Err(SocketError::Family { local: *local, remote })
        }
        LocalBinding::Address(local) => {
            let address = SocketAddr::new(*local, 0);
            socket.bind(&address.into()).map_err(|source| SocketError::Address { address, source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(name: &str) -> SocketOptions {
        SocketOptions { congestion_control: name.parse().unwrap(), mark: None }
    }

    #[tokio::test]
    async fn sockets_of_both_ends_have_their_options() {
        let listener = listen(([127, 0, 0, 1], 0).into(), &options("reno")).unwrap();
        let local = LocalBinding::Address([127, 0, 0, 2].into());
        let remote = listener.local_addr().unwrap();
        let plain = SocketOptions::default();
        let (client, accepted) = tokio::join!(connect(&local, remote, &plain), listener.accept());
        let (client, (server, from)) = (client.unwrap(), accepted.unwrap());
        assert_eq!(from.ip(), IpAddr::from([127, 0, 0, 2]));
        let algorithm = |stream: &TcpStream| SockRef::from(stream).tcp_congestion().unwrap();
        assert!(algorithm(&client).starts_with(b"cubic"));
        assert!(algorithm(&server).starts_with(b"reno"));
        let lowat = SockRef::from(&client).tcp_notsent_lowat().unwrap();
        assert_eq!(lowat, NOTSENT_LOWAT);
    }

    #[tokio::test]
    async fn sockets_are_paced_unless_the_rtt_is_short() {
        let listener = listen(([127, 0, 0, 1], 0).into(), &SocketOptions::default()).unwrap();
        let remote = listener.local_addr().unwrap();
        let stream = TcpStream::connect(remote).await.unwrap();
        let paced = || TcpInfo::of(&stream).unwrap().is_paced();
        pacing::turn_on_for(&stream, Duration::from_micros(999)).unwrap();
        assert!(!paced());
        pacing::turn_on_for(&stream, Duration::from_millis(1)).unwrap();
        assert!(paced());
    }

    #[tokio::test]
    async fn an_unknown_algorithm_is_refused_with_the_kernels_list() {
        let error = listen(([127, 0, 0, 1], 0).into(), &options("nosuch")).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("nosuch") && message.contains("cubic"), "{message}");
    }

    #[tokio::test]
    async fn an_unknown_interface_is_named() {
        let local = LocalBinding::Interface("nosuch0".into());
        let remote = ([127, 0, 0, 1], 9).into();
        let error = connect(&local, remote, &SocketOptions::default()).await;
        assert!(error.unwrap_err().to_string().contains("nosuch0"));
    }
}
