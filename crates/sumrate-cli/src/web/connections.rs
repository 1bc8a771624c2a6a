//! Open connections: no source keeps others out.

use std::net::{IpAddr, Ipv6Addr};

use tokio::task::AbortHandle;

/// Connections at a time.
const MOST: usize = 64;
/// Connections of one source at a time; an IPv6 /64 is one source, and so is this machine.
const MOST_PER_SOURCE: usize = 16;

/// The open connections, the oldest first. When there are too many, one of the source that has most
/// is ended for the newest one.
#[derive(Debug, Default)]
pub(super) struct OpenConnections(Vec<(IpAddr, AbortHandle)>);

impl OpenConnections {
    /// Makes room for one more connection from an address.
    pub(super) fn make_room(&mut self, address: IpAddr) {
        self.0.retain(|(_, connection)| !connection.is_finished());
        let source = source_of(address);
        let greedy = if self.of(source) >= MOST_PER_SOURCE {
            source
        } else if self.0.len() >= MOST {
            let busiest = self.0.iter().map(|(source, _)| *source);
            busiest.max_by_key(|source| self.of(*source)).unwrap_or(source)
        } else {
            return;
        };
        if let Some(oldest) = self.0.iter().position(|(source, _)| *source == greedy) {
            self.0.remove(oldest).1.abort();
        }
    }

    /// Notes a connection.
    pub(super) fn enter(&mut self, address: IpAddr, connection: AbortHandle) {
        self.0.push((source_of(address), connection));
    }

    fn of(&self, source: IpAddr) -> usize {
        self.0.iter().filter(|(of, _)| *of == source).count()
    }
}

/// Loopback is one source; so is an IPv6 /64.
fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        local if local.is_loopback() => Ipv6Addr::LOCALHOST.into(),
        other => fbdt::source_of(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinHandle;

    fn fill(connections: &mut OpenConnections, addresses: &[String]) -> Vec<JoinHandle<()>> {
        let enter = |address: &String| {
            let address = address.parse().unwrap();
            connections.make_room(address);
            let task = tokio::spawn(std::future::pending());
            connections.enter(address, task.abort_handle());
            task
        };
        addresses.iter().map(enter).collect()
    }

    async fn all_ended(tasks: impl IntoIterator<Item = JoinHandle<()>>) {
        for task in tasks {
            assert!(task.await.unwrap_err().is_cancelled());
        }
    }

    #[tokio::test]
    async fn a_source_with_many_connections_loses_its_oldest() {
        let mut connections = OpenConnections::default();
        let other = fill(&mut connections, &["192.0.2.1".to_owned()]);
        let many: Vec<String> = (0..100).map(|n| format!("2001:db8::{n:x}")).collect();
        let mut tasks = fill(&mut connections, &many);
        assert_eq!(connections.of("2001:db8::".parse().unwrap()), MOST_PER_SOURCE);
        all_ended(tasks.drain(..100 - MOST_PER_SOURCE)).await;
        assert!(tasks.iter().chain(&other).all(|task| !task.is_finished()), "those stay");
    }

    #[tokio::test]
    async fn a_newcomer_finds_a_place_among_many() {
        let mut connections = OpenConnections::default();
        let crowd: Vec<String> =
            (0..MOST).map(|n| format!("192.0.2.{}", n / MOST_PER_SOURCE)).collect();
        let mut tasks = fill(&mut connections, &crowd);
        let newcomer = fill(&mut connections, &["198.51.100.1".to_owned()]);
        assert_eq!(connections.0.len(), MOST);
        // The last of several sources with as many.
        all_ended([tasks.remove(MOST - MOST_PER_SOURCE)]).await;
        assert!(tasks.iter().chain(&newcomer).all(|task| !task.is_finished()), "those stay");
    }

    #[test]
    fn addresses_of_one_source_count_together() {
        let source = |text: &str| source_of(text.parse().unwrap());
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_eq!(source("127.0.0.1"), source("127.9.9.9"));
        assert_eq!(source("127.0.0.1"), source("::1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
    }
}
