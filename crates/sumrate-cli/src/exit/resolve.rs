//! Names to addresses, once: the addresses that were checked are the addresses dialled, so that a
//! name cannot answer differently in between (DNS rebinding).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longest time for a name, before the client is told that it failed: the system's resolver gives its
/// first name server 5 s before it asks the second one.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(12);
/// Longest name that DNS allows.
const NAME_MAX: usize = 253;
/// Most addresses tried for one name.
const ADDRESSES_MAX: usize = 8;
/// Names that are looked up at a time: of all sessions, of one credential's, and of one session. Each
/// holds a thread until the system's resolver gives it up, long after its client was told; what else
/// needs threads has half of them left.
const LOOKUPS_MAX: usize = 256;
const CREDENTIAL_LOOKUPS_MAX: usize = 64;
const SESSION_LOOKUPS_MAX: usize = 32;

/// Why a name gave no address.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Empty, too long or with characters that no host name has.
    #[error("`{0}` is not a host name")]
    NotAName(String),
    /// The resolver knows no address.
    #[error(
        "`{0}` has no address that the server may connect to: check the name; if it is a private one, `sumrate serve --allow NETWORK` would allow it"
    )]
    Unknown(String),
    /// The resolver did not answer.
    #[error("the name {0} could not be resolved within 12 s")]
    TimedOut(String),
}

/// Whose turn it is to look up a name: bounds lookups over all sessions and of one.
#[derive(Debug, Clone)]
pub struct Lookups {
    server: Arc<Semaphore>,
    session: Arc<Semaphore>,
}

impl Default for Lookups {
    fn default() -> Self {
        let session = Arc::new(Semaphore::new(SESSION_LOOKUPS_MAX));
        Self { server: Arc::new(Semaphore::new(LOOKUPS_MAX)), session }
    }
}

impl Lookups {
    /// Those of another session of the same server.
    pub fn of_session(&self) -> Self {
        Self { server: Arc::clone(&self.server), ..Self::default() }
    }

    /// The bound of one credential's lookups.
    pub fn of_credential() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(CREDENTIAL_LOOKUPS_MAX))
    }

    /// Waits for a turn. Own turns come first, so that what waits here holds up nobody else.
    async fn turn(&self, credential: &Arc<Semaphore>) -> io::Result<[OwnedSemaphorePermit; 3]> {
        Ok([take(&self.session).await?, take(credential).await?, take(&self.server).await?])
    }
}

async fn take(bound: &Arc<Semaphore>) -> io::Result<OwnedSemaphorePermit> {
    Arc::clone(bound).acquire_owned().await.map_err(io::Error::other)
}

/// Who knows the addresses of names.
pub trait Resolver: Clone + Send + Sync + 'static {
    /// All addresses of a name, with this port.
    fn look_up(
        &self,
        name: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    async fn look_up(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name, port)).await?.collect())
    }
}

/// Looks a name up when it is its turn, which is over when the resolver is done with it: whoever
/// stops waiting does not free the resolver's thread.
async fn look_up(
    resolver: &impl Resolver,
    (host, port): (&str, u16),
    lookups: &Lookups,
    credential: &Arc<Semaphore>,
) -> io::Result<Vec<SocketAddr>> {
    let turn = lookups.turn(credential).await?;
    let (resolver, host) = (resolver.clone(), host.to_owned());
    let looking = tokio::spawn(async move {
        let _turn = turn;
        resolver.look_up(&host, port).await
    });
    looking.await.map_err(io::Error::other)?
}

/// Addresses of `host` with `port`, at most eight, IPv6 and IPv4 in turn. An address literal is
/// returned as it is.
pub async fn resolve(
    resolver: &impl Resolver,
    host: &str,
    port: u16,
    lookups: &Lookups,
    credential: &Arc<Semaphore>,
) -> Result<Vec<SocketAddr>, ResolveError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if !is_host_name(host) {
        return Err(ResolveError::NotAName(host.chars().take(80).collect()));
    }
    let looking = look_up(resolver, (host, port), lookups, credential);
    let found = tokio::time::timeout(RESOLVE_TIMEOUT, looking)
        .await
        .map_err(|_| ResolveError::TimedOut(host.to_owned()))?
        .unwrap_or_else(|error| {
            tracing::debug!(%error, "a name has no address");
            Vec::new()
        });
    let addresses = interleave(found);
    if addresses.is_empty() {
        return Err(ResolveError::Unknown(host.to_owned()));
    }
    Ok(addresses)
}

