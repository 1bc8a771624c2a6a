//! Shares of new bytes by weight.
//!
//! Rule: F15.

use fbdt_wire::Weight;

use crate::scale::FRAME;

/// What a weighted path has been given, over its weight: the path with the least is never held
/// back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Share(f64);

impl Share {
    /// `bytes` were given to a path of this weight. One that was away, and so has fallen behind
    /// `rivals`, starts level with the last of them: what it missed is not owed.
    pub(crate) fn give(&mut self, bytes: u64, weight: Weight, rivals: impl Iterator<Item = Self>) {
        let last = rivals.map(|rival| rival.0).min_by(f64::total_cmp);
        let level = last.map_or(self.0, |last| self.0.max(last - 4.0 * FRAME as f64));
        self.0 = level + bytes as f64 / f64::from(weight.get());
    }

    /// Whether a path with this share waits for one with that of `rival`.
    pub(crate) fn is_ahead_of(self, rival: Self) -> bool {
        self.0 > rival.0 + FRAME as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn weight(value: u8) -> Weight {
        Weight::new(value).unwrap()
    }

    proptest! {
        /// Paths that always want bytes get them by weight, and one of them always may send.
        #[test]
        fn f15_bytes_go_by_weight(
            weights in prop::collection::vec(1..=100u8, 2..6),
            order in prop::collection::vec((0..6usize, 1000..65_536u64), 4000),
        ) {
            let mut shares = alloc::vec![Share::default(); weights.len()];
            let mut given = alloc::vec![0u64; weights.len()];
            for (first, bytes) in order {
                let count = weights.len();
                let may = |path: usize| shares.iter().all(|rival| !shares[path].is_ahead_of(*rival));
                let path = (0..count).map(|i| (first + i) % count).find(|path| may(*path));
                prop_assert!(path.is_some(), "nobody may send");
                let path = path.unwrap();
                let rivals = shares.clone().into_iter();
                shares[path].give(bytes, weight(weights[path]), rivals);
                given[path] += bytes;
            }
            let each: alloc::vec::Vec<f64> =
                given.iter().zip(&weights).map(|(b, w)| *b as f64 / f64::from(*w)).collect();
            let (least, most) = each.iter().fold((f64::MAX, 0f64), |(a, b), x| (a.min(*x), b.max(*x)));
            // Ahead by the slack and a frame.
            prop_assert!(most - least <= 2.0 * FRAME as f64 + 1.0, "{each:?}");
        }
    }

    #[test]
    fn f15_who_was_away_is_owed_nothing() {
        let (mut here, mut away) = (Share::default(), Share::default());
        here.give(100_000_000, weight(1), core::iter::empty());
        away.give(1, weight(1), [here].into_iter());
        away.give(5 * 65_536, weight(1), [here].into_iter());
        assert!(away.is_ahead_of(here));
    }
}
