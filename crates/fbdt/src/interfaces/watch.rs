//! News of interfaces, addresses and routes, from rtnetlink.

use std::io;
use std::time::Duration;

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};

/// Multicast groups of linux/rtnetlink.h: links, IPv4 and IPv6 addresses and routes.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// Changes come in bursts; they are looked at together.
const SETTLE: Duration = Duration::from_millis(20);

/// How often to look where the kernel tells no news.
const FALLBACK: Duration = Duration::from_secs(2);

/// Tells when interfaces, addresses or routes may have changed. What changed is read from the system
/// afterwards, so that a lost message costs nothing.
pub(crate) struct InterfaceWatch {
    socket: Option<TokioSocket>,
}

impl InterfaceWatch {
    /// Starts watching; where rtnetlink cannot be used, looks every two seconds instead.
    pub(crate) fn start() -> Self {
        let socket = open()
            .inspect_err(|error| tracing::warn!(%error, "no rtnetlink: interfaces are polled"))
            .ok();
        Self { socket }
    }

    /// Waits until something may have changed.
    pub(crate) async fn changed(&mut self) {
        let Some(socket) = &mut self.socket else {
            return tokio::time::sleep(FALLBACK).await;
        };
        match socket.recv_from_full().await {
            // Overflow means that news were lost: look.
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => {}
            Err(error) => {
                tracing::warn!(%error, "rtnetlink failed: interfaces are polled");
                self.socket = None;
            }
        }
        self.settle().await;
    }

    async fn settle(&mut self) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        let quiet = tokio::time::sleep(SETTLE);
        tokio::pin!(quiet);
        loop {
            tokio::select! {
                () = &mut quiet => return,
                news = socket.recv_from_full() => if news.is_err() { return },
            }
        }
    }
}

fn open() -> io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    socket.socket_mut().bind(&SocketAddr::new(0, GROUPS))?;
    Ok(socket)
}
