//! Dials a target: every address is checked by the policy, then tried in turn, a new attempt every
//! 250 ms beside the ones still pending (RFC 8305).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::allowance::Allowance;
use super::policy::{Policy, RefusedReason};
use super::resolve::{Lookups, ResolveError, Resolver, SystemResolver, resolve};
use crate::service::FailureCode;
use crate::socket;

/// Time between two attempts.
const STAGGER: Duration = Duration::from_millis(250);
/// Longest time for all attempts together.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a target was not reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No address for the name.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The policy forbids every address of the target.
    #[error("the exit does not reach {target}: {reason}; {advice}", advice = advice(*reason))]
    NotAllowed {
        /// The address.
        target: SocketAddr,
        /// Why.
        reason: RefusedReason,
    },
    /// This machine's own addresses are not known now, so that none can be told to be another's.
    #[error(
        "the exit cannot list its own addresses ({0}) and connects to nobody meanwhile; try again"
    )]
    OwnAddresses(io::Error),
    /// The last attempt failed like this.
    #[error("cannot connect to {target}: {error}")]
    Connect {
        /// The address.
        target: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// No answer in time.
    #[error("{0} did not answer within 10 s")]
    TimedOut(String),
}

impl DialError {
    /// The code that the client is told.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::Resolve(_) => FailureCode::NameFailure,
            Self::NotAllowed { .. } => FailureCode::NotAllowed,
            Self::TimedOut(_) => FailureCode::TimedOut,
            Self::OwnAddresses(_) => FailureCode::General,
            Self::Connect { error, .. } => match error.kind() {
                io::ErrorKind::ConnectionRefused => FailureCode::Refused,
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
                    FailureCode::NetworkUnreachable
                }
                io::ErrorKind::HostUnreachable => FailureCode::HostUnreachable,
                io::ErrorKind::TimedOut => FailureCode::TimedOut,
                _ => FailureCode::General,
            },
        }
    }
}

/// Connects to targets for clients.
#[derive(Debug, Clone)]
pub struct Dialer<R = SystemResolver> {
    policy: Policy,
    congestion_control: String,
    resolver: R,
    lookups: Lookups,
    own_addresses: fn() -> io::Result<Vec<IpAddr>>,
}

impl Dialer {
    /// A dialer under this policy, whose sockets use this congestion control.
    pub fn new(policy: Policy, congestion_control: &str) -> Self {
        Self::with_resolver(policy, congestion_control, SystemResolver)
    }
}

impl<R: Resolver> Dialer<R> {
    /// The same with another source of addresses.
    pub fn with_resolver(policy: Policy, congestion_control: &str, resolver: R) -> Self {
        let congestion_control = congestion_control.to_owned();
        let lookups = Lookups::default();
        Self { policy, congestion_control, resolver, lookups, own_addresses }
    }

    /// The same for another session, which has its own share of the lookups.
    pub fn of_session(&self) -> Self {
        Self { lookups: self.lookups.of_session(), ..self.clone() }
    }

    async fn resolve(
        &self,
        host: &str,
        port: u16,
        allowance: &Allowance,
    ) -> Result<Vec<SocketAddr>, ResolveError> {
        let credential = &allowance.places().lookups;
        resolve(&self.resolver, host, port, &self.lookups, credential).await
    }

    /// What may be reached.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Resolves, checks and connects for a client with this allowance.
    pub async fn dial(
        &self,
        host: &str,
        port: u16,
        allowance: &Allowance,
    ) -> Result<TcpStream, DialError> {
        let found = self.resolve(host, port, allowance).await?;
        let targets = self.permitted(found, allowance)?;
        tokio::time::timeout(DIAL_TIMEOUT, self.race(targets))
            .await
            .map_err(|_| DialError::TimedOut(format!("{host}:{port}")))?
    }

    /// The address of `host`:`port` to which a client with this allowance may send datagrams, the
    /// first of those that the policy permits: what is checked here is what must be sent to.
    ///
    /// # Errors
    /// No address, or none that is permitted.
    pub async fn permitted_address(
        &self,
        host: &str,
        port: u16,
        allowance: &Allowance,
    ) -> Result<SocketAddr, DialError> {
        let found = self.resolve(host, port, allowance).await?;
        let found = self.permitted(found, allowance)?;
        let canonical =
            |target: &SocketAddr| SocketAddr::new(target.ip().to_canonical(), target.port());
        // An IPv4 socket reaches more than IPv6 ones do on many hosts.
        let four = found.iter().map(canonical).find(SocketAddr::is_ipv4);
        four.or(found.first().map(canonical))
            .ok_or_else(|| DialError::TimedOut(format!("{host}:{port}")))
    }

