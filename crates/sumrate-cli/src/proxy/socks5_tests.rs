use super::*;
use crate::args::ProxyAuth;
use proptest::prelude::*;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Feeds `input` to a handshake whole or byte by byte; gives the outcome, what was answered and what
/// was left over.
fn run(
    input: &[u8],
    auth: Option<&ProxyAuth>,
    step: usize,
) -> (Result<Request, SocksError>, Vec<u8>, Vec<u8>) {
    block_on(async {
        let (mut client, mut server) = tokio::io::duplex(4096);
        let input = input.to_vec();
        let feeder = tokio::spawn(async move {
            for chunk in input.chunks(step) {
                if client.write_all(chunk).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            client.shutdown().await.unwrap();
            let mut answered = Vec::new();
            client.read_to_end(&mut answered).await.unwrap();
            answered
        });
        let mut rest = Vec::new();
        let outcome = handshake(&mut server, auth, &mut rest).await;
        if outcome.is_ok() {
            server.read_to_end(&mut rest).await.unwrap();
        }
        drop(server);
        (outcome, feeder.await.unwrap(), rest)
    })
}

fn target(host: &str, port: u16) -> Request {
    Request { command: Command::Connect, target: Target { host: host.to_owned(), port } }
}

#[test]
fn every_address_type_in_one_piece_and_byte_by_byte() {
    let mut name = b"\x05\x01\x00\x05\x01\x00\x03\x0bexample.org\x01\xbbearly".to_vec();
    let v4 = b"\x05\x02\x02\x00\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50".to_vec();
    let mut v6 = b"\x05\x01\x00\x05\x01\x00\x04".to_vec();
    v6.extend("2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
    v6.extend([0x1f, 0x90]);
    for step in [1, 3, 4096] {
        let (outcome, answered, rest) = run(&name, None, step);
        assert_eq!(outcome.unwrap(), target("example.org", 443));
        assert_eq!(answered, [5, 0]);
        assert_eq!(rest, b"early");
        assert_eq!(run(&v4, None, step).0.unwrap(), target("1.2.3.4", 80));
        assert_eq!(run(&v6, None, step).0.unwrap(), target("2001:db8::7", 8080));
    }
    name[7] = 200;
    assert!(matches!(run(&name, None, 4096).0, Err(SocksError::Io(_))));
}

#[test]
fn password() {
    let auth: ProxyAuth = "me:secret".parse().unwrap();
    let request = b"\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50";
    let with = |credentials: &[u8]| [b"\x05\x02\x00\x02".as_slice(), credentials, request].concat();
    let (outcome, answered, _) = run(&with(b"\x01\x02me\x06secret"), Some(&auth), 1);
    assert_eq!(outcome.unwrap(), target("1.2.3.4", 80));
    assert_eq!(answered, [5, 2, 1, 0]);
    let (outcome, answered, _) = run(&with(b"\x01\x02me\x05wrong"), Some(&auth), 4096);
    assert!(matches!(outcome, Err(SocksError::WrongPassword)));
    assert_eq!(answered, [5, 2, 1, 1]);
    let (outcome, answered, _) = run(b"\x05\x01\x00", Some(&auth), 4096);
    assert!(matches!(outcome, Err(SocksError::NoMethod)));
    assert_eq!(answered, [5, 0xff]);
}

#[test]
fn other_commands_versions_and_types_get_their_reply() {
    for (request, code) in [
        (b"\x05\x02\x00\x01\x01\x02\x03\x04\x00\x50", Reply::CommandNotSupported),
        (b"\x05\x04\x00\x01\x01\x02\x03\x04\x00\x50", Reply::CommandNotSupported),
        (b"\x05\x01\x00\x09\x01\x02\x03\x04\x00\x50", Reply::AddressTypeNotSupported),
        (b"\x05\x01\x00\x03\x00\x02\x03\x04\x00\x50", Reply::GeneralFailure),
    ] {
        let (outcome, answered, _) =
            run(&[b"\x05\x01\x00".as_slice(), request].concat(), None, 4096);
        assert!(outcome.is_err());
        assert_eq!(answered[2..4], [5, code as u8]);
    }
    assert!(matches!(run(b"GET / HTTP/1.1\r\n\r\n", None, 4096).0, Err(SocksError::Version(b'G'))));
}

#[test]
fn an_association_is_a_request_too() {
    let (outcome, ..) = run(b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\x1f\x90", None, 3);
    let target = Target { host: "0.0.0.0".to_owned(), port: 8080 };
    assert_eq!(outcome.unwrap(), Request { command: Command::UdpAssociate, target });
    let mut answer = Vec::new();
    block_on(bound(&mut answer, "127.0.0.1:8080".parse().unwrap())).unwrap();
    assert_eq!(answer, b"\x05\0\0\x01\x7f\0\0\x01\x1f\x90");
}

#[test]
fn every_failure_has_a_reply_that_is_no_success() {
    for code in FailureCode::ALL {
        assert_ne!(Reply::from(code), Reply::Succeeded);
    }
    assert_eq!(Reply::from(FailureCode::Refused), Reply::Refused);
    assert_eq!(Reply::from(FailureCode::NameFailure), Reply::HostUnreachable);
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_greeting(&bytes);
        let _ = parse_credentials(&bytes);
        let _ = parse_request(&bytes);
        let greeted: Vec<u8> = [b"\x05\x01\x00\x05\x01\x00".as_slice(), &bytes].concat();
        let _ = parse_request(&greeted[3..]);
        let _ = run(&greeted, None, 4096);
    }

    #[test]
    fn domains_round_trip(name in "[a-z0-9.-]{1,255}", port: u16) {
        let mut bytes = vec![5, 1, 0, 3, name.len() as u8];
        bytes.extend(name.as_bytes());
        bytes.extend(port.to_be_bytes());
        let (parsed, length) = parse_request(&bytes).unwrap().unwrap();
        prop_assert_eq!(parsed, target(&name, port));
        prop_assert_eq!(length, bytes.len());
    }
}
