//! Paths die and come back; sessions do not notice more than they must.

use fbdt::{Class, ConnectError, Health, PathPolicy, Session, SessionEvent, Weight, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::relay::{Pass, Relay};
use crate::world::{
    Mode, PATIENCE, World, eventually, path_from, path_to, round_trip, up, wait_for_paths, within,
    world,
};

/// An address where nobody listens.
async fn closed_port() -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_path_that_is_refused_holds_up_nobody() {
    let world = world(Mode::Tls).await;
    let paths = vec![path_to("refused", closed_port().await), path_from(crate::world::loopback(2))];
    let session = connect(world.config(paths)).await.unwrap();
    round_trip(&session, 1 << 20, 1).await;
    let infos = session.paths();
    assert_eq!(up(&session), 1);
    assert!(infos.iter().any(|path| path.name == "127.0.0.2"));
    eventually(|| last_error(&session, "refused").is_some_and(|why| why.contains("refused"))).await;
    assert_eq!(last_error(&session, "127.0.0.2"), None);
}

fn last_error(session: &Session, name: &str) -> Option<String> {
    let path = session.paths().into_iter().find(|path| path.name == name)?;
    path.last_error.map(|error| error.reason)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_path_says_why_until_it_is_back() {
    let world = world(Mode::Tls).await;
    let (mut relay, session) = relayed(&world).await;
    assert_eq!(last_error(&session, "relayed"), None);
    relay.set(Pass::Cut).await;
    eventually(|| last_error(&session, "relayed").is_some_and(|why| why.contains("refused"))).await;
    relay.set(Pass::Open).await;
    wait_for_paths(&session, 2).await;
    eventually(|| last_error(&session, "relayed").is_none()).await;
}

#[tokio::test]
async fn no_path_at_all_is_reported_path_by_path() {
    let world = world(Mode::Tls).await;
    let mut config = world
        .config(vec![path_to("one", closed_port().await), path_to("two", closed_port().await)]);
    config.connect_timeout = std::time::Duration::from_millis(500);
    let error = connect(config).await.unwrap_err();
    let ConnectError::NoPath { failures, .. } = error else {
        panic!("{error}");
    };
    let names: Vec<&str> = failures.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(failures[0].reason.contains("refused"), "{}", failures[0].reason);
}

/// A session over a relay and a direct path.
async fn relayed(world: &World) -> (Relay, Session) {
    let relay = Relay::start(world.addresses[0]).await;
    let paths = vec![path_to("relayed", relay.address), path_from(crate::world::loopback(2))];
    let session = world.connect(paths).await;
    (relay, session)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f15_a_policy_that_changes_while_its_path_is_being_joined_reaches_the_server() {
    let mut world = world(Mode::Plain).await;
    let mut relay = Relay::start(world.addresses[0]).await;
    relay.set(Pass::Frozen).await;
    let paths = vec![path_from(crate::world::loopback(2)), path_to("relayed", relay.address)];
    let config = world.config(paths);
    let policies = config.policies.clone();
    let session = connect(config).await.unwrap();
    // The Join that waits in the relay says nothing of a weight, and who changes policies may find
    // a session that does not list the path yet.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let wanted = PathPolicy { weight: Weight::new(3), ..PathPolicy::default() };
    policies.set("relayed", wanted);
    relay.set(Pass::Open).await;
    wait_for_paths(&session, 2).await;
    let server = within(world.sessions.recv()).await.unwrap();
    eventually(|| server.stats().paths.iter().any(|path| path.policy == wanted)).await;
}

fn subflows(session: &Session, name: &str) -> u64 {
    let stats = session.stats();
    stats.paths.iter().find(|path| path.name == name).map_or(0, |path| path.subflows)
}

fn suspected(session: &Session, name: &str) -> u64 {
    let stats = session.stats();
    stats.paths.iter().find(|path| path.name == name).map_or(0, |path| path.suspected)
}

/// Sends without end through an echo until `done` is told; what comes back is checked.
async fn traffic(session: Session, done: tokio::sync::oneshot::Receiver<()>) -> usize {
    let stream = session.open_stream(Class::Background).await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let write = async {
        let piece: Vec<u8> = (0..=250).cycle().take(251 * 400).collect();
        let mut done = std::pin::pin!(done);
        let mut sent = 0;
        loop {
            tokio::select! {
                biased;
                _ = &mut done => break,
                result = writer.write_all(&piece) => result.unwrap(),
            }
            sent += piece.len();
        }
        writer.shutdown().await.unwrap();
        sent
    };
    let read = async {
        let (mut received, mut buffer) = (0usize, vec![0; 100_000]);
        loop {
            let count = reader.read(&mut buffer).await.unwrap();
            if count == 0 {
                return received;
            }
            for (index, byte) in buffer[..count].iter().enumerate() {
                assert_eq!(usize::from(*byte), (received + index) % 251);
            }
            received += count;
        }
    };
    let (sent, received) = tokio::join!(write, read);
    // The write that was cut short may have put in a part.
    assert!(received >= sent);
    received
}

async fn path_dies_and_comes_back(how: Pass, mode: Mode) {
    let world = world(mode).await;
    let (mut relay, session) = relayed(&world).await;
    let (stop, done) = tokio::sync::oneshot::channel();
    let traffic = tokio::spawn(traffic(session.clone(), done));
    let received = || session.stats().received_bytes;
    eventually(|| received() > 4 << 20).await;
    relay.set(how).await;
    let before = received();
    eventually(|| received() > before + (16 << 20)).await;
    if how == Pass::Frozen {
        // TCP sees nothing wrong: the relay acknowledges what it keeps.
        eventually(|| suspected(&session, "relayed") >= 1).await;
    }
    relay.set(Pass::Open).await;
    if how == Pass::Cut {
        eventually(|| subflows(&session, "relayed") >= 2).await;
    }
    let carried = || {
        let stats = session.stats();
        stats.paths.iter().find(|p| p.name == "relayed").map_or(0, |p| p.new_bytes)
    };
    let before = carried();
    eventually(|| carried() > before + (1 << 20)).await;
    stop.send(()).unwrap();
    within(traffic).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_is_cut_and_comes_back() {
    path_dies_and_comes_back(Pass::Cut, Mode::Tls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_is_cut_and_comes_back_in_plaintext() {
    path_dies_and_comes_back(Pass::Cut, Mode::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_behind_a_proxy_falls_silent_and_comes_back() {
    path_dies_and_comes_back(Pass::Frozen, Mode::Tls).await;
}

/// Something on the way that ends every connection once it is there is not dialled without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_whose_subflows_never_live_is_dialled_with_pauses() {
    let world = world(Mode::Tls).await;
    let mut relay = Relay::start(world.addresses[0]).await;
    let session = world
        .connect(vec![path_to("direct", world.addresses[0]), path_to("relayed", relay.address)])
        .await;
    wait_for_paths(&session, 2).await;
    relay.set(Pass::Doomed).await;
    let before = relay.recorded().len();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    // Three at once, and one more every 7 s.
    let dialled = relay.recorded().len() - before;
    assert!((2..5).contains(&dialled), "{dialled} connections in 5 s");
    relay.set(Pass::Open).await;
    wait_for_paths(&session, 2).await;
    round_trip(&session, 1 << 20, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_lives_through_all_paths_being_down() {
    let world = world(Mode::Tls).await;
    let mut relay = Relay::start(world.addresses[0]).await;
    let session = world.connect(vec![path_to("only", relay.address)]).await;
    round_trip(&session, 1 << 20, 1).await;
    relay.set(Pass::Cut).await;
    eventually(|| up(&session) == 0).await;
    // Written while nobody carries it.
    let stream = session.open_stream(Class::Interactive).await.unwrap();
    let exchange = tokio::spawn(crate::world::exchange(stream, 1 << 20, 2));
    relay.set(Pass::Open).await;
    wait_for_paths(&session, 1).await;
    within(exchange).await.unwrap();
}

#[tokio::test]
async fn a_forgotten_session_is_closed() {
    let mut world = world(Mode::Tls).await;
    let mut relay = Relay::start(world.addresses[0]).await;
    let session = world.connect(vec![path_to("only", relay.address)]).await;
    let server = world.sessions.recv().await.unwrap();
    relay.set(Pass::Cut).await;
    eventually(|| up(&session) == 0 && up(&server) == 0).await;
    server.close(0, "gone while you were away").await;
    relay.set(Pass::Open).await;
    let reason = tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
    assert!(
        matches!(reason, fbdt::CloseReason::Local { code: fbdt::CLOSE_FORGOTTEN, .. }),
        "{reason}"
    );
}

/// A server that is out of descriptors, or whose disk fails, cannot read what it knows.
#[tokio::test]
async fn a_credential_that_cannot_be_read_now_makes_nobody_a_stranger() {
    let world = world(Mode::Tls).await;
    let id = world.credential.id.to_string();
    let file = world.state.directory().join("credentials").join(format!("{id}.json"));
    let away = file.with_extension("away");
    std::fs::rename(&file, &away).unwrap();
    std::fs::create_dir(&file).unwrap();
    let mut config = world.config(world.paths(1));
    config.connect_timeout = std::time::Duration::from_millis(500);
    let error = connect(config).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoPath { .. }), "to be tried again: {error}");
    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(&away, &file).unwrap();
    let session = connect(world.config(world.paths(1))).await.unwrap();
    round_trip(&session, 1 << 16, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_paths_that_are_all_withheld() {
    let world = world(Mode::Tls).await;
    let config = world.config(world.paths(2));
    let policies = config.policies.clone();
    policies.withhold("127.0.0.1", true);
    let session = connect(config.clone()).await.unwrap();
    round_trip(&session, 1 << 16, 1).await;
    session.close(0, "done").await;
    policies.withhold("127.0.0.2", true);
    let begun = std::time::Instant::now();
    let error = connect(config.clone()).await.unwrap_err();
    let ConnectError::Withheld { paths } = error else { panic!("{error}") };
    assert_eq!(paths, ["127.0.0.1", "127.0.0.2"]);
    assert!(begun.elapsed() < config.connect_timeout / 2, "it is said at once");
    let admitted = tokio::spawn({
        let policies = policies.clone();
        async move { policies.any_admitted(&paths).await }
    });
    policies.withhold("127.0.0.1", false);
    within(admitted).await.unwrap();
    let session = connect(config).await.unwrap();
    round_trip(&session, 1 << 16, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_hears_of_a_path_that_goes_and_comes_back() {
    let world = world(Mode::Tls).await;
    let mut relay = Relay::start(world.addresses[0]).await;
    let paths = vec![path_from(crate::world::loopback(1)), path_to("cut", relay.address)];
    let session = world.connect(paths).await;
    let mut events = session.events();
    let mut wait_for = async |health: Health| {
        loop {
            match within(events.next()).await {
                Some(SessionEvent::Path(path)) if path.name == "cut" && path.health == health => {
                    return path;
                }
                Some(_) => {}
                None => panic!("the session goes on"),
            }
        }
    };
    relay.set(Pass::Cut).await;
    assert_eq!(wait_for(Health::Dead).await.local, None);
    relay.set(Pass::Open).await;
    assert!(wait_for(Health::Active).await.local.is_some());
    session.close(0, "").await;
    let ended = async { while events.next().await.is_some() {} };
    within(ended).await;
    assert_eq!(session.events().next().await, None, "nothing happens any more");
}