fn is_host_name(host: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    // inet_aton reads 0x7f.1 or 2130706433 as addresses: the policy judges what they resolve to.
    !host.is_empty() && host.len() <= NAME_MAX && host.bytes().all(allowed) && !host.contains("..")
}

/// First family first, then alternating (RFC 8305 §4), without duplicates.
fn interleave(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut unique: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !unique.contains(&address) {
            unique.push(address);
        }
    }
    let first_is_v6 = unique.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (std::collections::VecDeque<_>, std::collections::VecDeque<_>) =
        unique.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let mut order = Vec::new();
    while order.len() < ADDRESSES_MAX {
        match (first.pop_front(), second.pop_front()) {
            (None, None) => break,
            (a, b) => order.extend(a.into_iter().chain(b)),
        }
    }
    order.truncate(ADDRESSES_MAX);
    order
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;

    use super::*;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_alternate_from_the_preferred_one() {
        let found =
            addresses(&["[::2]:1", "[::3]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "1.0.0.3:1"]);
        let expected = addresses(&["[::2]:1", "1.0.0.1:1", "[::3]:1", "1.0.0.2:1", "1.0.0.3:1"]);
        assert_eq!(interleave(found), expected);
    }

    #[test]
    fn odd_names_are_refused_before_the_resolver() {
        for bad in ["", "a b", "a..b", "a/b", "é", "a\0b", &"a".repeat(254)] {
            assert!(!is_host_name(bad), "{bad}");
        }
        assert!(is_host_name("example.org") && is_host_name("_srv.host-1"));
    }

    #[tokio::test]
    async fn literals_need_no_resolver() {
        let (lookups, credential) = (Lookups::default(), Lookups::of_credential());
        let resolve = |host| resolve(&SystemResolver, host, 5, &lookups, &credential);
        assert_eq!(resolve("::1").await.unwrap(), addresses(&["[::1]:5"]));
        assert!(matches!(resolve("[::1]").await, Err(ResolveError::NotAName(_))));
    }

    /// Hangs over every name but one, until it is let go.
    #[derive(Clone)]
    struct Hanging {
        running: Arc<AtomicUsize>,
        go: Arc<Semaphore>,
    }

    impl Resolver for Hanging {
        async fn look_up(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            if name != "good.test" {
                self.running.fetch_add(1, Ordering::Relaxed);
                let _go = self.go.acquire().await;
                self.running.fetch_sub(1, Ordering::Relaxed);
            }
            Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))])
        }
    }

    /// Time stands still until everybody waits.
    #[tokio::test(start_paused = true)]
    async fn names_that_hang_hold_up_nobody_elses_and_no_more_threads_than_their_share() {
        let resolver = Hanging { running: Arc::default(), go: Arc::new(Semaphore::new(0)) };
        let (server, credentials) =
            (Lookups::default(), [(); 2].map(|()| Lookups::of_credential()));
        let running = || resolver.running.load(Ordering::Relaxed);
        let hang = async |sessions: usize, names: usize| {
            let mut asking = JoinSet::new();
            for _ in 0..sessions {
                let session = server.of_session();
                for _ in 0..names {
                    let (resolver, session) = (resolver.clone(), session.clone());
                    let credential = Arc::clone(&credentials[0]);
                    asking.spawn(async move {
                        resolve(&resolver, "bad.test", 80, &session, &credential).await
                    });
                }
            }
            let told = asking.join_all().await;
            assert!(told.iter().all(|told| matches!(told, Err(ResolveError::TimedOut(_)))));
        };
        hang(1, 100).await;
        assert_eq!(running(), SESSION_LOOKUPS_MAX, "nobody waits for them any more");
        hang(9, 100).await;
        assert_eq!(running(), CREDENTIAL_LOOKUPS_MAX, "more sessions do not help");
        let good = |credential| {
            let (session, resolver) = (server.of_session(), resolver.clone());
            async move { resolve(&resolver, "good.test", 80, &session, credential).await }
        };
        good(&credentials[1]).await.unwrap();
        assert!(matches!(good(&credentials[0]).await, Err(ResolveError::TimedOut(_))));
        resolver.go.add_permits(1000);
        good(&credentials[0]).await.unwrap();
        while running() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
