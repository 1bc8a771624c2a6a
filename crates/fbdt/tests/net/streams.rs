//! Streams of a session, and its end.

use std::sync::{Arc, Mutex};

use fbdt::{AcceptLimits, Class, CloseReason, StreamError, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::world::{
    App, Mode, World, echo, eventually, exchange, loopback, round_trip, within, world,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_in_both_directions() {
    let mut world = world(Mode::Tls).await;
    let session = world.connect(world.paths(2)).await;
    let server = world.sessions.recv().await.unwrap();
    let accepting = session.clone();
    tokio::spawn(async move {
        while let Some(stream) = accepting.accept_stream().await {
            tokio::spawn(echo(stream));
        }
    });
    let mut tasks = JoinSet::new();
    for seed in 0..40 {
        for end in [session.clone(), server.clone()] {
            let class = Class::ALL[seed as usize % Class::ALL.len()];
            tasks.spawn(async move {
                let stream = end.open_stream(class).await.unwrap();
                exchange(stream, 100_000 + 1000 * seed as usize, seed).await;
            });
        }
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    eventually(|| session.stats().streams.is_empty() && server.stats().streams.is_empty()).await;
}

async fn pair(mode: Mode) -> (World, fbdt::Session, fbdt::Session) {
    let mut world = World::start(mode, App::Nothing, AcceptLimits::default(), &[loopback(1)]).await;
    let session = world.connect(world.paths(2)).await;
    let server = world.sessions.recv().await.unwrap();
    (world, session, server)
}

#[tokio::test]
async fn a_dropped_stream_is_reset_and_a_finished_one_is_not() {
    let (_world, session, server) = pair(Mode::Tls).await;
    let mut finished = session.open_stream(Class::Interactive).await.unwrap();
    finished.write_all(b"all of it").await.unwrap();
    finished.shutdown().await.unwrap();
    let mut got = Vec::new();
    let mut stream = within(server.accept_stream()).await.unwrap();
    drop(finished);
    within(stream.read_to_end(&mut got)).await.unwrap();
    assert_eq!(got, b"all of it");

    let mut dropped = session.open_stream(Class::Interactive).await.unwrap();
    dropped.write_all(b"some").await.unwrap();
    let mut stream = within(server.accept_stream()).await.unwrap();
    drop(dropped);
    let error = within(stream.read_to_end(&mut got)).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

/// On one thread a writer that never waits would have written everything before the next begins.
#[tokio::test]
async fn writers_of_two_streams_take_turns() {
    let (_world, session, _server) = pair(Mode::Tls).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut writers = JoinSet::new();
    for number in 0..2_u8 {
        let mut stream = session.open_stream(Class::Background).await.unwrap();
        let order = order.clone();
        writers.spawn(async move {
            for _ in 0..4 {
                stream.write_chunk(vec![number; 256 << 10].into()).await.unwrap();
                order.lock().unwrap().push(number);
            }
            stream
        });
    }
    let streams = within(writers.join_all()).await;
    assert_eq!(streams.len(), 2);
    assert_eq!(*order.lock().unwrap(), [0, 1, 0, 1, 0, 1, 0, 1]);
}

#[tokio::test]
async fn a_stopped_stream_fails_its_writer() {
    let (_world, session, server) = pair(Mode::Tls).await;
    let mut writer = session.open_stream(Class::Interactive).await.unwrap();
    writer.write_all(b"x").await.unwrap();
    let mut reader = within(server.accept_stream()).await.unwrap();
    reader.stop_sending(7);
    let error = within(async {
        loop {
            if let Err(error) = writer.write_all(&[0; 100_000]).await {
                return error;
            }
        }
    })
    .await;
    let inner = error.into_inner().unwrap();
    let stopped = inner.downcast::<StreamError>().unwrap();
    assert!(matches!(*stopped, StreamError::Stopped { code: 7, .. }));
}

#[tokio::test]
async fn a_writer_waits_for_its_reader_and_memory_stays_bounded() {
    let (world, session, server) = pair(Mode::Plain).await;
    let config = world.config(Vec::new()).proto;
    let (window, first_window) = (config.max_stream_window, config.limits.stream_window);
    let size = 2 * usize::try_from(window).unwrap() + (64 << 20);
    let mut writer = session.open_stream(Class::Background).await.unwrap();
    let writing = tokio::spawn(async move {
        let piece = vec![7; 1 << 20];
        for _ in 0..size >> 20 {
            writer.write_all(&piece).await.unwrap();
        }
        writer.shutdown().await.unwrap();
        writer
    });
    let mut reader = within(server.accept_stream()).await.unwrap();
    // The window is full when nothing of it is on its way any more.
    let mut seen = 0;
    eventually(|| {
        let stats = session.stats();
        let idle = stats.paths.iter().all(|path| path.commit == 0);
        let same = std::mem::replace(&mut seen, stats.new_bytes) == stats.new_bytes;
        idle && same && stats.new_bytes >= first_window
    })
    .await;
    let held = server.stats().receive_memory;
    assert!(held <= window, "{held} bytes held, {window} advertised at most");
    assert!(!writing.is_finished());
    // Another session is not concerned.
    let other = connect(world.config(world.paths(1))).await.unwrap();
    other.close(0, "").await;
    let mut received = 0;
    while let Some(piece) = within(reader.read_chunk(usize::MAX)).await.unwrap() {
        assert!(piece.iter().all(|byte| *byte == 7));
        received += piece.len();
    }
    assert_eq!(received, size);
    drop(within(writing).await.unwrap());
}

#[tokio::test]
async fn both_ends_learn_why_a_session_was_closed() {
    let (_world, session, server) = pair(Mode::Tls).await;
    let mut stream = session.open_stream(Class::Interactive).await.unwrap();
    session.close(0x105, "enough").await;
    let reason = CloseReason::Peer { code: 0x105, reason: "enough".into() };
    assert_eq!(within(server.closed()).await, reason);
    assert!(matches!(session.closed().await, CloseReason::Local { code: 0x105, .. }));
    assert!(within(server.accept_stream()).await.is_none());
    assert!(stream.write_all(b"x").await.is_err());
    eventually(|| crate::world::up(&server) == 0).await;
}

#[tokio::test]
async fn a_session_that_nobody_holds_is_closed() {
    let (_world, session, server) = pair(Mode::Tls).await;
    let stream = session.open_stream(Class::Interactive).await.unwrap();
    drop(session);
    assert!(server.stats().paths.len() == 2, "the stream still holds it");
    drop(stream);
    assert!(matches!(within(server.closed()).await, CloseReason::Peer { code: 0, .. }));
}

#[tokio::test]
async fn a_session_is_used_while_paths_still_come_up() {
    let world = world(Mode::Tls).await;
    let session = connect(world.config(world.paths(3))).await.unwrap();
    round_trip(&session, 1 << 20, 3).await;
    crate::world::wait_for_paths(&session, 3).await;
}

#[tokio::test]
async fn a_stream_is_opened_as_soon_as_another_one_has_ended() {
    let mut world =
        World::start(Mode::Tls, App::Nothing, AcceptLimits::default(), &[loopback(1)]).await;
    let mut config = world.config(world.paths(1));
    config.proto.limits.max_streams = 2;
    let client = connect(config).await.unwrap();
    let server = within(world.sessions.recv()).await.unwrap();
    let mut open = Vec::new();
    while let Ok(stream) = server.try_open_stream(Class::Interactive) {
        open.push(stream);
    }
    assert_eq!(open.len(), 2);
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.open_stream(Class::Interactive).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    // Given up at both ends.
    drop(open);
    drop(within(client.accept_stream()).await);
    drop(within(client.accept_stream()).await);
    let mut opened = within(waiting).await.unwrap().unwrap();
    opened.write_all(b"late").await.unwrap();
    opened.finish().unwrap();
    let mut got = String::new();
    let mut arrived = within(client.accept_stream()).await.unwrap();
    within(arrived.read_to_string(&mut got)).await.unwrap();
    assert_eq!(got, "late");
    // Who waits learns of the end.
    let more = (server.try_open_stream(Class::Interactive), server.clone());
    let waiting = tokio::spawn(async move { more.1.open_stream(Class::Interactive).await });
    client.close(0, "").await;
    assert!(within(waiting).await.unwrap().is_err() || more.0.is_ok());
}

#[tokio::test]
async fn the_directions_of_a_stream_end_on_their_own() {
    let (_world, session, server) = pair(Mode::Tls).await;
    let (mut to, mut from) = session.open_stream(Class::Interactive).await.unwrap().into_split();
    let (mut back, mut there) = within(server.accept_stream()).await.unwrap().into_split();
    let sending = tokio::spawn(async move {
        to.write_all(b"question").await.unwrap();
        to.finish().unwrap();
        to.delivered().await.unwrap();
    });
    let mut got = String::new();
    within(there.read_to_string(&mut got)).await.unwrap();
    assert_eq!(got, "question");
    within(sending).await.unwrap();
    // The other direction goes on though its first half is gone at both ends.
    drop(there);
    back.write_all(b"answer").await.unwrap();
    back.finish().unwrap();
    drop(back);
    let mut got = String::new();
    within(from.read_to_string(&mut got)).await.unwrap();
    assert_eq!(got, "answer");

    let (to, from) = session.open_stream(Class::Interactive).await.unwrap().into_split();
    let (mut back, mut there) = within(server.accept_stream()).await.unwrap().into_split();
    drop(to);
    let error = within(there.read(&mut [0; 1])).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "it was not finished");
    back.write_all(b"nobody").await.unwrap();
    drop(from);
    let failed = within(async {
        while back.write_all(&[0; 1000]).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    failed.await;
}
