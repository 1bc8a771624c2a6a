use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use tokio::net::TcpListener;

fn dialer(allow: &[&str]) -> Dialer {
    let rules = allow.iter().map(|rule| rule.parse().unwrap()).collect();
    Dialer::new(Policy::new(rules, Vec::new()), "cubic")
}

#[tokio::test]
async fn forbidden_targets_are_not_dialled() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let any = Allowance::default();
    for host in ["127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "localhost", "::1", "0.0.0.0"] {
        let error = dialer(&[]).dial(host, port, &any).await.unwrap_err();
        assert!(is_forbidden(&error), "{host}: {error}");
    }
}

fn is_forbidden(error: &DialError) -> bool {
    matches!(error, DialError::NotAllowed { .. } | DialError::NameNotAllowed { .. })
}

/// The system reads numbers of many forms as addresses; here they are no names.
#[tokio::test]
async fn forbidden_targets_are_known_in_every_notation() {
    let any = Allowance::default();
    let resolver = Fickle::new(&[&["127.0.0.1:80".parse().unwrap()]]);
    for host in [
        "127.1",
        "0177.0.0.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "169.254.43518",
        "0x0a.0.0.1",
        "0300.0250.1.1",
        "0",
        "127.0.0.1.",
    ] {
        let dialer = rebinding("192.0.2.1:1".parse().unwrap(), &resolver);
        let error = dialer.dial(host, 80, &any).await.unwrap_err();
        assert!(matches!(error, DialError::Resolve(ResolveError::NotAName(_))), "{host}: {error}");
    }
    assert_eq!(resolver.asked.load(Ordering::Relaxed), 0, "nobody is asked");
    for host in ["localhost", "LOCALHOST", "localhost."] {
        let error = dialer(&[]).dial(host, 80, &any).await.unwrap_err();
        assert!(is_forbidden(&error), "{host}: {error}");
    }
}

/// The system needs a descriptor to tell them, of which a client can make it run out.
#[tokio::test]
async fn without_its_own_addresses_the_exit_reaches_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (any, port) = (Allowance::default(), listener.local_addr().unwrap().port());
    let mut dialer = dialer(&["127.0.0.0/8"]);
    dialer.own_addresses = || Err(io::Error::from_raw_os_error(nix::libc::EMFILE));
    let error = dialer.dial("127.0.0.1", port, &any).await.unwrap_err();
    assert!(matches!(error, DialError::OwnAddresses(_)), "{error}");
    let error = dialer.permitted_address("127.0.0.1", port, &any).await.unwrap_err();
    assert!(matches!(error, DialError::OwnAddresses(_)), "{error}");
    nobody_came(&listener).await;
    dialer.own_addresses = own_addresses;
    assert!(dialer.dial("127.0.0.1", port, &any).await.is_ok());
}

/// An answering machine, and what the kernel would say of the way to it.
async fn routed(route: fn(IpAddr) -> io::Result<Route>, host: &str) -> DialError {
    let answer: SocketAddr = "8.8.8.8:80".parse().unwrap();
    let mut dialer = rebinding("192.0.2.1:1".parse().unwrap(), &Fickle::new(&[&[answer]]));
    dialer.route = route;
    dialer.permitted_address(host, 80, &Allowance::default()).await.unwrap_err()
}

#[tokio::test]
async fn addresses_that_are_routed_here_are_refused() {
    for host in ["8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"] {
        let four: fn(IpAddr) -> io::Result<Route> =
            |address| Ok(if address.is_ipv4() { Route::Here } else { Route::Away });
        let error = routed(four, host).await;
        let own = RefusedReason::OwnAddress;
        assert!(matches!(error, DialError::NotAllowed { reason, .. } if reason == own), "{error}");
    }
    let error = routed(|_| Ok(Route::Here), "name.test").await;
    assert!(matches!(error, DialError::NameNotAllowed { .. }), "{error}");
    let error = routed(|_| Ok(Route::Many), "8.8.8.8").await;
    assert_eq!(error.code(), FailureCode::NotAllowed, "{error}");
}

