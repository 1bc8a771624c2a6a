//! Baselines: the multipath schedulers of nine publications and the placement of the thesis that FBDT
//! comes from, as [`Scheduler`]s of `fbdt-proto`.
//!
//! The product's default is not here: it is [`fbdt_proto::JustInTime`]. [`session`] builds a session
//! with whichever scheduler its configuration names.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod assigned;
mod blest;
mod blockers;
mod daps;
mod ecf;
mod lowest_rtt_first;
mod min_rtt;
mod musher;
mod otias;
mod redundant;
mod round_robin;
#[cfg(test)]
mod testing;
mod two_ended;

use alloc::boxed::Box;

use fbdt_proto::{
    Config, ConfigError, Instant, JustInTime, Limits, Role, Scheduler, SchedulerKind, Session,
};

use self::blest::Blest;
use self::daps::Daps;
use self::ecf::Ecf;
use self::lowest_rtt_first::LowestRttFirst;
use self::min_rtt::MinRtt;
use self::musher::MuSher;
use self::otias::Otias;
use self::redundant::Redundant;
use self::round_robin::RoundRobin;
use self::two_ended::TwoEnded;

/// A session with the scheduler that its configuration names.
///
/// # Errors
/// A configuration that can't work, field by field.
pub fn session(
    now: Instant,
    role: Role,
    config: Config,
    peer_limits: Limits,
) -> Result<Session, ConfigError> {
    let scheduler = scheduler(&config);
    Session::with_scheduler(now, role, config, peer_limits, scheduler)
}

