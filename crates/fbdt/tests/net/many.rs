//! Many sessions at once.

use aws_lc_rs::digest::{Context, SHA256};
use fbdt::Class;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use crate::world::{Mode, Pattern, loopback, path_from, round_trip, within, world};

/// Sessions, each with a MiB of its own in both directions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_sessions_at_once() {
    const SESSIONS: u64 = 100;
    const SIZE: usize = 1 << 20;
    let world = world(Mode::Tls).await;
    let mut connecting = JoinSet::new();
    for _ in 0..SESSIONS {
        connecting.spawn(fbdt::connect(world.config(vec![path_from(loopback(1))])));
    }
    let sessions: Vec<_> =
        within(connecting.join_all()).await.into_iter().map(Result::unwrap).collect();
    let mut transfers = JoinSet::new();
    for (seed, session) in (0..).zip(sessions.clone()) {
        transfers.spawn(async move { round_trip(&session, SIZE, seed).await });
    }
    within(transfers.join_all()).await;
    for session in &sessions {
        assert!(session.stats().received_bytes >= SIZE as u64);
    }
}

/// The streams of one session, all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_of_a_session() {
    const STREAMS: u64 = 1000;
    const SIZE: usize = 16 << 10;
    let world = world(Mode::Tls).await;
    let session = world.connect(world.paths(2)).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(session.open_stream(Class::Background).await.unwrap());
    }
    let mut transfers = JoinSet::new();
    for (seed, mut stream) in (0..).zip(streams) {
        transfers.spawn(async move {
            let mut sent = vec![0; SIZE];
            Pattern::new(seed).fill(&mut sent);
            stream.write_all(&sent).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut hash = Context::new(&SHA256);
            while let Some(piece) = stream.read_chunk(usize::MAX).await.unwrap() {
                hash.update(&piece);
            }
            let mut expected = Context::new(&SHA256);
            expected.update(&sent);
            assert_eq!(hash.finish().as_ref(), expected.finish().as_ref());
        });
    }
    within(transfers.join_all()).await;
}
