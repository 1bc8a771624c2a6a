//! Names to addresses, once: the addresses that were checked are the addresses dialled, so that a
//! name cannot answer differently in between (DNS rebinding).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::crowd::{Crowd, Owner};

/// Longest time for a name.
pub(super) const RESOLVE_TIMEOUT: Duration = Duration::from_secs(6);
/// Longest name that DNS allows.
const NAME_MAX: usize = 253;
/// Most addresses tried for one name.
const ADDRESSES_MAX: usize = 8;

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
    #[error("the name {0} could not be resolved within {limit} s", limit = RESOLVE_TIMEOUT.as_secs())]
    TimedOut(String),
    /// Too many names are looked up.
    #[error("{name} was not resolved within {waited:.1} s, and too many other names are looked up")]
    GaveWay {
        /// The name.
        name: String,
        /// Seconds after which it was given up.
        waited: f64,
    },
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

/// Addresses of `host` with `port`, at most eight, IPv6 and IPv4 in turn. An address literal is
/// returned as it is, and takes no place among those who look up names.
pub async fn resolve(
    resolver: &impl Resolver,
    host: &str,
    port: u16,
    lookups: &Arc<Crowd>,
    owner: Owner,
) -> Result<Vec<SocketAddr>, ResolveError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if !is_host_name(host) {
        return Err(ResolveError::NotAName(host.chars().take(80).collect()));
    }
    let place = lookups.enter(owner);
    let found = tokio::select! {
        found = tokio::time::timeout(RESOLVE_TIMEOUT, resolver.look_up(host, port)) => found,
        () = place.evicted() => {
            let waited = place.age().as_secs_f64();
            return Err(ResolveError::GaveWay { name: host.to_owned(), waited });
        }
    };
    let found = match found {
        Ok(Ok(found)) => found,
        Ok(Err(error)) if error.kind() != io::ErrorKind::TimedOut => {
            tracing::debug!(%error, "a name has no address");
            Vec::new()
        }
        Ok(Err(_)) | Err(_) => return Err(ResolveError::TimedOut(host.to_owned())),
    };
    let addresses = interleave(found);
    if addresses.is_empty() {
        return Err(ResolveError::Unknown(host.to_owned()));
    }
    Ok(addresses)
}

fn is_host_name(host: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let is_short = !host.is_empty() && host.len() <= NAME_MAX;
    is_short && host.bytes().all(allowed) && !host.contains("..") && !ends_in_number(host)
}

/// Whether it is no name but an address in a notation such as 0x7f.1 or 2130706433, which nobody needs
/// and some hide behind.
fn ends_in_number(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit('.').next().unwrap_or(host);
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => last.bytes().all(|b| b.is_ascii_digit()),
    }
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
    use tokio::task::JoinSet;

    use super::*;
    use crate::crowd::Bounds;

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

    fn owner(credential: u64, session: u64, target: &str) -> Owner {
        Owner { credential, session, target: target.into() }
    }

    /// Hangs over every name but one.
    #[derive(Clone)]
    struct Hanging;

    impl Resolver for Hanging {
        async fn look_up(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            if name != "good.test" {
                std::future::pending::<()>().await;
            }
            Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))])
        }
    }

    #[tokio::test]
    async fn literals_need_no_resolver_and_no_place() {
        let lookups = Crowd::new(Bounds::of(4));
        let resolve = |host| resolve(&Hanging, host, 5, &lookups, owner(1, 1, host));
        assert_eq!(resolve("::1").await.unwrap(), addresses(&["[::1]:5"]));
        for no_name in ["[::1]", "127.1", "0x7f.1", "2130706433", "127.0.0.1.", "a.0X7F"] {
            let found = resolve(no_name).await;
            assert!(matches!(found, Err(ResolveError::NotAName(_))), "{no_name}");
        }
        assert_eq!(resolve("good.test").await.unwrap().len(), 1);
        assert_eq!((lookups.taken(), lookups.gave_way()), (0, 0));
    }

    /// Time stands still until everybody waits.
    #[tokio::test(start_paused = true)]
    async fn names_that_hang_hold_up_nobody() {
        let lookups = Crowd::new(Bounds::of(64));
        let mut hanging = JoinSet::new();
        for session in 0..10 {
            for _ in 0..100 {
                let lookups = Arc::clone(&lookups);
                hanging.spawn(async move {
                    let owner = owner(1, session, "bad.test");
                    resolve(&Hanging, "bad.test", 80, &lookups, owner).await
                });
            }
        }
        while lookups.gave_way() < 1000 - 32 {
            tokio::task::yield_now().await;
        }
        assert_eq!(lookups.taken(), 32, "half of all places are for one credential");
        let begun = tokio::time::Instant::now();
        for of in [(1, 1), (1, 99), (2, 100)] {
            let owner = owner(of.0, of.1, "good.test");
            resolve(&Hanging, "good.test", 80, &lookups, owner).await.unwrap();
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "nobody waits for those that hang");
        let mut timed_out = 0;
        while let Some(found) = hanging.join_next().await {
            let error = found.unwrap().unwrap_err();
            timed_out += usize::from(matches!(error, ResolveError::TimedOut(_)));
        }
        assert!((29..=32).contains(&timed_out), "{timed_out} of the others waited to their end");
        assert_eq!(begun.elapsed(), RESOLVE_TIMEOUT);
    }
}
