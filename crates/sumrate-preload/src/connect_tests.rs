use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// A configuration with a proxy on this machine, and its listener.
fn proxy() -> (Config, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let SocketAddr::V4(proxy) = listener.local_addr().unwrap() else { unreachable!() };
    let (auth, direct) = (None, Vec::new());
    (Config { proxy, auth, direct, names_at_exit: true, names: None, strict: false }, listener)
}

fn socket(family: c_int, flags: c_int) -> std::os::fd::OwnedFd {
    socket_of(family, libc::SOCK_STREAM | flags, 0).unwrap()
}

/// A socket, where the kernel has the protocol.
fn socket_of(family: c_int, kind: c_int, protocol: c_int) -> Option<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: a new descriptor that nobody else owns.
    unsafe {
        let socket = libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol);
        (socket >= 0).then(|| std::os::fd::OwnedFd::from_raw_fd(socket))
    }
}

/// What `connect` and `errno` say.
fn dial(config: &Config, socket: &impl AsRawFd, to: &str) -> Option<(c_int, c_int)> {
    let raw = RawAddress::from(to.parse::<SocketAddr>().unwrap());
    let (bytes, length) = (raw.bytes.as_ptr().cast(), raw.length as socklen_t);
    // SAFETY: the address lies on this stack.
    let outcome = unsafe { connect(config, socket.as_raw_fd(), bytes, length) }?;
    Some((outcome, errno()))
}

fn peer(socket: &impl AsRawFd) -> SocketAddr {
    let mut raw = RawAddress { bytes: [0; crate::address::LONGEST], length: 0 };
    let mut length = raw.bytes.len() as socklen_t;
    let address = raw.bytes.as_mut_ptr().cast();
    // SAFETY: both lie on this stack.
    assert_eq!(unsafe { getpeername(socket.as_raw_fd(), address, &raw mut length) }, 0);
    raw.length = length as usize;
    raw.socket_address()
}

/// Accepts one client, checks what it says first and answers.
fn serve(
    listener: TcpListener,
    expected: &[u8],
    answer: &[u8],
) -> std::thread::JoinHandle<TcpStream> {
    let (expected, answer) = (expected.to_vec(), answer.to_vec());
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut said = vec![0; expected.len()];
        client.read_exact(&mut said).unwrap();
        assert_eq!(said, expected);
        client.write_all(&answer).unwrap();
        client
    })
}

const REPLY: &[u8] = b"\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0hello";

#[test]
fn a_blocking_socket_waits_for_the_far_end() {
    let (config, listener) = proxy();
    let asked = b"\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50";
    let server = serve(listener, asked, REPLY);
    let socket = socket(libc::AF_INET, 0);
    assert_eq!(dial(&config, &socket, "192.0.2.1:80").unwrap().0, 0);
    assert_eq!(peer(&socket), "192.0.2.1:80".parse().unwrap());
    let copy = socket.try_clone().unwrap();
    assert_eq!(peer(&copy), "192.0.2.1:80".parse().unwrap());
    let mut text = [0; 5];
    TcpStream::from(socket).read_exact(&mut text).unwrap();
    assert_eq!(&text, b"hello", "no byte too many was read");
    server.join().unwrap();
}

#[test]
fn a_refusal_leaves_a_socket_that_can_be_used_again() {
    let (config, listener) = proxy();
    let again = listener.try_clone().unwrap();
    let server = serve(listener, b"\x05\x01\x00", b"\x05\x00\x05\x05\x00\x01\0\0\0\0\0\0");
    let socket = socket(libc::AF_INET, 0);
    assert_eq!(dial(&config, &socket, "192.0.2.1:80"), Some((-1, libc::ECONNREFUSED)));
    server.join().unwrap();
    let server = serve(again, b"\x05\x01\x00", REPLY);
    assert_eq!(dial(&config, &socket, "192.0.2.2:80").unwrap().0, 0);
    server.join().unwrap();
}

#[test]
fn a_socket_that_must_not_block_sends_all_at_once() {
    let (mut config, listener) = proxy();
    config.auth = Some((b"u".to_vec(), b"p".to_vec()));
    let said = b"\x05\x01\xd5\x01\x01u\x01p\x05\x01\x00\x03\x0bfar.example\x01\xbbGET";
    let server = serve(listener, said, b"hello");
    let socket = socket(libc::AF_INET6, libc::SOCK_NONBLOCK);
    let number = names::share_for_tests().number(b"far.example").unwrap();
    let to = SocketAddr::new(names::stand_in_v6(number).into(), 443);
    assert_eq!(dial(&config, &socket, &to.to_string()), Some((-1, libc::EINPROGRESS)));
    assert_eq!(peer(&socket), to);
    // A second call is the kernel's to answer.
    assert_eq!(dial(&config, &socket, &to.to_string()), None);
    let mut stream = TcpStream::from(socket);
    stream.write_all(b"GET").unwrap();
    stream.set_nonblocking(false).unwrap();
    let mut text = [0; 5];
    stream.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"hello");
    server.join().unwrap();
}

