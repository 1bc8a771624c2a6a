//! A hostile server that asks its client to dial without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::hmac;
use fbdt::{CredentialLimits, Limits, Link, PathId, ServerAddress, ServerState, connect};
use fbdt_proto::handshake::{HandshakeMessage, Welcome};
use fbdt_proto::{ControlMessage, Frame, FrameDecoder, StreamId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

use crate::world::{loopback, path_from, within};

/// Requests to dial that are sent on each connection.
const REDIALS: usize = 10_000;
const SESSION: [u8; 16] = [7; 16];

/// What all connections of the hostile server share.
struct Flood {
    secret: Vec<u8>,
    /// Bytes sent on the control stream so far.
    sent: Mutex<u64>,
    accepted: AtomicUsize,
}

fn sign(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), &parts.concat());
    tag.as_ref().try_into().unwrap()
}

impl Flood {
    /// Lets a connection in, and asks for thousands more; returns once the client has read that, and had
    /// time to dial.
    async fn serve(&self, mut socket: TcpStream) {
        let mut bytes = Vec::new();
        let request = loop {
            if let Some((message, _)) = HandshakeMessage::decode(&bytes).unwrap() {
                break message;
            }
            bytes.push(socket.read_u8().await.unwrap());
        };
        let exporter = [0; 32];
        let session_key = sign(&self.secret, &[b"fbdt session", &SESSION, &exporter]);
        let key = match request {
            HandshakeMessage::Hello(_) => self.secret.clone(),
            _ => session_key.to_vec(),
        };
        let proof = sign(&key, &[b"fbdt welcome", &exporter, &SESSION]);
        let welcome = Welcome { session: SESSION, limits: Limits::default(), proof };
        let mut out = Vec::new();
        HandshakeMessage::Welcome(welcome).encode(&mut out);
        let mut redials = Vec::new();
        for _ in 0..REDIALS {
            ControlMessage::Redial { path: PathId(0) }.encode(&mut redials);
        }
        let mut sent = self.sent.lock().await;
        for piece in redials.chunks(4096) {
            let payload = piece.to_vec().into();
            Frame::Data { stream: StreamId::CONTROL, offset: *sent, fin: false, payload }
                .encode(&mut out);
            *sent += piece.len() as u64;
        }
        drop(sent);
        Frame::Ping { token: 1 }.encode(&mut out);
        socket.write_all(&out).await.unwrap();
        answered(&mut socket).await;
        // One more round trip: all dials that the client makes for the flood have begun.
        let mut ping = Vec::new();
        Frame::Ping { token: 2 }.encode(&mut ping);
        if socket.write_all(&ping).await.is_ok() {
            answered(&mut socket).await;
        }
        // The client may replace it when it likes.
        tokio::spawn(async move { socket.read_to_end(&mut Vec::new()).await });
    }
}

/// Waits for the answer to a ping, or for the end.
async fn answered(socket: &mut TcpStream) {
    let (mut decoder, mut buffer) = (FrameDecoder::new(64 << 10), vec![0; 4096]);
    while let Ok(count @ 1..) = socket.read(&mut buffer).await {
        let mut rest = &buffer[..count];
        while let Some(frame) = decoder.push(&mut rest).unwrap() {
            if matches!(frame, Frame::Pong { .. }) {
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_flood_of_redials_makes_one_dial_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let state = ServerState::open(directory.path().join("state")).unwrap();
    let credential = state.new_credential("test", CredentialLimits::default()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = ServerAddress::from(listener.local_addr().unwrap());
    let flood = Arc::new(Flood {
        secret: credential.secret.expose().to_vec(),
        sent: Mutex::default(),
        accepted: AtomicUsize::new(0),
    });
    let (sender, mut served) = mpsc::unbounded_channel();
    let accepting = flood.clone();
    let _accepting = tokio::task::JoinSet::from_iter([async move {
        while let Ok((socket, _)) = listener.accept().await {
            accepting.accepted.fetch_add(1, Ordering::Relaxed);
            let (flood, sender) = (accepting.clone(), sender.clone());
            tokio::spawn(async move {
                flood.serve(socket).await;
                let _ = sender.send(());
            });
        }
    }]);
    let mut config = fbdt::ClientConfig::new(Link::new(vec![server], None, &credential));
    config.paths = vec![path_from(loopback(1))];
    config.insecure_plaintext = true;
    // That nobody answers is found out by probes.
    config.proto.keepalive.1 = std::time::Duration::from_secs(1);
    let session = within(connect(config)).await.unwrap();
    for rounds in 1..=4 {
        within(served.recv()).await.unwrap();
        let accepted = flood.accepted.load(Ordering::Relaxed);
        assert!(accepted <= rounds + 1, "{accepted} connections after {rounds} floods");
    }
    // The connection that the last flood asked for.
    within(served.recv()).await.unwrap();
    assert!(flood.accepted.load(Ordering::Relaxed) <= 6);
    assert!(!session.is_closed());
}
