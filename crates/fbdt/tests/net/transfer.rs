//! Bytes arrive, whatever carries them.

use fbdt::{AcceptLimits, Role};

use crate::world::{App, Mode, World, path_from, round_trip, world};

const SIZE: usize = 64 << 20;

async fn transfer(mode: Mode, paths: u8) {
    let mut world = world(mode).await;
    let session = world.connect(world.paths(paths)).await;
    round_trip(&session, SIZE, u64::from(paths)).await;
    let server = world.sessions.recv().await.unwrap();
    assert_eq!((session.role(), server.role()), (Role::Client, Role::Server));
    assert_eq!(session.id(), server.id());
    assert_eq!(server.credential().unwrap().id, world.credential.id);
    let stats = session.stats();
    assert!(stats.new_bytes >= SIZE as u64);
    // How the paths share a transfer of milliseconds is the machine's mood; that every one carries
    // is shown in virtual time (fbdt-sim).
    let carried: u64 = stats.paths.iter().map(|path| path.new_bytes).sum();
    assert_eq!((stats.paths.len(), carried >= SIZE as u64), (paths.into(), true), "{stats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_path_tls() {
    transfer(Mode::Tls, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_paths_tls() {
    transfer(Mode::Tls, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_paths_tls() {
    transfer(Mode::Tls, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_path_plaintext() {
    transfer(Mode::Plain, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_paths_plaintext() {
    transfer(Mode::Plain, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_paths_plaintext() {
    transfer(Mode::Plain, 3).await;
}

#[tokio::test]
async fn one_thread_is_enough() {
    transfer(Mode::Tls, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ipv4_and_ipv6_paths_share_a_session() {
    let listen = ["127.0.0.1", "::1"].map(|text| text.parse().unwrap());
    let world = World::start(Mode::Tls, App::Echo, AcceptLimits::default(), &listen).await;
    let session = world.connect(listen.map(path_from).to_vec()).await;
    let mut families: Vec<bool> =
        session.paths().iter().map(|path| path.remote.unwrap().is_ipv6()).collect();
    families.sort_unstable();
    assert_eq!(families, [false, true]);
    round_trip(&session, 4 << 20, 1).await;
}
