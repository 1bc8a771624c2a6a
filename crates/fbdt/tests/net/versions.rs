//! Other versions of the wire format and of the state directory: the first one still works, later
//! ones are refused in words that say what to do.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fbdt::{
    ClientConfig, ConnectError, CredentialId, Link, Priority, RefuseCode, ServerState, StateError,
    WhyIdle, connect,
};
use tokio::task::spawn_blocking;

use crate::first_version::{self as old, Credential, Inbox, ServerKey, Wire};
use crate::world::{Mode, World, round_trip, wait_for_paths, within, world};

const BOTH: [Mode; 2] = [Mode::Tls, Mode::Plain];

fn credential(world: &World) -> Credential {
    Credential { id: world.credential.id.0, secret: *world.credential.secret.expose() }
}

fn body(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 + at / 251) as u8).collect()
}

fn dial(mode: Mode, address: SocketAddr, alpn: &[&str]) -> Wire {
    let socket = TcpStream::connect(address).unwrap();
    match mode {
        Mode::Plain => Wire::plain(socket),
        Mode::Tls => {
            let (wire, chosen) = Wire::tls_client(socket, alpn).unwrap();
            assert_eq!(chosen, b"fbdt/1");
            wire
        }
    }
}

/// The old client opens a session, joins it with a second subflow, sends half of a stream on each
/// and gets all of it back.
fn old_client(mode: Mode, address: SocketAddr, credential: Credential, alpn: &[&str]) {
    let mut first = dial(mode, address, alpn);
    let member = old::open(&mut first, credential).unwrap();
    let mut second = dial(mode, address, alpn);
    old::join(&mut second, &member);
    let (sent, inbox) = (body(200_000), Mutex::new(Inbox::default()));
    let got = Mutex::new(Vec::new());
    let done = |wire: &mut Wire, bytes: Vec<u8>| {
        *got.lock().unwrap() = bytes;
        old::close(wire);
        false
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            old::announce_stream(&mut first);
            old::send_stream(&mut first, 0, &sent[..100_000], false);
            old::pump(&mut first, &inbox, done);
        });
        scope.spawn(|| {
            old::send_stream(&mut second, 100_000, &sent[100_000..], true);
            old::pump(&mut second, &inbox, done);
        });
    });
    assert!(*got.lock().unwrap() == sent, "{} bytes", got.lock().unwrap().len());
}

#[tokio::test]
async fn a_client_of_the_first_version_is_served() {
    for mode in BOTH {
        let world = world(mode).await;
        let (address, credential) = (world.addresses[0], credential(&world));
        within(spawn_blocking(move || old_client(mode, address, credential, &["fbdt/1"])))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_later_client_that_also_speaks_the_first_version_is_served() {
    let world = world(Mode::Tls).await;
    let (address, credential) = (world.addresses[0], credential(&world));
    let alpn = ["fbdt/9", "fbdt/8", "fbdt/1"];
    within(spawn_blocking(move || old_client(Mode::Tls, address, credential, &alpn)))
        .await
        .unwrap();
}

/// An old server for one session with any number of subflows, whose stream 1 is echoed.
struct OldServer {
    link: Link,
}

impl OldServer {
    fn start(mode: Mode, alpn: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let key = ServerKey::make();
        let credential = Credential { id: [7; 8], secret: [9; 32] };
        let c = URL_SAFE_NO_PAD.encode([&credential.id[..], &credential.secret].concat());
        let k = URL_SAFE_NO_PAD.encode(key.fingerprint);
        let text = match mode {
            Mode::Tls => format!("sumrate://{address}?v=1#k={k}&c={c}"),
            Mode::Plain => format!("sumrate://{address}?v=1&insecure=1#c={c}"),
        };
        let (opened, inbox) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Inbox::default())));
        let key = Arc::new(key);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (opened, inbox, key) = (opened.clone(), inbox.clone(), key.clone());
                std::thread::spawn(move || {
                    let wire = match mode {
                        Mode::Plain => Ok(Wire::plain(socket)),
                        Mode::Tls => Wire::tls_server(socket, &key, alpn),
                    };
                    let Ok(mut wire) = wire else { return };
                    old::welcome(&mut wire, credential, &opened);
                    old::pump(&mut wire, &inbox, |wire, bytes| {
                        old::send_stream(wire, 0, &bytes, true);
                        true
                    });
                });
            }
        });
        Self { link: text.parse().unwrap() }
    }

    fn config(&self, paths: u8) -> ClientConfig {
        ClientConfig {
            paths: (1..=paths)
                .map(|n| crate::world::path_from(crate::world::loopback(n)))
                .collect(),
            insecure_plaintext: self.link.is_insecure(),
            ..ClientConfig::new(self.link.clone())
        }
    }
}

