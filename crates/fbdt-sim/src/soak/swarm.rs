//! Plans at random: each seed draws which faults it mixes, how often, and how
//! much, so that some seeds are all resets and others never see one.

use fbdt_proto::SchedulerKind;
use rand::seq::IndexedRandom;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fault::Fault;
use super::plan::{LinkPlan, Operation, Plan, REDUNDANCIES, Setup, WINDOW_MODES, Way};

/// Probability that a seed mixes a certain fault in.
const FAULT_SHARE: f64 = 0.25;
/// Every so many seeds send messages.
const MESSAGE_SEEDS: u64 = 3;
/// Longest of these, in bytes; every peer takes it.
const MESSAGE_MOST: u64 = 4000;
/// Every so many seeds have a backup path.
const BACKUP_SEEDS: u64 = 4;
/// Every so many seeds, and every fuzzer's plan, keep classes off a path.
const NEVER_SEEDS: u64 = 7;
/// In the draw, each of the product's own schedulers has so many places, each baseline one: rules
/// that only the own ones have are at work in half of all seeds.
const OWN_PLACES: usize = 5;

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        Self::drawn(seed, ChaCha8Rng::seed_from_u64(seed))
    }

    /// The plan that these bytes choose, as a fuzzer does.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::drawn(7, Bytes { rest: bytes })
    }

    fn drawn(seed: u64, rng: impl RngCore) -> Self {
        let mut swarm = Swarm { rng };
        let setup = swarm.setup();
        let mut links: Vec<LinkPlan> =
            (0..swarm.pick(&[1, 2, 2, 2, 3, 3, 4, 6])).map(|_| swarm.link()).collect();
        if seed.is_multiple_of(BACKUP_SEEDS)
            && let [_, .., last] = &mut links[..]
        {
            last.backup = 1;
        }
        let mut operations = swarm.operations();
        // Drawn last, so that what else seeds draw does not change.
        if seed.is_multiple_of(NEVER_SEEDS)
            && let [_, .., last] = &mut links[..]
        {
            last.never = swarm.classes();
        }
        if seed.is_multiple_of(MESSAGE_SEEDS) {
            operations = talking(operations);
        }
        Self { seed, setup, links, operations }
    }
}

/// The same with a message beside each write, so that what else seeds draw does not change.
fn talking(operations: Vec<Operation>) -> Vec<Operation> {
    let with_message = |operation: Operation| {
        let message = match operation {
            Operation::Write { client, stream, bytes } => Some(Operation::Message {
                client,
                stream: stream + 1,
                bytes: bytes % MESSAGE_MOST,
                ms: if bytes % 3 == 0 { 0 } else { 1 + bytes % 250 },
            }),
            _ => None,
        };
        [Some(operation), message].into_iter().flatten()
    };
    operations.into_iter().flat_map(with_message).collect()
}

/// Draws from given bytes; zeros behind them.
struct Bytes<'a> {
    rest: &'a [u8],
}

impl RngCore for Bytes<'_> {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_be_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        // Few bytes decide much; the low half hardly matters to a choice.
        u64::from(self.next_u32()) << 32
    }

    fn fill_bytes(&mut self, out: &mut [u8]) {
        let count = out.len().min(self.rest.len());
        out[..count].copy_from_slice(&self.rest[..count]);
        self.rest = &self.rest[count..];
    }
}

struct Swarm<R> {
    rng: R,
}