#[tokio::test]
async fn without_the_kernels_route_nobody_is_reached() {
    let silent = |_| Err(io::Error::from_raw_os_error(nix::libc::EMFILE));
    let error = routed(silent, "8.8.8.8").await;
    assert!(matches!(error, DialError::OwnAddresses(_)), "{error}");
    // A rule opens the target, whoever it is.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut dialer = dialer(&["127.0.0.1"]);
    dialer.route = silent;
    let port = listener.local_addr().unwrap().port();
    assert!(dialer.dial("127.0.0.1", port, &Allowance::default()).await.is_ok());
}

/// A name that the resolver does not know, and names that lead to addresses of the server's networks.
#[tokio::test]
async fn refusals_do_not_tell_what_private_names_are() {
    let secret: [&[SocketAddr]; 5] = [
        &[],
        &["127.0.0.1:25".parse().unwrap()],
        &["10.1.2.3:25".parse().unwrap()],
        &["[fd00::7]:25".parse().unwrap(), "192.168.9.9:25".parse().unwrap()],
        &["169.254.169.254:25".parse().unwrap()],
    ];
    let limits = fbdt::CredentialLimits {
        destinations: Some(vec!["1.2.3.4".to_owned()]),
        ..Default::default()
    };
    for allowance in [Allowance::default(), Allowance::new(&limits, 0).unwrap()] {
        let mut told = Vec::new();
        for found in secret {
            let dialer = rebinding("192.0.2.1:1".parse().unwrap(), &Fickle::new(&[found]));
            let error = dialer.dial("vm.test", 25, &allowance).await.unwrap_err();
            let counted = dialer.refusals().report().unwrap().reasons;
            told.push((error.code(), error.to_string(), counted));
        }
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
        assert!(told[0].1.contains("vm.test") && told[0].1.contains("--allow"), "{told:?}");
    }
}

#[tokio::test]
async fn what_fails_is_named_as_it_was_asked_for() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = closed.local_addr().unwrap();
    drop(closed);
    let dialer = rebinding(dead, &Fickle::new(&[&[dead]]));
    let error = dialer.dial("vm.test", dead.port(), &Allowance::default()).await.unwrap_err();
    assert_eq!(error.code(), FailureCode::Refused);
    let words = error.to_string();
    assert!(words.contains("vm.test") && !words.contains("127.0.0.1"), "{words}");
    let error = dialer.dial("10.0.0.1", 80, &Allowance::default()).await.unwrap_err();
    let words = "the server does not allow 10.0.0.1:80: it is in a private network; `sumrate serve \
                 --allow 10.0.0.1` would allow it";
    assert_eq!(error.to_string(), words);
    let latest = dialer.refusals().report().unwrap().latest;
    assert_eq!((latest[0].destination.as_str(), latest[0].count), ("10.0.0.1:80", 1));
    assert!(latest[0].words.contains("--allow 10.0.0.1`"), "{latest:?}");
}

#[tokio::test]
async fn a_closed_port_is_closed_to_names_and_datagrams() {
    let mail: SocketAddr = "8.8.8.8:25".parse().unwrap();
    let dialer = rebinding("192.0.2.1:1".parse().unwrap(), &Fickle::new(&[&[mail], &[mail]]));
    let any = Allowance::default();
    for host in ["mx.test", "8.8.8.8"] {
        let error = dialer.dial(host, 25, &any).await.unwrap_err();
        assert!(error.to_string().contains("--allow-port"), "{error}");
        let error = dialer.permitted_address(host, 25, &any).await.unwrap_err();
        assert_eq!(error.code(), FailureCode::NotAllowed, "{error}");
    }
}

