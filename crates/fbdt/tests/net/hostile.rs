//! Strangers, impostors and peers that break the protocol: each meets a typed error, and nobody
//! else notices.

use std::time::Duration;

use aws_lc_rs::hmac;
use fbdt::{
    AcceptLimits, Class, CloseReason, ConnectError, Limits, PathId, Session, StreamId, connect,
};
use fbdt_proto::handshake::{HandshakeMessage, Hello, Join, RefuseCode, limits_bytes};
use fbdt_proto::{Frame, SessionError, VERSION};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::relay::Relay;
use crate::world::{
    App, Mode, World, eventually, loopback, path_to, round_trip, up, within, world,
};

/// A world with a session that must not be disturbed.
async fn bystander(mode: Mode) -> (World, Session) {
    let mut world = world(mode).await;
    let session = world.connect(world.paths(2)).await;
    let _ = world.sessions.recv().await.unwrap();
    (world, session)
}

#[tokio::test]
async fn a_server_with_another_key_is_refused() {
    let (world, bystander) = bystander(Mode::Tls).await;
    let other = crate::world::world(Mode::Tls).await;
    let paths = vec![path_to("wrong", other.addresses[0])];
    let error = within(connect(world.config(paths))).await.unwrap_err();
    assert!(matches!(error, ConnectError::WrongKey { .. }), "{error}");
    round_trip(&bystander, 1 << 16, 1).await;
}

#[tokio::test]
async fn a_revoked_credential_is_refused_and_its_sessions_end() {
    let (world, session) = bystander(Mode::Tls).await;
    world.state.revoke(world.credential.id).unwrap();
    let error = within(connect(world.config(world.paths(1)))).await.unwrap_err();
    assert!(
        matches!(error, ConnectError::Refused { code: RefuseCode::Authentication, .. }),
        "{error}"
    );
    let reason = within(session.closed()).await;
    assert!(matches!(reason, CloseReason::Peer { code: fbdt::CLOSE_REVOKED, .. }), "{reason}");
}

#[tokio::test]
async fn a_wrong_secret_is_refused_in_both_modes() {
    for mode in [Mode::Tls, Mode::Plain] {
        let (world, bystander) = bystander(mode).await;
        // Another server's credential under this one's id.
        let other = crate::world::world(mode).await;
        let mut wrong = other.credential.clone();
        wrong.id = world.credential.id;
        let mut config = world.config(world.paths(1));
        let link = world.link();
        config.link = fbdt::Link::new(link.servers().to_vec(), link.fingerprint(), &wrong);
        let error = within(connect(config)).await.unwrap_err();
        assert!(
            matches!(error, ConnectError::Refused { code: RefuseCode::Authentication, .. }),
            "{error}"
        );
        round_trip(&bystander, 1 << 16, 1).await;
    }
}

#[tokio::test]
async fn plaintext_needs_consent_of_both_link_and_configuration() {
    let world = world(Mode::Plain).await;
    let mut config = world.config(world.paths(1));
    config.insecure_plaintext = false;
    let error = connect(config).await.unwrap_err();
    assert!(matches!(error, ConnectError::Insecure { link_is_insecure: true }));
}

#[tokio::test]
async fn a_tls_client_does_not_talk_plaintext_to_a_lab_server() {
    let lab = world(Mode::Plain).await;
    let world = world(Mode::Tls).await;
    let mut config = world.config(vec![path_to("lab", lab.addresses[0])]);
    config.connect_timeout = Duration::from_millis(500);
    let error = within(connect(config)).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoPath { .. }), "{error}");
}

