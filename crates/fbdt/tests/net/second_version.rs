//! A hostile peer of wire version 2 over TLS: messages that break the rules, and a hoarder of memory.

use std::net::TcpStream;

use bytes::Bytes;
use fbdt::{AcceptLimits, CloseReason, Credential, Session, StreamId, connect};
use fbdt_proto::{AckFrame, Frame, SessionError};

use crate::first_version::{self as peer, Wire};
use crate::world::{App, Mode, World, eventually, loopback, round_trip, within};

const STREAM: StreamId = StreamId(1);
const SPACE: StreamId = StreamId(1 | StreamId::MESSAGES);

/// A session that a peer opened by hand, and that session as the server sees it.
struct Hostile {
    wire: Wire,
    server: Session,
}

impl Hostile {
    async fn connect(world: &mut World) -> Self {
        let (address, credential) = (world.addresses[0], world.credential.clone());
        let opening = move || {
            let socket = TcpStream::connect(address).unwrap();
            let (mut wire, chosen) = Wire::tls_client(socket, &["fbdt/2"]).unwrap();
            assert_eq!(chosen, b"fbdt/2");
            let Credential { id, secret, .. } = credential;
            let credential = peer::Credential { id: id.0, secret: *secret.expose() };
            let mut hello = peer::hello(&wire, credential);
            // Type and length stand before the version.
            hello[3..5].copy_from_slice(&[0, 2]);
            wire.send(&hello);
            assert_eq!(wire.message().unwrap().0, 0x43, "Welcome");
            wire
        };
        let wire = within(tokio::task::spawn_blocking(opening)).await.unwrap();
        Self { wire, server: within(world.sessions.recv()).await.unwrap() }
    }

    /// Sends on a thread of its own: the server may take its time to read.
    async fn send(self, frames: Vec<Frame>) -> Self {
        let Self { mut wire, server } = self;
        let sending = move || {
            let mut bytes = Vec::new();
            frames.iter().for_each(|frame| frame.encode(&mut bytes));
            wire.send(&bytes);
            wire
        };
        let wire = within(tokio::task::spawn_blocking(sending)).await.unwrap();
        Self { wire, server }
    }
}

fn message(stream: StreamId, offset: u64, size: usize) -> Frame {
    Frame::Message { stream, offset, payload: vec![0; size].into() }
}

/// Somebody else with a credential of their own.
async fn neighbour(world: &mut World) -> Session {
    let other = world.state.new_credential("other", Default::default()).unwrap();
    let (link, mut config) = (world.link(), world.config(world.paths(1)));
    config.link = fbdt::Link::new(link.servers().to_vec(), link.fingerprint(), &other);
    let session = within(connect(config)).await.unwrap();
    within(world.sessions.recv()).await.unwrap();
    session
}

#[tokio::test]
async fn f16_hostile_messages_end_that_session_only() {
    type Expected = fn(&SessionError) -> bool;
    let gap = |start, end| Frame::Gap { stream: STREAM, start, end };
    let ack = AckFrame { stream: SPACE, cumulative: 1 << 20, limit: 1 << 20, ranges: Vec::new() };
    let cases: [(&str, Vec<Frame>, Expected); 7] = [
        ("beyond the window", vec![message(STREAM, 1 << 30, 10)], |error| {
            matches!(error, SessionError::StreamLimit { .. })
        }),
        ("across another", vec![message(STREAM, 64, 0), message(STREAM, 65, 0)], |error| {
            matches!(error, SessionError::Message { .. })
        }),
        ("on the control stream", vec![message(StreamId::CONTROL, 0, 1)], |error| {
            matches!(error, SessionError::Control(_))
        }),
        ("a gap beyond the window", vec![gap(0, 1 << 40)], |error| {
            matches!(error, SessionError::StreamLimit { .. })
        }),
        ("a gap that ends before it starts", vec![gap(70, 60)], |error| {
            matches!(error, SessionError::Message { .. } | SessionError::Wire(_))
        }),
        ("an acknowledgement of none", vec![message(STREAM, 0, 1), Frame::Ack(ack)], |error| {
            matches!(error, SessionError::Acknowledgement { .. })
        }),
        ("a stream of the server", vec![message(StreamId(2), 0, 1)], |error| {
            matches!(error, SessionError::StreamNumber(_))
        }),
    ];
    let mut world = crate::world::world(Mode::Tls).await;
    let bystander = neighbour(&mut world).await;
    for (name, frames, expected) in cases {
        let hostile = Hostile::connect(&mut world).await.send(frames).await;
        let reason = within(hostile.server.closed()).await;
        let right = matches!(&reason, CloseReason::Protocol(error) if expected(error));
        assert!(right, "{name}: {reason}");
        round_trip(&bystander, 1 << 16, 1).await;
    }
}

