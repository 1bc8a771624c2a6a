//! Dials a target: every address is checked by the policy, then tried in turn, a new attempt every
//! 250 ms beside the ones still pending (RFC 8305).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::allowance::Allowance;
use super::policy::{Policy, RefusedReason, embedded_v4};
use super::resolve::{ResolveError, Resolver, resolve};
use super::route::{Route, route};
use super::system::SystemResolver;
use crate::crowd::{Bounds, Crowd, Owner, number};
use crate::descriptors::Descriptors;
use crate::refusals::Refusals;
use crate::service::FailureCode;
use crate::socket;
use crate::status::AttemptsReport;

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
    /// The policy forbids the target.
    #[error("the server does not allow {target}: {reason}; {advice}")]
    NotAllowed {
        /// Host and port, as they were asked for.
        target: String,
        /// Why.
        reason: RefusedReason,
        /// What would allow it.
        advice: String,
    },
    /// The policy forbids every address of the name. The client is told the same of a name that nobody
    /// knows: what the server's resolver says of private names is not the client's to know.
    #[error("{}", ResolveError::Unknown(name.clone()))]
    NameNotAllowed {
        /// The name.
        name: String,
        /// The port.
        port: u16,
        /// Why.
        reason: RefusedReason,
    },
    /// This machine's own addresses are not known now, so that none can be told to be another's.
    #[error(
        "the server cannot find out its own addresses now ({0}), so it connects nowhere; try again"
    )]
    OwnAddresses(io::Error),
    /// The last attempt failed like this.
    #[error("cannot connect to {target}: {error}")]
    Connect {
        /// Host and port, as they were asked for.
        target: String,
        /// What the system said.
        error: io::Error,
    },
    /// No answer in time.
    #[error("{0} did not answer within 10 s")]
    TimedOut(String),
    /// Too many connections are being made.
    #[error(
        "{target} did not answer within {waited:.1} s, and too many other connections are being made"
    )]
    GaveWay {
        /// Host and port, as they were asked for.
        target: String,
        /// Seconds after which the attempt was given up.
        waited: f64,
    },
}

impl DialError {
    /// Notes a refused destination for the operator, who may know what the client may not: that a name
    /// exists. Its count tells no reason all the same.
    fn note(&self, refusals: &Refusals) {
        match self {
            Self::NotAllowed { target, reason, advice } => {
                let words = format!("refused a connection to {target}: {reason}; {advice}");
                refusals.note(target, reason.name(), &words);
            }
            Self::NameNotAllowed { name, port, reason } => {
                let words = format!(
                    "refused a connection to {name}:{port}: the name has no allowed address ({reason}); \
                     `sumrate serve --allow NETWORK` would allow it"
                );
                refusals.note(&format!("{name}:{port}"), "name", &words);
            }
            // Open metrics would else tell which names exist.
            Self::Resolve(ResolveError::Unknown(_)) => refusals.count("name"),
            _ => {}
        }
    }

    /// The code that the client is told.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::TimedOut(_)
            | Self::GaveWay { .. }
            | Self::Resolve(ResolveError::GaveWay { .. }) => FailureCode::TimedOut,
            Self::Resolve(_) | Self::NameNotAllowed { .. } => FailureCode::NameFailure,
            Self::NotAllowed { .. } => FailureCode::NotAllowed,
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
    dials: Arc<Crowd>,
    lookups: Arc<Crowd>,
    /// Of the session that it dials for.
    session: u64,
    refusals: Arc<Refusals>,
    own_addresses: fn() -> io::Result<Vec<IpAddr>>,
    route: fn(IpAddr) -> io::Result<Route>,
}

/// The target that a client asked for.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    host: &'a str,
    port: u16,
}

