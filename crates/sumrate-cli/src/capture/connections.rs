//! Relays what listeners take.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sumrate_capture::guardian::{CaptureError, Method};
use sumrate_capture::listener::CaptureListener;
use sumrate_capture::tun::{Device, Tun};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::datagrams::{DNS_PORT, Outlet};
use crate::classes::{ClassRules, Guess};
use crate::exit::Allowance;
use crate::proxy::connect_as;
use crate::relay::relay;
use crate::socket;
use crate::tunnel::Tunnel;

/// Pause after the system refused to accept (no file descriptor left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listeners for IPv4 and, where this machine has it, IPv6.
type Listeners = [Option<CaptureListener>; 2];

/// Where taken connections come from.
pub(crate) struct Source {
    /// Rules lead connections to these.
    taken: Listeners,
    /// Questions over TCP, which are redirected; none where `taken` are what redirection leads to.
    questions: Listeners,
    /// The device that datagrams come out of, and its name.
    device: Option<(Tun, String)>,
}

impl Source {
    /// Listens on free ports for what the rules of this method will lead there. With `dns` that is also
    /// questions to name servers.
    ///
    /// # Errors
    /// [`CaptureError`]
    pub(crate) fn rules(method: &Method, dns: bool) -> Result<Self, CaptureError> {
        let taken = CaptureListener::bind_both(method)?;
        let wanted = dns && *method != Method::Redirect;
        Ok(Self { taken, questions: questions(wanted)?, device: None })
    }

    /// Listens on free ports for what is redirected, and takes datagrams out of a device.
    ///
    /// # Errors
    /// [`CaptureError`]
    pub(crate) fn tun(device: Device) -> Result<Self, CaptureError> {
        let (taken, name) = (CaptureListener::bind_beside(&device)?, device.name().to_owned());
        let failed = |error| CaptureError::System { action: "use the TUN device", error };
        let tun = Tun::new(device).map_err(failed)?;
        Ok(Self { taken, questions: [None, None], device: Some((tun, name)) })
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        tokio::select! {
            accepted = accept(&self.taken) => accepted,
            accepted = accept(&self.questions) => accepted,
        }
    }

    /// Ports of the listeners, 0 where there is none.
    fn ports(&self) -> [u16; 2] {
        ports(&self.taken)
    }

    /// Ports for questions over TCP, 0 where there is none.
    fn question_ports(&self) -> [u16; 2] {
        match &self.questions {
            [None, None] => ports(&self.taken),
            questions => ports(questions),
        }
    }
}

fn questions(wanted: bool) -> Result<Listeners, CaptureError> {
    if wanted { CaptureListener::bind_both(&Method::Redirect) } else { Ok([None, None]) }
}

fn ports(listeners: &Listeners) -> [u16; 2] {
    listeners.each_ref().map(|listener| listener.as_ref().map_or(0, CaptureListener::port))
}

/// Taken connections.
pub(crate) struct Connections {
    source: Source,
    connections: Arc<Semaphore>,
    taken: Arc<AtomicU64>,
    name_server: Option<SocketAddr>,
    /// What is under way for datagrams that came out of a device.
    datagrams: TaskTracker,
    stop: CancellationToken,
    finished: CancellationToken,
}