#[tokio::test]
async fn a_server_of_the_first_version_serves() {
    for mode in BOTH {
        let server = OldServer::start(mode, &["fbdt/1"]);
        let session = within(connect(server.config(2))).await.unwrap();
        wait_for_paths(&session, 2).await;
        round_trip(&session, 100_000, 1).await;
    }
}

#[tokio::test]
async fn f15_a_server_of_the_first_version_takes_a_backup_for_any_other_path() {
    let server = OldServer::start(Mode::Tls, &["fbdt/1"]);
    let mut config = server.config(2);
    config.paths[1].priority = Priority::BACKUP;
    let session = within(connect(config)).await.unwrap();
    wait_for_paths(&session, 2).await;
    round_trip(&session, 100_000, 1).await;
    let stats = session.stats();
    let standby = stats.paths.iter().find(|path| path.id.0 == 1).unwrap();
    assert_eq!((standby.policy.priority, standby.why_idle), (Priority::BACKUP, WhyIdle::Standby));
    assert_eq!(standby.new_bytes, 0);
}

#[tokio::test]
async fn a_later_server_that_also_speaks_the_first_version_serves() {
    let server = OldServer::start(Mode::Tls, &["fbdt/9", "fbdt/1"]);
    let session = within(connect(server.config(1))).await.unwrap();
    round_trip(&session, 10_000, 1).await;
}

#[tokio::test]
async fn a_server_without_a_common_version_is_named_as_such() {
    let server = OldServer::start(Mode::Tls, &["fbdt/9"]);
    let error = within(connect(server.config(1))).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoCommonVersion { .. }), "{error}");
    assert!(error.to_string().contains("update the older side"), "{error}");
}

#[tokio::test]
async fn a_client_without_a_common_version_gets_the_alert_that_says_so() {
    let world = world(Mode::Tls).await;
    let address = world.addresses[0];
    let error = spawn_blocking(move || {
        let socket = TcpStream::connect(address).unwrap();
        Wire::tls_client(socket, &["fbdt/9"]).err().unwrap()
    });
    let error = within(error).await.unwrap();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
}

/// Sends this and says what came back: of a refusal the code and the words.
async fn answer(world: &World, request: Vec<u8>) -> Option<(u8, String)> {
    let (mode, address) = (world.mode, world.addresses[0]);
    within(spawn_blocking(move || {
        let mut wire = dial(mode, address, &["fbdt/1"]);
        wire.send(&request);
        let bytes = wire.rest();
        let (head, text) = bytes.split_at_checked(4)?;
        assert_eq!(head[0], 0x44, "{bytes:?}");
        Some((head[3], String::from_utf8(text.to_vec()).unwrap()))
    }))
    .await
    .unwrap()
}

#[tokio::test]
async fn a_hello_of_another_version_is_refused_in_words() {
    for mode in BOTH {
        let world = world(mode).await;
        for version in [0_u16, 3, 999] {
            // Nothing but the version's place is the same.
            let body = [&version.to_be_bytes()[..], &[0xff; 200]].concat();
            let hello = [&[0x41, 0, body.len() as u8][..], &body].concat();
            let (code, words) = answer(&world, hello).await.unwrap();
            assert_eq!(code, 1);
            assert!(words.contains("wire versions 1 and 2; update the older side"), "{words}");
        }
    }
}

#[tokio::test]
async fn a_hello_with_an_impossible_field_is_refused_and_what_is_none_gets_nothing() {
    let world = world(Mode::Tls).await;
    let mut hello = vec![0x41, 0, 67, 0, 1];
    hello.resize(3 + 67, 0); // largest frame 0
    assert_eq!(answer(&world, hello).await.map(|(code, _)| code), Some(4));
    for nothing in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 40], &[0x41, 0xff, 0xff], &[0xff; 600]] {
        assert_eq!(answer(&world, nothing.to_vec()).await, None, "{nothing:?}");
    }
}

