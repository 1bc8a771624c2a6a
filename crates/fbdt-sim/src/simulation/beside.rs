//! What shares a path's bottleneck: other paths, and plain TCPs.

use std::time::Duration;

use fbdt_proto::Instant;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::connection::SimulatedPath;
use super::{SERVER, Simulation};
use crate::growth::TcpGrowth;
use crate::link::Link;
use crate::subflow::TcpDirection;

/// Bytes that a plain TCP's sender writes at once.
static PIECE: [u8; 64 << 10] = [0; 64 << 10];

/// A TCP that sends for ever, from the server's side to the client's.
#[derive(Debug)]
pub(super) struct PlainTcp {
    from: Instant,
    direction: TcpDirection,
    /// Towards the client, and for its acknowledgements.
    links: [Link; 2],
    carried: u64,
    arrived: Vec<u8>,
}

impl PlainTcp {
    pub(super) fn run(&mut self, now: Instant) {
        if now < self.from {
            return;
        }
        let [link, back] = &mut self.links;
        self.direction.advance(now, link, back);
        self.direction.deliver(now, link, &mut self.arrived);
        self.carried += self.arrived.len() as u64;
        self.arrived.clear();
        while self.direction.has_room() {
            self.direction.write(&PIECE);
        }
        self.direction.pump(now, link);
    }

    pub(super) fn next_event(&self, now: Instant) -> Option<Instant> {
        if now < self.from { Some(self.from) } else { self.direction.next_event(&self.links[1]) }
    }
}

impl Simulation {
    /// One more path, over the bottlenecks of path `of` but with a base RTT of
    /// its own; dialled at once.
    pub fn add_path_beside(&mut self, of: usize, rtt: Duration, seed: u64) {
        let Some(links) = self.links_beside(of, rtt, seed) else { return };
        let dial_at = Some(self.now);
        let path = SimulatedPath { links, connections: Vec::new(), dial_at, removed: false };
        self.paths.push(path);
    }

    /// A TCP that downloads for ever over the bottlenecks of path `of`, from
    /// `after` from now on; its number.
    pub fn add_tcp_beside(
        &mut self,
        of: usize,
        rtt: Duration,
        growth: TcpGrowth,
        after: Duration,
    ) -> usize {
        if let Some([up, down]) = self.links_beside(of, rtt, 0) {
            self.beside.push(PlainTcp {
                from: self.now + after,
                direction: TcpDirection::new(self.now + after, rtt, growth),
                links: [down, up],
                carried: 0,
                arrived: Vec::new(),
            });
        }
        self.beside.len().saturating_sub(1)
    }

    /// Bytes that a plain TCP has carried.
    #[must_use]
    pub fn carried(&self, tcp: usize) -> u64 {
        self.beside.get(tcp).map_or(0, |tcp| tcp.carried)
    }

    fn links_beside(&self, of: usize, rtt: Duration, seed: u64) -> Option<[Link; 2]> {
        let path = self.paths.get(of)?;
        let rng = |salt: u64| ChaCha8Rng::seed_from_u64(seed ^ (salt << 40));
        let [up, down] = &path.links;
        Some([up.beside(rtt / 2, rng(1)), down.beside(rtt / 2, rng(SERVER as u64 + 2))])
    }
}