/// Wants for every stream, and messages that nobody reads: each window stays what it may be.
#[tokio::test]
async fn f16_unread_messages_stay_within_their_windows() {
    let mut world = crate::world::world(Mode::Tls).await;
    let bystander = neighbour(&mut world).await;
    let greedy = (0..64).flat_map(|index| {
        let stream = StreamId(2 * index + 1);
        let want = Frame::Want { stream: StreamId(stream.0 | StreamId::MESSAGES), window: 1 << 40 };
        [message(stream, 0, 4096), want]
    });
    let hostile = Hostile::connect(&mut world).await.send(greedy.collect()).await;
    let server = hostile.server.clone();
    eventually(|| server.stats().messages.received == 64).await;
    assert!(!server.is_closed());
    round_trip(&bystander, 1 << 20, 1).await;
    // All windows together are a sixteenth of the session's and 16 KiB for each.
    let _hostile =
        hostile.send(vec![message(STREAM, 4096 + 64, 100), message(STREAM, 32 << 20, 1)]).await;
    let reason = within(server.closed()).await;
    assert!(matches!(reason, CloseReason::Protocol(SessionError::StreamLimit { .. })), "{reason}");
}

/// Each of its streams lacks the first byte, so that nobody can read what came.
fn hoard() -> Vec<Frame> {
    let piece = Bytes::from(vec![0; 16 << 10]);
    let stream = |index: u32| StreamId(2 * index + 1);
    let place = |number: u64| 1 + number * (16 << 10);
    let frames = (0..80).flat_map(|index| (0..15).map(move |number| (index, number)));
    let frames = frames.map(|(index, number)| Frame::Data {
        stream: stream(index),
        offset: place(number),
        fin: false,
        payload: piece.clone(),
    });
    frames.collect()
}

#[tokio::test]
async fn f2_who_hoards_memory_loses_the_largest_session() {
    let limits = AcceptLimits {
        max_memory: 64 << 20,
        max_memory_per_credential: 32 << 20,
        ..AcceptLimits::default()
    };
    let mut world = World::start(Mode::Tls, App::Echo, limits, &[loopback(1)]).await;
    let bystander = neighbour(&mut world).await;
    // 19 MiB each: more than the credential may hold together.
    let first = Hostile::connect(&mut world).await;
    let second = Hostile::connect(&mut world).await;
    let held = |session: &Session| session.stats().receive_memory;
    let first = first.send(hoard()).await;
    eventually(|| held(&first.server) > 18 << 20).await;
    assert!(!first.server.is_closed(), "it holds what it may");
    let second = second.send(hoard()).await;
    let reason = within(first.server.closed()).await;
    assert!(matches!(reason, CloseReason::Local { code: fbdt::CLOSE_MEMORY, .. }), "{reason}");
    assert!(held(&first.server) < 1 << 20, "what it held is free");
    round_trip(&bystander, 8 << 20, 1).await;
    assert!(!second.server.is_closed(), "the other one holds what it may");
    // Its credential may still open sessions, and these carry bytes.
    drop(second);
    let other = within(connect(world.config(world.paths(1)))).await.unwrap();
    round_trip(&other, 1 << 20, 2).await;
}