    fn permitted(
        &self,
        found: Vec<SocketAddr>,
        allowance: &Allowance,
    ) -> Result<Vec<SocketAddr>, DialError> {
        let own = (self.own_addresses)().map_err(DialError::OwnAddresses)?;
        let mut refusal = None;
        let mut permitted = Vec::new();
        for target in found {
            match allowance.check(target).and_then(|()| self.policy.check(target, &own)) {
                Ok(()) => permitted.push(target),
                Err(reason) => refusal = refusal.or(Some(DialError::NotAllowed { target, reason })),
            }
        }
        match refusal {
            Some(refusal) if permitted.is_empty() => Err(refusal),
            _ => Ok(permitted),
        }
    }

    async fn race(&self, targets: Vec<SocketAddr>) -> Result<TcpStream, DialError> {
        let mut waiting = targets.into_iter();
        let mut attempts = JoinSet::new();
        let mut last = None;
        loop {
            if let Some(target) = waiting.next() {
                let congestion_control = self.congestion_control.clone();
                attempts.spawn(async move {
                    socket::connect(target, &congestion_control)
                        .await
                        .map_err(|error| DialError::Connect { target, error })
                });
            }
            let stagger = tokio::time::sleep(STAGGER);
            let more = waiting.len() > 0;
            tokio::select! {
                finished = attempts.join_next() => match finished {
                    Some(Ok(Ok(stream))) => return Ok(stream),
                    Some(Ok(Err(error))) => last = Some(error),
                    Some(Err(_)) => {}
                    None => return Err(last.unwrap_or(DialError::TimedOut("the target".to_owned()))),
                },
                () = stagger, if more => {}
            }
        }
    }
}

fn advice(reason: RefusedReason) -> &'static str {
    match reason {
        RefusedReason::NotForCredential => "the server's operator can make one that does",
        _ => "the server's --allow can open it",
    }
}

/// The addresses of this machine's interfaces, now.
fn own_addresses() -> io::Result<Vec<IpAddr>> {
    Ok(crate::interfaces::addresses()?.into_iter().map(|(_, address)| address).collect())
}

#[cfg(test)]
mod tests {
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
        for host in
            ["127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "localhost", "::1", "0.0.0.0"]
        {
            let error = dialer(&[]).dial(host, port, &any).await.unwrap_err();
            assert_eq!(error.code(), FailureCode::NotAllowed, "{host}: {error}");
        }
    }

    /// The system reads numbers of many forms as addresses; it is the address that is judged.
    #[tokio::test]
    async fn forbidden_targets_are_known_in_every_notation() {
        let any = Allowance::default();
        let mut judged = 0;
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
            "LOCALHOST",
            "localhost.",
        ] {
            let error = dialer(&[]).dial(host, 80, &any).await.unwrap_err();
            let code = error.code();
            // A resolver that does not take it for an address knows no such name either.
            assert!(
                matches!(code, FailureCode::NotAllowed | FailureCode::NameFailure),
                "{host}: {error}"
            );
            judged += usize::from(code == FailureCode::NotAllowed);
        }
        assert!(judged >= 10, "only {judged} were taken for addresses: the test shows nothing");
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

    /// No name with a zone, and no name that no resolver should see, becomes an address.
    #[tokio::test]
    async fn odd_targets_are_refused_before_anything_is_asked() {
        let (any, dialer) = (Allowance::default(), dialer(&["::1", "127.0.0.0/8"]));
        let long = "a.".repeat(127);
        for host in ["fe80::1%lo", "::1%1", "[::1]", "127.0.0.1:80", "127.0.0.1/8", "", "..", &long]
        {
            let error = dialer.dial(host, 80, &any).await.unwrap_err();
            assert!(
                matches!(error, DialError::Resolve(ResolveError::NotAName(_))),
                "{host}: {error}"
            );
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
        assert_eq!(error.code(), FailureCode::NotAllowed, "{error}");
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
        let stream = dialer(&[]).race(vec![dead, good]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        let error = dialer(&[]).race(vec![dead]).await.unwrap_err();
        assert_eq!(error.code(), FailureCode::Refused);
    }

    #[tokio::test]
    async fn allow_opens_loopback() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(
            dialer(&["127.0.0.0/8"]).dial("127.0.0.1", port, &Allowance::default()).await.is_ok()
        );
    }
}