/// A server that refuses everybody with this code.
fn refusing(code: u8) -> Link {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let mut wire = Wire::plain(socket);
            let _ = wire.message();
            wire.send(&[&[0x44, 0, 6, code][..], b"speak"].concat());
        }
    });
    let c = URL_SAFE_NO_PAD.encode([1; 40]);
    format!("sumrate://{address}?v=1&insecure=1#c={c}").parse().unwrap()
}

#[tokio::test]
async fn a_refusal_is_told_also_with_a_code_of_later_versions() {
    for (code, expected) in [(1, RefuseCode::Version), (77, RefuseCode::Other(77))] {
        let mut config = ClientConfig::new(refusing(code));
        config.insecure_plaintext = true;
        config.paths = vec![crate::world::path_from(crate::world::loopback(1))];
        let error = within(connect(config)).await.unwrap_err();
        assert!(error.to_string().contains("speak"), "{error}");
        assert!(matches!(error, ConnectError::Refused { code, .. } if code == expected), "{error}");
    }
}

/// A copy of the first version's state directory, private as it was.
fn first_state() -> tempfile::TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net/first_state");
    let directory = tempfile::tempdir().unwrap();
    for part in ["", "credentials", "usage"] {
        let path = directory.path().join(part);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    }
    for file in ["server.key", "server.crt", CREDENTIAL, USAGE] {
        let path = directory.path().join(file);
        std::fs::copy(source.join(file), &path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    }
    directory
}

const CREDENTIAL: &str = "credentials/12c71890fe85c80d.json";
const USAGE: &str = "usage/12c71890fe85c80d.json";
const ID: CredentialId = CredentialId([0x12, 0xc7, 0x18, 0x90, 0xfe, 0x85, 0xc8, 0x0d]);

#[test]
fn state_of_the_first_version_loads() {
    let directory = first_state();
    let state = ServerState::open(directory.path()).unwrap();
    let fingerprint = "290bb6195e36bbf98a557868e6b00c36d759067b2779156fec27e5e86461fcff";
    assert_eq!(state.fingerprint().to_string(), fingerprint);
    let credential = state.credential(ID).unwrap();
    assert_eq!((credential.name.as_str(), credential.created), ("the first laptop", 1_795_292_071));
    assert_eq!((credential.limits.rate, credential.limits.quota), (Some(1 << 20), Some(2 << 30)));
    assert_eq!(credential.limits.destinations.as_deref().unwrap(), ["[2001:db8::/32]:443"]);
    assert_eq!(state.usage(ID).unwrap(), 1_234_567);
    // Its join link is for this key and credential.
    let link = Link::from_str(include_str!("first_state/link.txt")).unwrap();
    let expected = Link::new(link.servers().to_vec(), Some(state.fingerprint()), &credential);
    assert_eq!(link, expected);
}

#[test]
fn state_of_a_later_version_is_refused_and_left_as_it_is() {
    let later = r#"{"version": 2, "secret": {"sealed": "TOPSECRET"}}"#;
    for file in [CREDENTIAL, USAGE] {
        let directory = first_state();
        std::fs::write(directory.path().join(file), later).unwrap();
        let state = ServerState::open(directory.path()).unwrap();
        let error = match file {
            USAGE => state.usage(ID).unwrap_err(),
            _ => state.credential(ID).unwrap_err(),
        };
        assert!(matches!(error, StateError::Newer { found: 2, .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains("update this program") && said.contains(file), "{said}");
        assert!(!said.contains("remove") && !said.contains("TOPSECRET"), "{said}");
        assert_eq!(std::fs::read_to_string(directory.path().join(file)).unwrap(), later);
    }
}

#[test]
fn a_directory_of_a_later_version_is_refused() {
    let directory = first_state();
    let version = directory.path().join("version");
    for (content, newer) in [("1\n", None), ("2\n", Some(true)), ("x", Some(false))] {
        std::fs::write(&version, content).unwrap();
        std::fs::set_permissions(&version, PermissionsExt::from_mode(0o600)).unwrap();
        let error = ServerState::open(directory.path()).err();
        let found = error.as_ref().map(|error| matches!(error, StateError::Newer { .. }));
        assert_eq!(found, newer, "{content}: {error:?}");
    }
}

#[test]
fn a_key_that_cannot_be_read_is_refused_with_advice() {
    let directory = first_state();
    std::fs::write(directory.path().join("server.key"), b"-----BEGIN LATER KEY-----").unwrap();
    let said = ServerState::open(directory.path()).unwrap_err().to_string();
    assert!(said.contains("server.key") && said.contains("newer version"), "{said}");
}