impl<R: RngCore> Swarm<R> {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from.choose(&mut self.rng).copied().unwrap_or(from[0])
    }

    /// Between both, small values as likely as large ones.
    fn magnitude(&mut self, least: u64, most: u64) -> u64 {
        let (least, most) = (least as f64, most as f64);
        (least * (most / least).powf(self.rng.random::<f64>())) as u64
    }

    /// Any of all schedulers.
    fn scheduler(&mut self) -> String {
        let places = |kind: &SchedulerKind| if kind.is_fbdt() { OWN_PLACES } else { 1 };
        let all: Vec<SchedulerKind> = SchedulerKind::ALL
            .iter()
            .flat_map(|kind| std::iter::repeat_n(*kind, places(kind)))
            .collect();
        self.pick(&all).name().to_owned()
    }

    fn setup(&mut self) -> Setup {
        let placement = self.scheduler();
        let other = if self.rng.random_bool(0.8) { placement.clone() } else { self.scheduler() };
        let window = self.pick(&[16, 64, 256]);
        let frame_kib = self.pick(&[4, 8, 16, 64]);
        let stream = self.pick(&[2, 4, 16]) * u64::from(frame_kib);
        let session = stream * self.pick(&[1, 2, 8, 64]);
        Setup {
            placement: [placement, other],
            window_mode: self.pick(&WINDOW_MODES[..]).name().to_owned(),
            redundancy: self.pick(&REDUNDANCIES).name().to_owned(),
            window_kib: [window, window * self.pick(&[1, 4, 16])],
            window_depth: self.pick(&[1, 2, 4, 4, 16]),
            frame_kib,
            receive_kib: [stream, session, stream.max(session * self.pick(&[1, 2]) / 2)],
            streams: self.pick(&[2, 8, 1024]),
            linger_ms: self.pick(&[1000, 10_000, 60_000]),
            sample_us: self.pick(&[1000, 2000, 4000, 4000]),
            clocks_ms: [self.pick(&[0, 5, 86_400_000]), self.pick(&[0, 7, 3_600_000])],
        }
    }

    fn link(&mut self) -> LinkPlan {
        LinkPlan {
            kbps: self.magnitude(1000, 1_000_000),
            rtt_us: self.magnitude(300, 120_000),
            queue_us: self.magnitude(1000, 100_000),
            loss_ppm: if self.rng.random_bool(0.2) { self.magnitude(10, 30_000) as u32 } else { 0 },
            backup: 0,
            never: Vec::new(),
        }
    }

    /// Some classes, or none; not all.
    fn classes(&mut self) -> Vec<usize> {
        let chosen = self.rng.random_range(0..15);
        (0..4).filter(|class| chosen & 1 << class != 0).collect()
    }

    fn operations(&mut self) -> Vec<Operation> {
        let mut faults: Vec<Fault> =
            Fault::ALL.iter().copied().filter(|_| self.rng.random_bool(FAULT_SHARE)).collect();
        if faults.is_empty() {
            faults.push(self.pick(Fault::ALL));
        }
        let share = self.pick(&[0.05, 0.2, 0.4]);
        let most_bytes = self.pick(&[2000, 30_000, 30_000, 400_000]);
        let mut operations =
            vec![Operation::Open { client: self.rng.random(), class: self.rng.random_range(0..4) }];
        for _ in 0..self.rng.random_range(4..40) {
            let operation = if self.rng.random_bool(share) {
                let fault = self.pick(&faults);
                self.fault(fault)
            } else {
                self.work(most_bytes)
            };
            operations.push(operation);
        }
        operations
    }

    fn stream(&mut self) -> (bool, usize) {
        (self.rng.random(), self.rng.random_range(0..6))
    }

    fn work(&mut self, most_bytes: u64) -> Operation {
        let (client, stream) = self.stream();
        match self.rng.random_range(0..20) {
            0..2 => Operation::Open { client, class: self.rng.random_range(0..4) },
            2..11 => Operation::Write { client, stream, bytes: self.magnitude(1, most_bytes) },
            11..18 => Operation::Advance { us: self.magnitude(20, 200_000) },
            18 => Operation::Heal { path: self.rng.random_range(0..8) },
            _ => self.pick_relief(client),
        }
    }

    fn pick_relief(&mut self, client: bool) -> Operation {
        if self.rng.random() {
            Operation::FullSpeed { client }
        } else {
            Operation::RestorePath { path: self.rng.random_range(0..8) }
        }
    }

    fn fault(&mut self, fault: Fault) -> Operation {
        let path = self.rng.random_range(0..8);
        let way = self.pick(&[Way::Up, Way::Down, Way::Both]);
        let (client, stream) = self.stream();
        match fault {
            Fault::Loss => Operation::Loss { path, way, ppm: self.magnitude(1000, 150_000) as u32 },
            Fault::Stall => Operation::Stall { path, way, ms: self.magnitude(1, 2000) },
            Fault::Blackout => Operation::Blackout { path },
            Fault::AsymmetricCut => Operation::AsymmetricCut { path, up: client },
            Fault::Held => Operation::Held { path, way },
            Fault::Reset => Operation::Reset { path },
            Fault::HalfReset => Operation::HalfReset { path, client },
            Fault::Reorder => Operation::Reorder { path, way, us: self.magnitude(50, 600_000) },
            Fault::Rate => Operation::Rate { path, way, kbps: self.magnitude(200, 2_000_000) },
            Fault::SlowReader => {
                Operation::SlowReader { client, bytes: self.pick(&[0, 1, 500, 20_000]) }
            }
            Fault::SlowWriter => {
                Operation::SlowWriter { client, bytes: self.pick(&[1, 100, 3000, 50_000]) }
            }
            Fault::ClockJump => Operation::ClockJump { client, ms: self.magnitude(1, 100_000_000) },
            Fault::Suspend => Operation::Suspend { client, ms: self.magnitude(1, 3000) },
            Fault::PathAdded => Operation::AddPath { link: self.link() },
            Fault::PathRemoved => Operation::RemovePath { path, told: self.rng.random() },
            Fault::PathReaddressed => Operation::ReaddressPath { path, link: self.link() },
            Fault::PeerRestarted => Operation::RestartPeer,
            Fault::MemoryLimit => Operation::FillMemory { client },
            Fault::StreamClosed => match self.rng.random_range(0..4) {
                0 => Operation::Finish { client, stream },
                1 => Operation::ResetStream { client, stream },
                2 => Operation::StopStream { client, stream },
                _ => Operation::ReleaseStream { client, stream },
            },
            Fault::SessionClosed => Operation::Close { client },
        }
    }
}