impl Asked<'_> {
    /// Whether the client knows the address: it has given it, or a name that is this machine everywhere
    /// (RFC 6761).
    fn is_literal(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse::<IpAddr>().is_ok()
    }

    fn refused(&self, reason: RefusedReason) -> DialError {
        match reason {
            // These say no more of a name than that it has an address of the Internet's.
            RefusedReason::PortClosed
            | RefusedReason::NotForCredential
            | RefusedReason::PortZero => self.not_allowed(reason),
            _ if self.is_literal() => self.not_allowed(reason),
            _ => DialError::NameNotAllowed { name: self.host.to_owned(), port: self.port, reason },
        }
    }

    fn not_allowed(&self, reason: RefusedReason) -> DialError {
        let address = match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().to_string(),
            Err(_) if self.host.eq_ignore_ascii_case("localhost") => "127.0.0.1".to_owned(),
            Err(_) => "NETWORK".to_owned(),
        };
        let advice = match reason {
            RefusedReason::PortZero => "give a port of 1 to 65535".to_owned(),
            RefusedReason::PortClosed => {
                format!("`sumrate serve --allow-port {}` would allow it", self.port)
            }
            RefusedReason::NotForCredential => {
                format!("a link of `sumrate credential add --destination {address}` would allow it")
            }
            _ => format!("`sumrate serve --allow {address}` would allow it"),
        };
        DialError::NotAllowed { target: self.to_string(), reason, advice }
    }
}

impl std::fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, self.port).fmt(f),
            Err(_) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Dialer {
    /// A dialer under this policy, whose sockets use this congestion control.
    pub fn new(policy: Policy, congestion_control: &str) -> Self {
        Self::with_resolver(policy, congestion_control, SystemResolver::default())
    }
}

impl<R: Resolver> Dialer<R> {
    /// Dials with another source of addresses.
    pub fn with_resolver(policy: Policy, congestion_control: &str, resolver: R) -> Self {
        let congestion_control = congestion_control.to_owned();
        let descriptors = Descriptors::of_process();
        let dials = Crowd::new(Bounds::of(descriptors.dials()));
        let lookups = Crowd::new(Bounds::of(descriptors.lookups()));
        let (session, refusals) = (number(), Arc::default());
        Self {
            policy,
            congestion_control,
            resolver,
            dials,
            lookups,
            session,
            refusals,
            own_addresses,
            route,
        }
    }

    /// Dials for another session, which has its own share of what may be under way.
    pub fn of_session(&self) -> Self {
        Self { session: number(), ..self.clone() }
    }

    /// Who takes a place for this client, to reach this host.
    pub(crate) fn owner(&self, host: &str, allowance: &Allowance) -> Owner {
        let target = host.to_ascii_lowercase().into();
        Owner { credential: allowance.places().number, session: self.session, target }
    }

    /// Attempts that are under way, of all sessions.
    pub fn attempts(&self) -> AttemptsReport {
        AttemptsReport {
            connecting: self.dials.taken() as u64,
            resolving: self.lookups.taken() as u64,
            gave_way: self.dials.gave_way() + self.lookups.gave_way(),
        }
    }

    /// Destinations that were refused, of all sessions.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The addresses that the client may reach by what it asked for; a refusal is noted.
    async fn targets(
        &self,
        asked: Asked<'_>,
        allowance: &Allowance,
    ) -> Result<Vec<SocketAddr>, DialError> {
        let found = self.judge(asked, allowance).await;
        found.inspect_err(|error| error.note(&self.refusals))
    }

    async fn judge(
        &self,
        asked: Asked<'_>,
        allowance: &Allowance,
    ) -> Result<Vec<SocketAddr>, DialError> {
        if asked.port == 0 {
            return Err(asked.refused(RefusedReason::PortZero));
        }
        let owner = self.owner(asked.host, allowance);
        let found = resolve(&self.resolver, asked.host, asked.port, &self.lookups, owner);
        self.permitted(asked, found.await?, allowance)
    }