#[test]
fn what_is_none_of_ours_is_left_alone() {
    let (config, listener) = proxy();
    let tcp = socket(libc::AF_INET, 0);
    for direct in ["127.0.0.1:1", "0.0.0.0:1", "[::1]:1"] {
        assert_eq!(dial(&config, &tcp, direct), None, "{direct}");
    }
    let udp = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    assert_eq!(dial(&config, &udp, "192.0.2.1:53"), None);
    drop(listener);
    assert_eq!(dial(&config, &tcp, "192.0.2.1:80"), Some((-1, libc::ECONNREFUSED)));
}

/// A stand-in of a number that no name has.
fn unknown() -> String {
    let table = names::share_for_tests();
    let free = (0..).find(|number| table.get(*number).is_none()).unwrap();
    SocketAddr::new(names::stand_in_v4(free).into(), 80).to_string()
}

#[test]
fn a_stand_in_is_never_reached_directly() {
    let (mut config, _listener) = proxy();
    let unknown = unknown();
    let tcp = socket(libc::AF_INET, 0);
    assert_eq!(dial(&config, &tcp, &unknown), Some((-1, libc::EHOSTUNREACH)));
    for (kind, protocol) in [(libc::SOCK_DGRAM, 0), (libc::SOCK_RAW, 1), (libc::SOCK_DGRAM, 1)] {
        let Some(socket) = socket_of(libc::AF_INET, kind, protocol) else { continue };
        let said = dial(&config, &socket, &unknown);
        assert_eq!(said, Some((-1, libc::ENETUNREACH)), "{kind} {protocol}");
    }
    // A network that is to be reached directly changes nothing.
    config.direct.push(crate::config::Net { address: "198.18.0.0".parse().unwrap(), bits: 15 });
    assert_eq!(dial(&config, &tcp, &unknown), Some((-1, libc::EHOSTUNREACH)));
    config.names_at_exit = false;
    assert_eq!(dial(&config, &tcp, &unknown), None, "nothing stands for a name then");
}

#[test]
fn without_a_proxy_nothing_is_reached() {
    let (config, listener) = proxy();
    drop(listener);
    let number = names::share_for_tests().number(b"gone.example").unwrap();
    let name = SocketAddr::new(names::stand_in_v4(number).into(), 80).to_string();
    for flags in [0, libc::SOCK_NONBLOCK] {
        for to in ["192.0.2.1:80", &name] {
            let tcp = socket(libc::AF_INET, flags);
            assert_eq!(dial(&config, &tcp, to), Some((-1, libc::ECONNREFUSED)), "{to}");
            assert_eq!(kind(tcp.as_raw_fd()), Kind::FreshTcp, "{to}: it is connected to nobody");
            let said = dial(&Config::closed(), &tcp, to);
            assert_eq!(said, Some((-1, libc::ENETUNREACH)), "{to}");
        }
    }
}

#[test]
fn a_proxy_that_refuses_is_not_passed_by() {
    for answer in [&b"\x05\xff"[..], b"\x05\x00\x05\x02\x00\x01\0\0\0\0\0\0"] {
        let (config, listener) = proxy();
        let server = serve(listener, b"\x05\x01\x00", answer);
        let tcp = socket(libc::AF_INET, 0);
        assert_eq!(dial(&config, &tcp, "192.0.2.1:80"), Some((-1, libc::EACCES)));
        assert_eq!(kind(tcp.as_raw_fd()), Kind::FreshTcp);
        server.join().unwrap();
    }
}

#[test]
fn fast_open_on_connect_reaches_the_proxy() {
    for flags in [0, libc::SOCK_NONBLOCK] {
        let (config, listener) = proxy();
        let asked = if flags == 0 { b"\x05\x01\x00" } else { b"\x05\x01\xd5" };
        let server = serve(listener, asked, REPLY);
        let tcp = socket(libc::AF_INET, flags);
        set_option(tcp.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1);
        let expected = if flags == 0 { 0 } else { -1 };
        assert_eq!(dial(&config, &tcp, "192.0.2.1:80").unwrap().0, expected);
        assert_eq!(kind(tcp.as_raw_fd()), Kind::Connected);
        server.join().unwrap();
    }
}

#[test]
fn a_stream_of_another_protocol_is_refused() {
    const SCTP: c_int = 132;
    let (config, _listener) = proxy();
    let Some(sctp) = socket_of(libc::AF_INET, libc::SOCK_STREAM, SCTP) else { return };
    assert_eq!(dial(&config, &sctp, "192.0.2.1:80"), Some((-1, libc::EPROTONOSUPPORT)));
    assert_eq!(dial(&config, &sctp, "127.0.0.1:80"), None);
}

#[test]
fn an_ipv6_address_without_scope_is_taken() {
    let (config, listener) = proxy();
    let server = serve(listener, b"\x05\x01\x00", REPLY);
    let tcp = socket(libc::AF_INET6, 0);
    let raw = RawAddress::from("[2001:db8::1]:80".parse::<SocketAddr>().unwrap());
    // SAFETY: the address lies on this stack.
    let outcome = unsafe { connect(&config, tcp.as_raw_fd(), raw.bytes.as_ptr().cast(), 24) };
    assert_eq!(outcome, Some(0));
    server.join().unwrap();
}
