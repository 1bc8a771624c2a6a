//! Plain TCPs without FBDT: beside a session on its bottleneck, and alone over one path.

use std::time::Duration;

use fbdt_proto::{Instant, SubflowSample};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::START;
use crate::growth::TcpGrowth;
use crate::link::{Link, LinkChange, LinkParameters};
use crate::subflow::TcpDirection;

/// Bytes that a plain TCP's sender writes at once.
static PIECE: [u8; 64 << 10] = [0; 64 << 10];

/// A TCP of which only the number of bytes matters.
#[derive(Debug)]
pub(crate) struct PlainTcp {
    from: Instant,
    direction: TcpDirection,
    /// For its bytes, and for its acknowledgements.
    links: [Link; 2],
    /// Bytes that its program has not written yet.
    unwritten: u64,
    carried: u64,
    arrived: Vec<u8>,
}

impl PlainTcp {
    pub(crate) const fn new(
        from: Instant,
        direction: TcpDirection,
        links: [Link; 2],
        unwritten: u64,
    ) -> Self {
        Self { from, direction, links, unwritten, carried: 0, arrived: Vec::new() }
    }

    pub(crate) const fn carried(&self) -> u64 {
        self.carried
    }

    pub(crate) fn run(&mut self, now: Instant) {
        if now < self.from {
            return;
        }
        let [link, back] = &mut self.links;
        self.direction.advance(now, link, back);
        self.direction.deliver(now, link, &mut self.arrived);
        self.carried += self.arrived.len() as u64;
        self.arrived.clear();
        while self.unwritten > 0 && self.direction.has_room() {
            let size = self.unwritten.min(PIECE.len() as u64);
            self.direction.write(&PIECE[..size as usize]);
            self.unwritten -= size;
        }
        self.direction.pump(now, link, back);
    }

    pub(crate) fn next_event(&self, now: Instant) -> Option<Instant> {
        if now < self.from { Some(self.from) } else { self.direction.next_event(&self.links[1]) }
    }
}

/// What a [`PlainPath`] carries, and how.
#[derive(Clone, Copy, Debug)]
pub struct PlainOptions {
    /// Its congestion control.
    pub growth: TcpGrowth,
    /// Whether it spreads what it sends over the RTT.
    pub paced: bool,
    /// The receiver's buffer in bytes.
    pub buffer: u64,
    /// Whether the client sends. Otherwise the server does.
    pub upload: bool,
}

/// One plain TCP over one path, without FBDT: what a path alone is worth.
#[derive(Debug)]
pub struct PlainPath {
    now: Instant,
    tcp: PlainTcp,
    beside: Vec<PlainTcp>,
}

impl PlainPath {
    /// A connection that stands, over a link whose losses are those of a session's path with this seed.
    #[must_use]
    pub fn new(parameters: [LinkParameters; 2], seed: u64, options: PlainOptions) -> Self {
        let [up, down] = Link::seeded_pair(parameters, seed);
        let mut links = if options.upload { [up, down] } else { [down, up] };
        let [link, back] = &mut links;
        let rtt = link.handshake(back, START);
        let direction = TcpDirection::new(START, rtt, options.growth)
            .paced(options.paced)
            .received_into(options.buffer);
        Self { now: START, tcp: PlainTcp::new(START, direction, links, 0), beside: Vec::new() }
    }

    /// Another TCP over the same bottleneck in the same direction, with an RTT of its own, that sends for
    /// ever from `after` from now on.
    pub fn add_tcp_beside(&mut self, rtt: Duration, growth: TcpGrowth, after: Duration) {
        let rng = |salt: u64| ChaCha8Rng::seed_from_u64(salt << 40);
        let [link, back] = &self.tcp.links;
        let links = [link.beside(rtt / 2, rng(1)), back.beside(rtt / 2, rng(3))];
        let from = self.now + after;
        let direction = TcpDirection::new(from, rtt, growth);
        self.beside.push(PlainTcp::new(from, direction, links, u64::MAX));
    }

    /// Changes both directions of the path.
    pub fn change(&mut self, change: &LinkChange) {
        for link in &mut self.tcp.links {
            link.apply(self.now, change);
        }
    }

    /// Its program writes so many bytes more.
    pub fn write(&mut self, bytes: u64) {
        self.tcp.unwritten = self.tcp.unwritten.saturating_add(bytes);
        self.tcp.run(self.now);
    }

    /// Virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now.saturating_since(START)
    }

    /// Bytes that have arrived in order.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.tcp.carried
    }

    /// What TCP_INFO says.
    #[must_use]
    pub fn sample(&self) -> SubflowSample {
        self.tcp.direction.sample()
    }

    /// Runs for `time`.
    pub fn run(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Runs until `done`; says whether that was within `time`.
    pub fn run_until(&mut self, time: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + time;
        while self.now < end {
            if done(self) {
                return true;
            }
            let tcps = || std::iter::once(&self.tcp).chain(&self.beside);
            let next = tcps().filter_map(|tcp| tcp.next_event(self.now)).min();
            let soonest = self.now + Duration::from_nanos(1);
            self.now = next.unwrap_or(end).max(soonest).min(end);
            self.tcp.run(self.now);
            for tcp in &mut self.beside {
                tcp.run(self.now);
            }
        }
        done(self)
    }
}
