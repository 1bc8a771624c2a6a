//! A TCP relay that can freeze, cut, refuse and remember.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// What the relay does with connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pass {
    /// Passes bytes on.
    Open,
    /// Holds them back; new connections are accepted and hear nothing.
    Frozen,
    /// Resets connections, and refuses new ones.
    Cut,
    /// Ends each connection soon after its handshake.
    Doomed,
}

pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    target: SocketAddr,
    mode: watch::Sender<Pass>,
    /// How much later bytes are passed on, in each direction.
    late: Duration,
    /// What clients sent, by connection.
    recorded: Arc<Mutex<Vec<Vec<u8>>>>,
    listening: Option<tokio::task::JoinHandle<()>>,
}

impl Relay {
    pub(crate) async fn start(target: SocketAddr) -> Self {
        Self::late(target, Duration::ZERO).await
    }

    pub(crate) async fn late(target: SocketAddr, late: Duration) -> Self {
        let mut relay = Self {
            address: "127.0.0.1:0".parse().unwrap(),
            target,
            mode: watch::Sender::new(Pass::Open),
            late,
            recorded: Arc::default(),
            listening: None,
        };
        relay.listen().await;
        relay
    }

    async fn listen(&mut self) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(self.address).unwrap();
        let listener = socket.listen(64).unwrap();
        self.address = listener.local_addr().unwrap();
        let (mode, recorded) = (self.mode.subscribe(), self.recorded.clone());
        self.listening =
            Some(tokio::spawn(accept(listener, self.target, self.late, mode, recorded)));
    }

    pub(crate) async fn set(&mut self, pass: Pass) {
        self.mode.send_replace(pass);
        if pass == Pass::Cut {
            if let Some(listening) = self.listening.take() {
                listening.abort();
                let _ = listening.await;
            }
        } else if self.listening.is_none() {
            self.listen().await;
        }
    }

    pub(crate) fn recorded(&self) -> Vec<Vec<u8>> {
        self.recorded.lock().unwrap().clone()
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    late: Duration,
    mode: watch::Receiver<Pass>,
    recorded: Arc<Mutex<Vec<Vec<u8>>>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let index = {
            let mut recorded = recorded.lock().unwrap();
            recorded.push(Vec::new());
            recorded.len() - 1
        };
        let (mode, recorded) = (mode.clone(), recorded.clone());
        connections.spawn(connection(client, target, late, mode, recorded, index));
    }
}

async fn connection(
    client: TcpStream,
    target: SocketAddr,
    late: Duration,
    mut mode: watch::Receiver<Pass>,
    recorded: Arc<Mutex<Vec<Vec<u8>>>>,
    index: usize,
) {
    if mode.wait_for(|mode| *mode != Pass::Frozen).await.is_err() {
        return;
    }
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let record = move |bytes: &[u8]| recorded.lock().unwrap()[index].extend_from_slice(bytes);
    let upward = forward(from_client, to_server, mode.clone(), late, record);
    let downward = forward(from_server, to_client, mode.clone(), late, |_| {});
    let mut watched = mode.clone();
    tokio::select! {
        () = upward => {}
        () = downward => {}
        _ = watched.wait_for(|mode| *mode == Pass::Cut) => {}
        () = doom(mode.clone()) => {}
    }
}

/// Passes bytes on, each so much later.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut mode: watch::Receiver<Pass>,
    late: Duration,
    record: impl Fn(&[u8]),
) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let reading = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let _ = sender.send((Instant::now() + late, buffer[..count].to_vec()));
        }
        drop(sender);
    };
    let writing = async {
        while let Some((at, bytes)) = receiver.recv().await {
            sleep_until(at).await;
            let _ = mode.wait_for(|mode| matches!(mode, Pass::Open | Pass::Doomed)).await;
            record(&bytes);
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(reading, writing);
}

/// Long enough for TLS and Join over loopback.
const LIFE: std::time::Duration = std::time::Duration::from_millis(100);

async fn doom(mut mode: watch::Receiver<Pass>) {
    if mode.wait_for(|mode| *mode == Pass::Doomed).await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(LIFE).await;
}