#[tokio::test]
async fn replayed_bytes_join_nothing() {
    let mut world = world(Mode::Tls).await;
    let relay = Relay::start(world.addresses[0]).await;
    let paths = vec![path_to("one", relay.address), path_to("two", relay.address)];
    let session = world.connect(paths).await;
    let server = world.sessions.recv().await.unwrap();
    round_trip(&session, 1 << 16, 1).await;
    let before = server.stats();
    let recorded = relay.recorded();
    assert!(recorded.len() >= 2 && recorded.iter().all(|bytes| bytes.len() > 200), "{recorded:?}");
    for bytes in recorded {
        let mut socket = TcpStream::connect(world.addresses[0]).await.unwrap();
        let _ = socket.write_all(&bytes).await;
        // The server answers with its handshake and an alert, or resets; then it is over.
        let _ = within(socket.read_to_end(&mut Vec::new())).await;
    }
    let after = server.stats();
    let subflows = |stats: &fbdt::SessionStats| -> Vec<u64> {
        stats.paths.iter().map(|path| path.subflows).collect()
    };
    assert_eq!(subflows(&before), subflows(&after));
    assert!(world.sessions.try_recv().is_err(), "a Hello that is replayed opens no session");
    round_trip(&session, 1 << 16, 2).await;
}

#[tokio::test]
async fn garbage_is_dropped() {
    for mode in [Mode::Tls, Mode::Plain] {
        let (world, bystander) = bystander(mode).await;
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 40_000], &[0x16, 3, 1, 0xff, 0xff]]
        {
            let mut socket = TcpStream::connect(world.addresses[0]).await.unwrap();
            let _ = socket.write_all(garbage).await;
            let _ = socket.shutdown().await;
            let _ = within(socket.read_to_end(&mut Vec::new())).await;
        }
        round_trip(&bystander, 1 << 16, 1).await;
    }
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_ended_and_others_come_in_meanwhile() {
    let limits = AcceptLimits {
        handshake_timeout: Duration::from_millis(300),
        max_pending_per_source: 3,
        ..AcceptLimits::default()
    };
    let world = World::start(Mode::Tls, App::Echo, limits, &[loopback(1)]).await;
    let mut sleepers = Vec::new();
    for _ in 0..3 {
        let mut socket = TcpStream::connect(world.addresses[0]).await.unwrap();
        socket.write_all(&[0x16]).await.unwrap();
        sleepers.push(socket);
    }
    // 127.0.0.1 has used up its places; another source has its own.
    let session = world.connect(vec![crate::world::path_from(loopback(2))]).await;
    round_trip(&session, 1 << 16, 1).await;
    for mut socket in sleepers {
        let _ = within(socket.read_to_end(&mut Vec::new())).await;
    }
    world.connect(world.paths(1)).await;
}

/// No time limit here: only the number of bytes can end it.
#[tokio::test]
async fn a_handshake_of_too_many_bytes_is_ended() {
    let limits =
        AcceptLimits { handshake_timeout: Duration::from_secs(36_000), ..AcceptLimits::default() };
    let world = World::start(Mode::Tls, App::Echo, limits, &[loopback(1)]).await;
    let mut socket = TcpStream::connect(world.addresses[0]).await.unwrap();
    // A ClientHello that says it has 60 000 bytes, in records of 4096.
    let mut hello = vec![1, 0, 0xea, 0x60];
    hello.resize(60_000, 0);
    for record in hello[..40_960].chunks(4096) {
        let head = [0x16, 3, 1, 0x10, 0];
        if socket.write_all(&[&head, record].concat()).await.is_err() {
            break;
        }
    }
    let _ = within(socket.read_to_end(&mut Vec::new())).await;
    world.connect(world.paths(1)).await;
}

/// A client of the plaintext mode that is written by hand.
struct Rogue {
    socket: TcpStream,
    key: hmac::Key,
    session: [u8; 16],
}

fn sign(key: &hmac::Key, parts: &[&[u8]]) -> [u8; 32] {
    let tag = hmac::sign(key, &parts.concat());
    tag.as_ref().try_into().unwrap()
}

async fn answer(socket: &mut TcpStream) -> HandshakeMessage {
    let mut bytes = Vec::new();
    loop {
        if let Some((message, _)) = HandshakeMessage::decode(&bytes).unwrap() {
            return message;
        }
        bytes.push(socket.read_u8().await.unwrap());
    }
}

async fn send(socket: &mut TcpStream, message: HandshakeMessage) -> HandshakeMessage {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    socket.write_all(&bytes).await.unwrap();
    answer(socket).await
}

