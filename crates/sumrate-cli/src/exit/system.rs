//! Names as this machine knows them: by /etc/hosts and by the name servers of /etc/resolv.conf, which
//! are asked without a thread that waits, so that a slow one holds up nobody.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{IntoName, RecordType};
use hickory_resolver::system_conf::parse_resolv_conf;
use hickory_resolver::{Hosts, TokioResolver};

use super::resolve::{RESOLVE_TIMEOUT, Resolver};

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";
/// Longest time for one of two rounds of questions.
const ROUND: Duration = RESOLVE_TIMEOUT.checked_div(2).unwrap();
/// Answers that are remembered.
const ANSWERS: u64 = 4096;
/// Longest time for which they are: whatever a name server says.
const KNOWN_FOR: Duration = Duration::from_secs(3600);
/// Longest time for which it is remembered that there is no such name.
const UNKNOWN_FOR: Duration = Duration::from_secs(60);
/// Least time for the answer about one family after that about the other one (RFC 8305, section 3).
const OTHER_FAMILY: Duration = Duration::from_millis(50);
/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What this machine knows, as its files say it now.
#[derive(Clone, Default)]
pub struct SystemResolver(Arc<Mutex<Option<Kept>>>);

struct Kept {
    known: Arc<Known>,
    state: [Option<FileState>; 2],
    looked: Instant,
}

/// Tells whether a file was changed: when it was, its size and its inode.
type FileState = (i64, i64, u64, u64);

struct Known {
    hosts: Hosts,
    resolver: TokioResolver,
    /// Whether short names have a domain that is appended.
    searches: bool,
}

impl Resolver for SystemResolver {
    async fn look_up(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found = self.known()?.addresses(name).await.map_err(|error| match error {
            NetError::Timeout => io::Error::from(io::ErrorKind::TimedOut),
            other => io::Error::other(other),
        })?;
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

impl SystemResolver {
    fn known(&self) -> io::Result<Arc<Known>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_ref().filter(|kept| kept.looked.elapsed() < LOOK) {
            return Ok(Arc::clone(&kept.known));
        }
        let (state, looked) = ([RESOLV_CONF, HOSTS].map(file_state), Instant::now());
        let unchanged = kept.take().filter(|kept| kept.state == state);
        let known = match unchanged {
            Some(kept) => kept.known,
            None => Arc::new(Known::read().map_err(io::Error::other)?),
        };
        *kept = Some(Kept { known: Arc::clone(&known), state, looked });
        Ok(known)
    }
}

fn file_state(path: &str) -> Option<FileState> {
    let file = fs::metadata(path).ok()?;
    Some((file.mtime(), file.mtime_nsec(), file.size(), file.ino()))
}

/// What /etc/resolv.conf says. Without a name server, this machine is asked, as by other programs.
fn configuration(file: &[u8]) -> (ResolverConfig, ResolverOpts) {
    let said = parse_resolv_conf(file);
    let (config, mut options) = said.unwrap_or_else(|error| {
        tracing::debug!(%error, "no name server is known");
        let own = NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into());
        (ResolverConfig::from_name_servers(vec![own]), ResolverOpts::default())
    });
    options.timeout = options.timeout.min(ROUND);
    options.attempts = 1;
    options.cache_size = ANSWERS;
    options.positive_max_ttl = Some(KNOWN_FOR);
    options.negative_max_ttl = Some(UNKNOWN_FOR);
    options.use_hosts_file = ResolveHosts::Never;
    (config, options)
}

impl Known {
    fn read() -> Result<Self, NetError> {
        let (config, options) = configuration(&fs::read(RESOLV_CONF).unwrap_or_default());
        let searches = config.domain().is_some() || !config.search().is_empty();
        let runtime = TokioRuntimeProvider::default();
        let mut builder = TokioResolver::builder_with_config(config, runtime);
        *builder.options_mut() = options;
        let hosts = Hosts::from_system().unwrap_or_default();
        Ok(Self { hosts, resolver: builder.build()?, searches })
    }

    /// Addresses of a name, IPv6 first. A name with a dot is meant as it is; only if nobody knows it,
    /// and for others, a domain is appended.
    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, NetError> {
        let own = self.of_hosts(name);
        if !own.is_empty() {
            return Ok(own);
        }
        let whole = name.strip_suffix('.').unwrap_or(name);
        let may_be_appended = self.searches && whole.len() == name.len();
        if whole.contains('.') || !may_be_appended {
            let found = self.of_both_families(&format!("{whole}.")).await;
            if found.as_ref().is_ok_and(|found| !found.is_empty()) || !may_be_appended {
                return found;
            }
        }
        Ok(self.resolver.lookup_ip(name).await?.iter().collect())
    }

    /// What /etc/hosts says: then nobody is asked for more.
    fn of_hosts(&self, name: &str) -> Vec<IpAddr> {
        let Ok(name) = name.to_ascii_lowercase().into_name() else { return Vec::new() };
        let families = [RecordType::AAAA, RecordType::A].into_iter();
        let queries = families.map(|family| Query::query(name.clone(), family));
        let found = queries.filter_map(|query| self.hosts.lookup_static_host(&query));
        found.flat_map(|found| addresses(&found).collect::<Vec<_>>()).collect()
    }

    /// Asks for both families at once. A name server that is silent about one of them, as some are
    /// about IPv6, delays the answer about the other one by as long as that took.
    async fn of_both_families(&self, name: &str) -> Result<Vec<IpAddr>, NetError> {
        let begun = Instant::now();
        let mut six = pin!(self.resolver.ipv6_lookup(name));
        let mut four = pin!(self.resolver.ipv4_lookup(name));
        let (six, four) = tokio::select! {
            six = &mut six => {
                let four = second(&six, four, begun).await;
                (Some(six), four)
            }
            four = &mut four => {
                let six = second(&four, six, begun).await;
                (six, Some(four))
            }
        };
        let (mut found, mut failure) = (Vec::new(), None);
        for answer in [six, four].into_iter().flatten() {
            match answer {
                Ok(answer) => found.extend(addresses(&answer)),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(failure) if found.is_empty() => Err(failure),
            _ => Ok(found),
        }
    }
}

/// Waits for the second answer: for as long as it takes, unless the first one has addresses.
async fn second(
    first: &Result<Lookup, NetError>,
    second: impl Future<Output = Result<Lookup, NetError>>,
    begun: Instant,
) -> Option<Result<Lookup, NetError>> {
    if first.as_ref().is_ok_and(|first| addresses(first).next().is_some()) {
        return tokio::time::timeout(begun.elapsed().max(OTHER_FAMILY), second).await.ok();
    }
    Some(second.await)
}

fn addresses(answer: &Lookup) -> impl Iterator<Item = IpAddr> {
    answer.answers().iter().filter_map(|record| record.data.ip_addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_file_says_who_is_asked_and_not_for_how_long() {
        let said = b"nameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch a.test\noptions timeout:30 attempts:9\n";
        let (config, options) = configuration(said);
        let servers: Vec<String> =
            config.name_servers().iter().map(|server| server.ip.to_string()).collect();
        assert_eq!(servers, ["192.0.2.1", "192.0.2.2"]);
        assert_eq!(config.search().len(), 1);
        assert!(options.timeout * (1 + options.attempts as u32) <= RESOLVE_TIMEOUT);
        for empty in [&b""[..], b"search a.test\n", b"\xff\xfe"] {
            let (config, _) = configuration(empty);
            assert_eq!(config.name_servers()[0].ip, Ipv4Addr::LOCALHOST);
        }
    }
}
