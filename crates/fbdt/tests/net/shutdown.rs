//! Nothing is lost at the end of a session, whichever path is late.

use std::time::Duration;

use fbdt::{AcceptLimits, Class, CloseReason, PathSpec, Session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::relay::{Pass, Relay};
use crate::world::{App, Mode, PATIENCE, World, loopback, path_from, path_to, within};

/// Of a round trip over the late path, half in each direction.
const LATE: Duration = Duration::from_millis(500);
const BYTES: usize = 300_000;

/// Paths in their order: a late one and, unless it is alone, one without a delay.
async fn late_world(first: bool, alone: bool) -> (World, Session, Session, Relay) {
    let mut world =
        World::start(Mode::Tls, App::Nothing, AcceptLimits::default(), &[loopback(1)]).await;
    let relay = Relay::late(world.addresses[0], LATE / 2).await;
    let mut paths: Vec<PathSpec> = vec![path_to("late", relay.address)];
    if !alone {
        paths.insert(usize::from(first), path_from(loopback(1)));
    }
    let client = world.connect(paths).await;
    let server = within(world.sessions.recv()).await.unwrap();
    (world, client, server, relay)
}

/// Reads every stream of the session to its end.
async fn read_all(session: Session) -> Vec<usize> {
    let mut sizes = Vec::new();
    while let Some(mut stream) = session.accept_stream().await {
        let mut got = Vec::new();
        stream.read_to_end(&mut got).await.unwrap();
        assert!(got.iter().all(|byte| *byte == 7));
        sizes.push(got.len());
    }
    sizes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_before_a_shutdown_arrives_over_late_paths() {
    for (first, alone) in [(true, false), (false, false), (true, true)] {
        for upload in [true, false] {
            let (_world, client, server, _relay) = late_world(first, alone).await;
            let (from, to) = if upload { (client, server) } else { (server, client) };
            let reading = tokio::spawn(read_all(to.clone()));
            let mut stream = from.open_stream(Class::Background).await.unwrap();
            stream.write_all(&[7; BYTES]).await.unwrap();
            stream.finish().unwrap();
            drop(stream);
            within(from.shutdown(PATIENCE)).await.unwrap();
            let got = within(reading).await.unwrap();
            assert_eq!(got, [BYTES], "late first {first}, alone {alone}, upload {upload}");
            let reason = within(to.closed()).await;
            assert!(
                matches!(reason, CloseReason::Peer { code: 0, .. }),
                "{reason}, upload {upload}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_finished_arrives_after_the_last_handle_is_gone() {
    let (_world, client, server, _relay) = late_world(true, true).await;
    let reading = tokio::spawn(read_all(server.clone()));
    let mut stream = client.open_stream(Class::Interactive).await.unwrap();
    stream.write_all(&[7; BYTES]).await.unwrap();
    stream.shutdown().await.unwrap();
    drop((stream, client));
    assert_eq!(within(reading).await.unwrap(), [BYTES]);
    assert!(matches!(within(server.closed()).await, CloseReason::Peer { code: 0, .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_knows_when_it_is_delivered() {
    let (_world, client, server, mut relay) = late_world(true, true).await;
    let mut stream = client.open_stream(Class::Interactive).await.unwrap();
    stream.write_all(b"all").await.unwrap();
    within(stream.delivered()).await.unwrap();
    assert_eq!(stream.stats().unwrap().acknowledged, 3);
    stream.finish().unwrap();
    within(stream.delivered()).await.unwrap();
    let mut got = Vec::new();
    within(within(server.accept_stream()).await.unwrap().read_to_end(&mut got)).await.unwrap();
    assert_eq!(got, b"all");

    let mut stopped = client.open_stream(Class::Interactive).await.unwrap();
    stopped.write_all(b"nobody wants it").await.unwrap();
    within(server.accept_stream()).await.unwrap().stop_sending(9);
    relay.set(Pass::Frozen).await;
    stopped.write_all(b"more").await.unwrap();
    relay.set(Pass::Open).await;
    assert!(within(stopped.delivered()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_says_what_was_not_delivered_in_time() {
    let (_world, client, _server, mut relay) = late_world(true, true).await;
    let mut stream = client.open_stream(Class::Interactive).await.unwrap();
    relay.set(Pass::Frozen).await;
    stream.write_all(&[7; BYTES]).await.unwrap();
    stream.finish().unwrap();
    let lost = within(client.shutdown(Duration::from_millis(300))).await.unwrap_err();
    assert!(lost.bytes > 0 && lost.bytes <= BYTES as u64 + 1, "{lost}");
    assert!(lost.to_string().contains("not delivered"), "{lost}");
    // A dead session does not pretend.
    assert!(stream.shutdown().await.is_err());
    assert!(stream.delivered().await.is_err());
    assert!(client.open_stream(Class::Interactive).await.is_err());
}