impl Rogue {
    async fn connect(world: &World) -> Self {
        let mut socket = TcpStream::connect(world.addresses[0]).await.unwrap();
        let secret = hmac::Key::new(hmac::HMAC_SHA256, world.credential.secret.expose());
        let (exporter, limits) = ([0u8; 32], Limits::default());
        let proof = sign(&secret, &[b"fbdt hello", &exporter, &[0], &limits_bytes(&limits)]);
        let hello = HandshakeMessage::Hello(Hello {
            version: VERSION,
            credential: world.credential.id.0,
            path: PathId(0),
            path_name: "rogue".into(),
            limits,
            proof,
        });
        let HandshakeMessage::Welcome(welcome) = send(&mut socket, hello).await else {
            panic!("refused");
        };
        let expected = sign(&secret, &[b"fbdt welcome", &exporter, &welcome.session]);
        assert_eq!(welcome.proof, expected);
        let key = sign(&secret, &[b"fbdt session", &welcome.session, &exporter]);
        Self { socket, key: hmac::Key::new(hmac::HMAC_SHA256, &key), session: welcome.session }
    }

    async fn send(&mut self, frame: Frame) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.socket.write_all(&bytes).await.unwrap();
    }
}

fn data(offset: u64) -> Frame {
    Frame::Data { stream: StreamId(1), offset, fin: false, payload: vec![0; 1000].into() }
}

async fn rogue() -> (World, Session, Rogue, Session) {
    let (mut world, bystander) = bystander(Mode::Plain).await;
    let rogue = Rogue::connect(&world).await;
    let server = within(world.sessions.recv()).await.unwrap();
    (world, bystander, rogue, server)
}

#[tokio::test]
async fn data_beyond_the_advertised_window_ends_that_session_only() {
    let (_world, bystander, mut rogue, server) = rogue().await;
    rogue.send(data(1 << 33)).await;
    let reason = within(server.closed()).await;
    assert!(matches!(reason, CloseReason::Protocol(SessionError::StreamLimit { .. })), "{reason}");
    // The rogue is told, and its connection ends.
    let _ = within(rogue.socket.read_to_end(&mut Vec::new())).await;
    round_trip(&bystander, 1 << 16, 1).await;
}

#[tokio::test]
async fn a_revoked_client_that_ignores_it_loses_its_connections() {
    let (world, bystander, mut rogue, server) = rogue().await;
    let other = world.state.new_credential("other", Default::default()).unwrap();
    world.state.revoke(world.credential.id).unwrap();
    // It goes on sending, and answers nothing.
    let reason = within(server.closed()).await;
    assert!(matches!(reason, CloseReason::Local { code: fbdt::CLOSE_REVOKED, .. }), "{reason}");
    let _ = rogue.socket.write_all(&[0; 4096]).await;
    let _ = within(rogue.socket.read_to_end(&mut Vec::new())).await;
    let mut socket = TcpStream::connect(world.addresses[0]).await.unwrap();
    let join = HandshakeMessage::Join(Join {
        session: rogue.session,
        path: PathId(1),
        path_name: String::new(),
        proof: sign(&rogue.key, &[b"fbdt join", &[0u8; 32], &[1]]),
    });
    assert!(matches!(send(&mut socket, join).await, HandshakeMessage::Refused(_)));
    // The bystander had the same credential; another one's holder comes in.
    within(bystander.closed()).await;
    let mut config = world.config(world.paths(1));
    let link = world.link();
    config.link = fbdt::Link::new(link.servers().to_vec(), link.fingerprint(), &other);
    round_trip(&within(connect(config)).await.unwrap(), 1 << 16, 1).await;
}

#[tokio::test]
async fn bytes_that_are_no_frame_end_that_session_only() {
    let (_world, bystander, mut rogue, server) = rogue().await;
    rogue.socket.write_all(&[0xee; 64]).await.unwrap();
    let reason = within(server.closed()).await;
    assert!(matches!(reason, CloseReason::Protocol(SessionError::Wire(_))), "{reason}");
    round_trip(&bystander, 1 << 16, 1).await;
}

