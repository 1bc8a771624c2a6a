//! What shares a path's bottleneck: other paths, and plain TCPs.

use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::dialling::SimulatedPath;
use super::{SERVER, Simulation};
use crate::growth::TcpGrowth;
use crate::link::Link;
use crate::plain::PlainTcp;
use crate::subflow::TcpDirection;

impl Simulation {
    /// One more path, over the bottlenecks of path `of` but with a base RTT of
    /// its own; dialled at once.
    pub fn add_path_beside(&mut self, of: usize, rtt: Duration, seed: u64) {
        let Some(links) = self.links_beside(of, rtt, seed) else { return };
        self.paths.push(SimulatedPath::new(self.now, links));
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
            self.push_tcp_beside([down, up], rtt, growth, after);
        }
        self.beside.len().saturating_sub(1)
    }

    /// A TCP that uploads for ever over the bottlenecks of path `of`, from `after` from now on; its
    /// number.
    pub fn add_upload_beside(
        &mut self,
        of: usize,
        rtt: Duration,
        growth: TcpGrowth,
        after: Duration,
    ) -> usize {
        if let Some(links) = self.links_beside(of, rtt, 0) {
            self.push_tcp_beside(links, rtt, growth, after);
        }
        self.beside.len().saturating_sub(1)
    }

    fn push_tcp_beside(
        &mut self,
        links: [Link; 2],
        rtt: Duration,
        growth: TcpGrowth,
        after: Duration,
    ) {
        let from = self.now + after;
        let direction = TcpDirection::new(from, rtt, growth);
        self.beside.push(PlainTcp::new(from, direction, links, u64::MAX));
    }

    /// Bytes that a plain TCP has carried.
    #[must_use]
    pub fn carried(&self, tcp: usize) -> u64 {
        self.beside.get(tcp).map_or(0, PlainTcp::carried)
    }

    fn links_beside(&self, of: usize, rtt: Duration, seed: u64) -> Option<[Link; 2]> {
        let path = self.paths.get(of)?;
        let rng = |salt: u64| ChaCha8Rng::seed_from_u64(seed ^ (salt << 40));
        let [up, down] = &path.links;
        Some([up.beside(rtt / 2, rng(1)), down.beside(rtt / 2, rng(SERVER as u64 + 2))])
    }
}