/// The scheduler that a configuration names.
#[must_use]
pub fn scheduler(config: &Config) -> Box<dyn Scheduler> {
    match config.scheduler {
        SchedulerKind::JustInTime => Box::new(JustInTime),
        SchedulerKind::TwoEnded => Box::new(TwoEnded::new(config)),
        SchedulerKind::MinRtt => Box::new(MinRtt::default()),
        SchedulerKind::Blest => Box::new(Blest::default()),
        SchedulerKind::Ecf => Box::new(Ecf::default()),
        SchedulerKind::Daps => Box::new(Daps::default()),
        SchedulerKind::Otias => Box::new(Otias::default()),
        SchedulerKind::LowestRttFirst => Box::new(LowestRttFirst),
        SchedulerKind::MuSher => Box::new(MuSher::default()),
        SchedulerKind::RoundRobin => Box::new(RoundRobin::default()),
        SchedulerKind::Redundant => Box::new(Redundant::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, path};
    use alloc::vec::Vec;
    use core::ops::Range;
    use fbdt_proto::testing::{Acknowledged, request, view};
    use fbdt_proto::{Direction, PathId, PathView, PlacementRequest, RangeSet};
    use proptest::prelude::*;

    /// A scheduler that opens windows of 300 kB.
    fn of_kind(kind: SchedulerKind) -> Box<dyn Scheduler> {
        let config = Config { window: (300_000, 300_000), ..Config::default() };
        scheduler(&config.with_scheduler(kind))
    }

    fn paths(rates: &[f64]) -> Vec<PathView> {
        rates.iter().enumerate().map(|(i, r)| view(i as u8, *r, i as f64)).collect()
    }

    /// Paths of any shape, with or without room.
    fn any_path() -> impl Strategy<Value = PathView> {
        let rtts = (1..500u64, 0..3u64);
        (rtts, 1e4..1e8f64, 1..200u64, 0..300u64).prop_map(|((rtt, var), rate, window, held)| {
            let mut view = path(0, rtt, window * 1448);
            view.mss = 1448;
            view.rate = rate;
            view.rttvar = view.srtt * var as u32 / 4;
            view.held = held * 1448;
            view.room = view.window.saturating_sub(view.held);
            view
        })
    }

    proptest! {
        /// Whatever asks, each byte is handed out once, within bound and
        /// frame, and all of them as long as one path takes.
        #[test]
        fn every_byte_is_placed_once(
            kind in prop::sample::select(&SchedulerKind::ALL[..]),
            rates in prop::collection::vec(1e5..1e8f64, 1..6),
            asks in prop::collection::vec(0..6usize, 0..60),
            total in 1..5_000_000u64,
        ) {
            let mut scheduler = of_kind(kind);
            let paths = paths(&rates);
            let mut unsent = RangeSet::new();
            unsent.insert(0..total);
            let mut acked = 0;
            let mut order = asks.into_iter().map(|a| a % rates.len()).chain((0..rates.len()).cycle());
            let mut idle = 0;
            while !unsent.is_empty() {
                let path = order.next().unwrap();
                let under_way = &Acknowledged { written: total, below: acked };
                let asked = request(&paths, path, &unsent);
                let asked = PlacementRequest {
                    bound: total, limit: total, acked, frame: 65536, under_way, ..asked
                };
                match scheduler.place(asked) {
                    Some(range) => {
                        idle = 0;
                        prop_assert!(range.start < range.end && range.end - range.start <= 65536);
                        prop_assert!(unsent.covers(range.clone()), "placed twice: {range:?}");
                        unsent.remove(range);
                    }
                    None => {
                        idle += 1;
                        // The drawn order may name one path up to 60 times in a row.
                        prop_assert!(idle <= 60 + 2 * rates.len(), "nobody takes the rest");
                        acked = unsent.first().map_or(total, |r| r.start);
                    }
                }
            }
        }

        /// Whatever the paths look like: each byte is handed out once, and
        /// where all that can are asked one of them takes some.
        #[test]
        fn somebody_always_makes_progress(
            kind in prop::sample::select(&SchedulerKind::ALL[..]),
            mut paths in prop::collection::vec(any_path(), 1..5),
            total in 1..3_000_000u64,
            switches in prop::collection::vec((0..5usize, any::<bool>()), 0..8),
        ) {
            for (index, path) in paths.iter_mut().enumerate() {
                path.id = PathId(index as u8);
            }
            let mut f = Fixture::new(Boxed(of_kind(kind)), paths.clone(), total);
            f.frame = 65536;
            let mut switches = switches.into_iter();
            let mut placed = RangeSet::new();
            while !f.unsent.is_empty() {
                let mut moved = false;
                for path in 0..paths.len() {
                    // Everything is acknowledged before the next round.
                    f.acked = f.unsent.first().map_or(total, |r| r.start);
                    f.paths[path].held = 0;
                    f.paths[path].room = f.paths[path].window;
                    if !f.paths[path].usable {
                        continue;
                    }
                    if let Some(range) = f.send(path) {
                        prop_assert!(placed.first_gap(range.clone()) == Some(range.clone()));
                        placed.insert(range);
                        moved = true;
                    }
                }
                prop_assert!(moved, "{}: nobody takes {:?}", kind.name(), f.unsent);
                if let Some((path, up)) = switches.next() {
                    let path = path % paths.len();
                    f.paths[path].usable = up;
                    if !up {
                        f.scheduler.path_failed(PathId(path as u8));
                    }
                    let any = f.paths.iter().any(|p| p.usable);
                    f.paths[0].usable |= !any;
                }
            }
            prop_assert!(placed.covers(0..total));
        }
    }

    /// A boxed scheduler as a scheduler.
    #[derive(Debug)]
    struct Boxed(Box<dyn Scheduler>);

    impl Scheduler for Boxed {
        fn name(&self) -> &'static str {
            self.0.name()
        }

        fn place(&mut self, request: PlacementRequest<'_>) -> Option<Range<u64>> {
            self.0.place(request)
        }

        fn direction(&self, path: PathId) -> Direction {
            self.0.direction(path)
        }

        fn path_failed(&mut self, path: PathId) {
            self.0.path_failed(path);
        }
    }

    #[test]
    fn a_session_has_the_scheduler_that_its_configuration_names() {
        for kind in SchedulerKind::ALL {
            let config = Config::default().with_scheduler(kind);
            let (now, limits) = (Instant::ZERO, Limits::default());
            let own = session(now, Role::Client, config.clone(), limits).unwrap();
            assert_eq!(own.stats().scheduler, kind.name());
            let refused = Session::new(now, Role::Client, config, limits).err();
            let field = (kind != SchedulerKind::JustInTime).then_some("scheduler");
            assert_eq!(refused.map(|error| error.field), field, "{kind:?}");
        }
    }
}