    /// What may be reached.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Resolves, checks and connects for a client with this allowance, at once: where too many attempts
    /// are under way, one that has lasted longer is given up.
    pub async fn dial(
        &self,
        host: &str,
        port: u16,
        allowance: &Allowance,
    ) -> Result<TcpStream, DialError> {
        let asked = Asked { host, port };
        let place = self.dials.enter(self.owner(host, allowance));
        let dialled = async {
            let targets = self.targets(asked, allowance).await?;
            tokio::time::timeout(DIAL_TIMEOUT, self.race(asked, targets))
                .await
                .map_err(|_| DialError::TimedOut(asked.to_string()))?
        };
        tokio::select! {
            dialled = dialled => dialled,
            () = place.evicted() => {
                let waited = place.age().as_secs_f64();
                Err(DialError::GaveWay { target: asked.to_string(), waited })
            }
        }
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
        let asked = Asked { host, port };
        let found = self.targets(asked, allowance).await?;
        let canonical =
            |target: &SocketAddr| SocketAddr::new(target.ip().to_canonical(), target.port());
        // An IPv4 socket reaches more than IPv6 ones do on many hosts.
        let four = found.iter().map(canonical).find(SocketAddr::is_ipv4);
        four.or(found.first().map(canonical)).ok_or_else(|| DialError::TimedOut(asked.to_string()))
    }

    fn permitted(
        &self,
        asked: Asked<'_>,
        found: Vec<SocketAddr>,
        allowance: &Allowance,
    ) -> Result<Vec<SocketAddr>, DialError> {
        let own = (self.own_addresses)().map_err(DialError::OwnAddresses)?;
        let mut refusal = None;
        let mut permitted = Vec::new();
        for target in found {
            let checked = self.policy.check(target, &own).map_err(|reason| asked.refused(reason));
            let checked = checked.and_then(|()| self.check_route(asked, target));
            let own = || allowance.check(target).map_err(|reason| asked.refused(reason));
            match checked.and_then(|()| own()) {
                Ok(()) => permitted.push(target),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        match refusal {
            Some(refusal) if permitted.is_empty() => Err(refusal),
            _ => Ok(permitted),
        }
    }

    /// Whether the kernel sends what goes to `target` to another machine: local routes bring addresses
    /// here that no interface has.
    fn check_route(&self, asked: Asked<'_>, target: SocketAddr) -> Result<(), DialError> {
        if self.policy.opens(target) {
            return Ok(());
        }
        let address = target.ip().to_canonical();
        for address in [Some(address), embedded_v4(address).map(IpAddr::V4)].into_iter().flatten() {
            match (self.route)(address) {
                Ok(Route::Away) => {}
                Ok(Route::Here) => return Err(asked.refused(RefusedReason::OwnAddress)),
                Ok(Route::Many) => return Err(asked.refused(RefusedReason::Multicast)),
                // What the kernel has no way to is no address of its own. The dial says so.
                Err(error) if is_unreachable(&error) => {}
                Err(error) => return Err(DialError::OwnAddresses(error)),
            }
        }
        Ok(())
    }

    async fn race(
        &self,
        asked: Asked<'_>,
        targets: Vec<SocketAddr>,
    ) -> Result<TcpStream, DialError> {
        let mut waiting = targets.into_iter();
        let mut attempts = JoinSet::new();
        let mut last = None;
        loop {
            if let Some(target) = waiting.next() {
                let congestion_control = self.congestion_control.clone();
                let asked = asked.to_string();
                attempts.spawn(async move {
                    socket::connect(target, &congestion_control)
                        .await
                        .map_err(|error| DialError::Connect { target: asked, error })
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

fn is_unreachable(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), HostUnreachable | NetworkUnreachable)
}

/// The addresses of this machine's interfaces, now.
fn own_addresses() -> io::Result<Vec<IpAddr>> {
    Ok(crate::interfaces::addresses()?.into_iter().map(|(_, address)| address).collect())
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
