//! Sets of byte ranges.

use alloc::collections::BTreeMap;
use core::ops::Range;

/// A set of half-open ranges of `u64` offsets, kept disjoint and merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    map: BTreeMap<u64, u64>,
    total: u64,
}

impl RangeSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { map: BTreeMap::new(), total: 0 }
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Number of disjoint ranges.
    #[must_use]
    pub fn count(&self) -> usize {
        self.map.len()
    }

    /// Sum of the lengths of all ranges.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Adds `range`, merging with what overlaps or touches it.
    pub fn insert(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        if let Some((&low, &high)) = self.map.range(..=start).next_back()
            && high >= start
        {
            if high >= end {
                return;
            }
            start = low;
        }
        while let Some((&low, &high)) = self.map.range(start..=end).next() {
            end = end.max(high);
            self.map.remove(&low);
            self.total -= high - low;
        }
        self.map.insert(start, end);
        self.total += end - start;
    }

    /// Takes `range` out of the set.
    pub fn remove(&mut self, range: Range<u64>) {
        let Range { start, end } = range;
        if start >= end {
            return;
        }
        if let Some((&low, &high)) = self.map.range(..start).next_back()
            && high > start
        {
            self.map.insert(low, start);
            self.total -= high.min(end) - start;
            if high > end {
                self.map.insert(end, high);
                return;
            }
        }
        while let Some((&low, &high)) = self.map.range(start..end).next() {
            self.map.remove(&low);
            self.total -= high.min(end) - low;
            if high > end {
                self.map.insert(end, high);
            }
        }
    }

    /// Takes everything below `bound` out of the set.
    pub fn remove_below(&mut self, bound: u64) {
        while let Some((&low, &high)) = self.map.first_key_value() {
            if low >= bound {
                return;
            }
            self.map.remove(&low);
            self.total -= high.min(bound) - low;
            if high > bound {
                self.map.insert(bound, high);
                return;
            }
        }
    }

    /// The lowest range.
    #[must_use]
    pub fn first(&self) -> Option<Range<u64>> {
        self.map.first_key_value().map(|(&low, &high)| low..high)
    }

    /// The highest range.
    #[must_use]
    pub fn last(&self) -> Option<Range<u64>> {
        self.map.last_key_value().map(|(&low, &high)| low..high)
    }

    /// The lowest part of the set inside `within`, clipped to it.
    #[must_use]
    pub fn first_within(&self, within: Range<u64>) -> Option<Range<u64>> {
        if within.start >= within.end {
            return None;
        }
        if let Some((_, &high)) = self.map.range(..=within.start).next_back()
            && high > within.start
        {
            return Some(within.start..high.min(within.end));
        }
        let (&low, &high) = self.map.range(within.clone()).next()?;
        Some(low..high.min(within.end))
    }

    /// The highest part of the set inside `within`, clipped to it.
    #[must_use]
    pub fn last_within(&self, within: Range<u64>) -> Option<Range<u64>> {
        if within.start >= within.end {
            return None;
        }
        let (&low, &high) = self.map.range(..within.end).next_back()?;
        (high > within.start).then(|| low.max(within.start)..high.min(within.end))
    }

    /// The lowest part of `within` that is *not* in the set.
    #[must_use]
    pub fn first_gap(&self, within: Range<u64>) -> Option<Range<u64>> {
        let mut start = within.start;
        if let Some((_, &high)) = self.map.range(..=start).next_back() {
            start = start.max(high);
        }
        if start >= within.end {
            return None;
        }
        let end = self.map.range(start..within.end).next().map_or(within.end, |(&low, _)| low);
        Some(start..end)
    }

    /// Whether all of `range` is in the set.
    #[must_use]
    pub fn covers(&self, range: Range<u64>) -> bool {
        self.first_gap(range).is_none()
    }

    /// Bytes of the set inside `within`.
    #[must_use]
    pub fn total_within(&self, within: Range<u64>) -> u64 {
        let mut sum = 0;
        let mut at = within.start;
        while let Some(piece) = self.first_within(at..within.end) {
            sum += piece.end - piece.start;
            at = piece.end;
        }
        sum
    }

    /// The offset below which `amount` bytes of the set lie, counted from
    /// `from` upward; `None` when the set has no more than that above `from`.
    #[must_use]
    pub fn skip(&self, from: u64, amount: u64) -> Option<u64> {
        let mut left = amount;
        let mut at = from;
        while let Some(piece) = self.first_within(at..u64::MAX) {
            let size = piece.end - piece.start;
            if size > left {
                return Some(piece.start + left);
            }
            left -= size;
            at = piece.end;
        }
        None
    }

    /// All ranges, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.map.iter().map(|(&low, &high)| low..high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u64, u64),
        Remove(u64, u64),
        RemoveBelow(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0..64u64, 0..20u64).prop_map(|(a, n)| Op::Insert(a, a + n)),
            (0..64u64, 0..20u64).prop_map(|(a, n)| Op::Remove(a, a + n)),
            (0..64u64).prop_map(Op::RemoveBelow),
        ]
    }

    fn naive_first(bits: &[bool], want: bool, within: Range<u64>) -> Option<Range<u64>> {
        let start = within.clone().find(|&i| bits[i as usize] == want)?;
        let end = (start..within.end).find(|&i| bits[i as usize] != want).unwrap_or(within.end);
        Some(start..end)
    }

    proptest! {
        /// Every query agrees with a bitmap under any sequence of changes.
        #[test]
        fn behaves_like_a_bitmap(ops in prop::collection::vec(op(), 0..40), a in 0..90u64, n in 0..40u64) {
            let mut set = RangeSet::new();
            let mut bits = [false; 130];
            for op in ops {
                match op {
                    Op::Insert(a, b) => { set.insert(a..b); bits[a as usize..b as usize].fill(true); }
                    Op::Remove(a, b) => { set.remove(a..b); bits[a as usize..b as usize].fill(false); }
                    Op::RemoveBelow(a) => { set.remove_below(a); bits[..a as usize].fill(false); }
                }
            }
            let within = a..a + n;
            prop_assert_eq!(set.total(), bits.iter().filter(|b| **b).count() as u64);
            prop_assert_eq!(set.first_within(within.clone()), naive_first(&bits, true, within.clone()));
            prop_assert_eq!(set.first_gap(within.clone()), naive_first(&bits, false, within.clone()));
            let last = (within.clone()).rev().find(|&i| bits[i as usize]).map(|top| {
                let low = (within.start..=top).rev().take_while(|&i| bits[i as usize]).last().unwrap();
                low..top + 1
            });
            prop_assert_eq!(set.last_within(within.clone()), last);
            prop_assert_eq!(set.total_within(within.clone()), within.clone().filter(|&i| bits[i as usize]).count() as u64);
            let set_bits: Vec<u64> = (a..130).filter(|&i| bits[i as usize]).collect();
            prop_assert_eq!(set.skip(a, n), set_bits.get(n as usize).copied());
            for pair in set.iter().collect::<Vec<_>>().windows(2) {
                prop_assert!(pair[0].end < pair[1].start, "ranges are merged");
            }
        }
    }
}
