//! Names to addresses, once: the addresses that were checked are the addresses dialled, so that a
//! name cannot answer differently in between (DNS rebinding).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Longest time for a name, before the client is told that it failed.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
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
    /// The resolver said no.
    #[error("the name {name} could not be resolved: {error}")]
    Failed {
        /// The name.
        name: String,
        /// What the resolver said.
        error: std::io::Error,
    },
    /// The resolver answered without an address.
    #[error("the name {0} has no address")]
    NoAddress(String),
    /// The resolver did not answer.
    #[error("the name {0} could not be resolved within 5 s")]
    TimedOut(String),
}

/// Who knows the addresses of names.
pub trait Resolver: Send + Sync {
    /// All addresses of a name, with this port.
    fn look_up(
        &self,
        name: &str,
        port: u16,
    ) -> impl Future<Output = std::io::Result<Vec<SocketAddr>>> + Send;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    async fn look_up(&self, name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name, port)).await?.collect())
    }
}

/// Addresses of `host` with `port`, at most eight, IPv6 and IPv4 in turn. An address literal is
/// returned as it is.
pub async fn resolve(
    resolver: &impl Resolver,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, ResolveError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if !is_host_name(host) {
        return Err(ResolveError::NotAName(host.chars().take(80).collect()));
    }
    let found = tokio::time::timeout(RESOLVE_TIMEOUT, resolver.look_up(host, port))
        .await
        .map_err(|_| ResolveError::TimedOut(host.to_owned()))?
        .map_err(|error| ResolveError::Failed { name: host.to_owned(), error })?;
    let addresses = interleave(found);
    if addresses.is_empty() {
        return Err(ResolveError::NoAddress(host.to_owned()));
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
        let resolve = |host| resolve(&SystemResolver, host, 5);
        assert_eq!(resolve("::1").await.unwrap(), addresses(&["[::1]:5"]));
        assert!(matches!(resolve("[::1]").await, Err(ResolveError::NotAName(_))));
    }
}