#[tokio::test]
async fn a_peer_that_never_reads_its_socket_holds_up_nobody() {
    let (_world, bystander, _rogue, server) = rogue().await;
    let mut stream = server.open_stream(Class::Background).await.unwrap();
    let writing = tokio::spawn(async move {
        let piece = vec![1; 1 << 20];
        while stream.write_all(&piece).await.is_ok() {}
    });
    eventually(|| server.stats().new_bytes > 1 << 16).await;
    round_trip(&bystander, 4 << 20, 1).await;
    assert!(!writing.is_finished());
    let stats = server.stats();
    // The control stream's few bytes come on top.
    assert!(stats.new_bytes <= Limits::default().stream_window + 1024, "{stats:?}");
    server.close(0, "enough").await;
    within(writing).await.unwrap();
}

#[tokio::test]
async fn a_join_with_a_wrong_proof_or_session_is_refused() {
    let (world, bystander, rogue, server) = rogue().await;
    let right = sign(&rogue.key, &[b"fbdt join", &[0u8; 32], &[1]]);
    let join = |session, path, proof| {
        HandshakeMessage::Join(Join {
            session,
            path: PathId(path),
            path_name: String::new(),
            proof,
        })
    };
    // Unknown session; proof of another path; proof by a wrong key.
    let wrong = [
        join([9; 16], 1, right),
        join(rogue.session, 2, right),
        join(rogue.session, 1, [0; 32]),
        join(bystander.id(), 1, right),
    ];
    for message in wrong {
        let mut socket = TcpStream::connect(world.addresses[0]).await.unwrap();
        let HandshakeMessage::Refused(refused) = send(&mut socket, message).await else {
            panic!("not refused");
        };
        assert_eq!(refused.code, RefuseCode::Authentication);
    }
    assert_eq!(server.paths().len(), 1);
    let mut socket = TcpStream::connect(world.addresses[0]).await.unwrap();
    let welcome = send(&mut socket, join(rogue.session, 1, right)).await;
    assert!(matches!(welcome, HandshakeMessage::Welcome(_)));
    eventually(|| up(&server) == 2).await;
    round_trip(&bystander, 1 << 16, 1).await;
}

#[tokio::test]
async fn a_credential_with_all_its_sessions_is_told_so_and_others_come_in() {
    let limits = AcceptLimits { max_sessions_per_credential: 1, ..AcceptLimits::default() };
    let world = World::start(Mode::Tls, App::Echo, limits, &[loopback(1)]).await;
    let session = connect(world.config(world.paths(1))).await.unwrap();
    let mut config = world.config(world.paths(1));
    config.connect_timeout = Duration::from_millis(500);
    let error = connect(config).await.unwrap_err().to_string();
    assert!(error.contains("sessions, the most that one may have"), "{error}");
    let other = world.state.new_credential("other", Default::default()).unwrap();
    let mut config = world.config(world.paths(1));
    let link = world.link();
    config.link = fbdt::Link::new(link.servers().to_vec(), link.fingerprint(), &other);
    round_trip(&within(connect(config)).await.unwrap(), 1 << 16, 1).await;
    round_trip(&session, 1 << 16, 2).await;
}

#[tokio::test]
async fn paths_and_sessions_are_limited() {
    let limits = AcceptLimits { max_sessions: 1, max_paths: 2, ..AcceptLimits::default() };
    let world = World::start(Mode::Tls, App::Echo, limits, &[loopback(1)]).await;
    let session = connect(world.config(world.paths(3))).await.unwrap();
    crate::world::wait_for_paths(&session, 2).await;
    let mut config = world.config(world.paths(1));
    config.connect_timeout = Duration::from_millis(500);
    let error = connect(config).await.unwrap_err();
    assert!(error.to_string().contains("has 1 sessions, the most"), "{error}");
    round_trip(&session, 1 << 16, 1).await;
    session.close(0, "").await;
    // The place is free again.
    within(connect(world.config(world.paths(1)))).await.unwrap();
}