/// No name with a zone, and no name that no resolver should see, becomes an address.
#[tokio::test]
async fn odd_targets_are_refused_before_anything_is_asked() {
    let (any, dialer) = (Allowance::default(), dialer(&["::1", "127.0.0.0/8"]));
    let long = "a.".repeat(127);
    for host in ["fe80::1%lo", "::1%1", "[::1]", "127.0.0.1:80", "127.0.0.1/8", "", "..", &long] {
        let error = dialer.dial(host, 80, &any).await.unwrap_err();
        assert!(matches!(error, DialError::Resolve(ResolveError::NotAName(_))), "{host}: {error}");
    }
    let error = dialer.dial("127.0.0.1", 0, &any).await.unwrap_err();
    assert_eq!(error.code(), FailureCode::NotAllowed, "port 0: {error}");
}

/// Answers differently each time it is asked.
struct Fickle {
    answers: Mutex<VecDeque<Vec<SocketAddr>>>,
    asked: AtomicUsize,
}

impl Fickle {
    fn new(answers: &[&[SocketAddr]]) -> Arc<Self> {
        let answers = answers.iter().map(|answer| answer.to_vec()).collect();
        Arc::new(Self { answers: Mutex::new(answers), asked: AtomicUsize::new(0) })
    }
}

impl Resolver for Arc<Fickle> {
    async fn look_up(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(self.answers.lock().unwrap().pop_front().unwrap_or_default())
    }
}

async fn listeners() -> [(TcpListener, SocketAddr); 2] {
    let listen = async |address| {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    };
    [listen("127.0.0.1:0").await, listen("127.0.0.2:0").await]
}

fn rebinding(allow: SocketAddr, resolver: &Arc<Fickle>) -> Dialer<Arc<Fickle>> {
    let policy = Policy::new(vec![allow.to_string().parse().unwrap()], Vec::new());
    let congestion_control = crate::socket::default_congestion_control();
    Dialer::with_resolver(policy, &congestion_control, Arc::clone(resolver))
}

#[tokio::test]
async fn a_name_that_changes_its_address_after_the_check_gains_nothing() {
    let [(_open, allowed), (shut, forbidden)] = listeners().await;
    let resolver = Fickle::new(&[&[allowed], &[forbidden], &[forbidden]]);
    let dialer = rebinding(allowed, &resolver);
    let stream = dialer.dial("rebind.test", 80, &Allowance::default()).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), allowed, "what was checked is what is dialled");
    assert_eq!(resolver.asked.load(Ordering::Relaxed), 1, "it is asked once");
    // The next dial asks again, and judges the new answer.
    let error = dialer.dial("rebind.test", 80, &Allowance::default()).await.unwrap_err();
    assert!(is_forbidden(&error), "{error}");
    nobody_came(&shut).await;
}

#[tokio::test]
async fn of_a_name_with_open_and_forbidden_addresses_only_the_open_are_dialled() {
    let [(_open, allowed), (shut, forbidden)] = listeners().await;
    for order in [[forbidden, allowed], [allowed, forbidden]] {
        let resolver = Fickle::new(&[&order]);
        let dialer = rebinding(allowed, &resolver);
        let stream = dialer.dial("both.test", 80, &Allowance::default()).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), allowed);
    }
    nobody_came(&shut).await;
}

/// On loopback, a connection that was made is in the listener's queue by now.
async fn nobody_came(listener: &TcpListener) {
    let waiting = std::future::poll_fn(|context| {
        std::task::Poll::Ready(listener.poll_accept(context).is_ready())
    });
    assert!(!waiting.await, "a forbidden address was dialled");
}

#[tokio::test]
async fn a_permitted_target_is_reached_after_a_dead_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let good = listener.local_addr().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = closed.local_addr().unwrap();
    drop(closed);
    let asked = Asked { host: "two.test", port: 80 };
    let stream = dialer(&[]).race(asked, vec![dead, good]).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), good);
    let error = dialer(&[]).race(asked, vec![dead]).await.unwrap_err();
    assert_eq!(error.code(), FailureCode::Refused);
}

#[tokio::test]
async fn allow_opens_loopback() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!(dialer(&["127.0.0.0/8"]).dial("127.0.0.1", port, &Allowance::default()).await.is_ok());
}