impl Connections {
    /// At most `connections` at a time; neither more of them nor datagrams once `stop` is cancelled. What
    /// was meant for a name server goes to `name_server`, if there is one.
    pub(crate) fn new(
        source: Source,
        connections: u32,
        name_server: Option<SocketAddr>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            source,
            connections: Arc::new(Semaphore::new(connections as usize)),
            taken: Arc::default(),
            name_server,
            datagrams: TaskTracker::new(),
            stop,
            finished: CancellationToken::new(),
        }
    }

    /// Ports for IPv4 and IPv6, 0 where there is none.
    pub(crate) fn ports(&self) -> [u16; 2] {
        self.source.ports()
    }

    /// Ports for questions to name servers over TCP, for IPv4 and IPv6.
    pub(crate) fn question_ports(&self) -> [u16; 2] {
        self.source.question_ports()
    }

    /// Goes on with another TUN device.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn renew(&self, device: OwnedFd) -> io::Result<()> {
        self.source.device.as_ref().map_or(Ok(()), |(tun, _)| tun.replace(device))
    }

    /// How many were taken so far.
    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }

    /// Waits until it was stopped, the last connection and the last association have ended, and the last
    /// question is answered.
    pub(crate) async fn finished(&self) {
        self.finished.cancelled().await;
        self.datagrams.close();
        self.datagrams.wait().await;
    }

    /// Serves until the future is dropped, which ends the connections too, or a device fails.
    ///
    /// # Errors
    /// What the system says of the device.
    pub(crate) async fn run<T: Tunnel>(
        &self,
        tunnel: T,
        rules: &Arc<ClassRules>,
    ) -> io::Result<()> {
        let packets = async {
            match &self.source.device {
                Some((tun, name)) => {
                    let (tunnel, rules) = (tunnel.clone(), Arc::clone(rules));
                    let (stop, work) = (self.stop.clone(), self.datagrams.clone());
                    let outlet = Outlet::new(tunnel, rules, self.name_server, stop, work);
                    tun.run(&outlet).await.map_err(|error| device_lost(name, &error))
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            failed = packets => failed,
            never = self.relay_all(tunnel.clone(), rules) => match never {},
        }
    }

    async fn relay_all<T: Tunnel>(&self, tunnel: T, rules: &Arc<ClassRules>) -> Infallible {
        let mut tasks = JoinSet::new();
        loop {
            let next = async {
                // The semaphore is never closed.
                let permit = Arc::clone(&self.connections).acquire_owned().await.ok();
                (permit, self.source.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                () = self.stop.cancelled() => break,
            };
            let (client, meant) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a captured connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            self.taken.fetch_add(1, Ordering::Relaxed);
            socket::tune_accepted(&client);
            let target = self.name_server.filter(|_| meant.port() == DNS_PORT).unwrap_or(meant);
            let (tunnel, rules) = (tunnel.clone(), Arc::clone(rules));
            tasks.spawn(async move {
                serve(client, target, &tunnel, &rules).await;
                drop(permit);
            });
            while tasks.try_join_next().is_some() {}
        }
        let ended = async {
            while tasks.join_next().await.is_some() {}
            self.finished.cancel();
        };
        // A device goes on too: the ends of the last connections are among its packets.
        let ((), never) = tokio::join!(ended, self.refuse_all());
        never
    }

    /// Resets whoever comes. The rules still lead programs here, and where nobody listens TPROXY leaves
    /// them without an answer.
    async fn refuse_all(&self) -> Infallible {
        loop {
            match self.source.accept().await {
                Ok((client, _)) => socket::reset_on_close(&client),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

async fn accept(listeners: &Listeners) -> io::Result<(TcpStream, SocketAddr)> {
    let of = |index: usize| async move {
        match &listeners[index] {
            Some(listener) => listener.accept().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        accepted = of(0) => accepted,
        accepted = of(1) => accepted,
    }
}

/// Why nothing is taken by a device any more.
fn device_lost(name: &str, error: &io::Error) -> io::Error {
    let is_there = nix::net::if_::if_nametoindex(name).is_ok();
    let what = if is_there { format!("failed ({error})") } else { "was removed".to_owned() };
    io::Error::other(format!(
        "{name} {what}; captured connections are refused until `sumrate up` runs again"
    ))
}

/// The program believes itself connected already: what goes wrong it learns by a reset.
async fn serve<T: Tunnel>(client: TcpStream, target: SocketAddr, tunnel: &T, rules: &ClassRules) {
    let host = target.ip().to_canonical().to_string();
    let class = rules.class_of(&host, target.port());
    let guess = class.is_none().then(Guess::default);
    match connect_as(tunnel, &host, target.port(), class).await {
        Ok(stream) => match relay(stream, client, &[], &Allowance::default(), guess).await {
            Ok(relayed) => tracing::debug!(%target, ?relayed, "a captured connection ended"),
            Err(error) => tracing::debug!(%target, %error, "a captured connection failed"),
        },
        Err(failure) => {
            tracing::info!("no connection to {target}: {failure}");
            socket::reset_on_close(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::in_memory::pipe_tunnel;
    use tokio::io::AsyncReadExt;

    #[test]
    fn who_removes_the_device_reads_what_follows() {
        let error = io::Error::from_raw_os_error(nix::libc::EBADFD);
        let words = device_lost("nosuch0", &error).to_string();
        assert!(
            words.starts_with("nosuch0 was removed; captured connections are refused"),
            "{words}"
        );
        assert!(device_lost("lo", &error).to_string().starts_with("lo failed ("));
    }

    #[tokio::test]
    async fn after_a_stop_nothing_is_waited_for_that_comes_later() {
        let stop = CancellationToken::new();
        let source = Source::rules(&Method::Redirect, true).unwrap();
        let taken = Connections::new(source, 2, None, stop.clone());
        let address = ("127.0.0.1", taken.ports()[0]);
        let (tunnel, _streams) = pipe_tunnel();
        let stopping = async {
            stop.cancel();
            taken.finished().await;
            let mut late = TcpStream::connect(address).await.unwrap();
            assert!(matches!(late.read(&mut [0; 1]).await, Ok(0) | Err(_)));
            taken.finished().await;
        };
        let rules = Arc::default();
        tokio::select! {
            ended = taken.run(tunnel, &rules) => panic!("a device goes on: {ended:?}"),
            () = stopping => {}
        }
        assert_eq!(taken.counter().load(Ordering::Relaxed), 0);
    }
}
