//! Propagation: a line that packets leave in the order in which they entered it.

use std::collections::VecDeque;

use rand_core::RngCore;

use super::loss::uniform;
use crate::time::Nanos;

/// Items in flight, each with the time at which it is due at the other end.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    items: VecDeque<(Nanos, T)>,
    last_due: Nanos,
}

impl<T> Default for DelayLine<T> {
    fn default() -> Self {
        DelayLine { items: VecDeque::new(), last_due: 0 }
    }
}

impl<T> DelayLine<T> {
    /// Sends `item` off at `departure`; it takes `delay` plus up to `jitter` (uniform), and never overtakes.
    pub fn push(
        &mut self,
        departure: Nanos,
        delay: Nanos,
        jitter: Nanos,
        random: &mut impl RngCore,
        item: T,
    ) {
        let extra = if jitter == 0 { 0 } else { (uniform(random) * jitter as f64) as Nanos };
        let due = departure.saturating_add(delay).saturating_add(extra);
        self.last_due = self.last_due.max(due);
        self.items.push_back((self.last_due, item));
    }

    /// When the first item is due.
    pub fn next_due(&self) -> Option<Nanos> {
        self.items.front().map(|(due, _)| *due)
    }

    /// Takes the first item if it is due at `now`, with the time at which it was.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.next_due()? > now {
            return None;
        }
        self.items.pop_front()
    }

    /// Items in flight.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    proptest! {
        #[test]
        fn order_is_kept_and_delay_is_at_least_what_was_set(sent in proptest::collection::vec((0_u64..1_000, 0_u64..5_000, 0_u64..3_000), 1..50)) {
            let mut random = ChaCha8Rng::seed_from_u64(3);
            let mut line = DelayLine::default();
            let mut departure = 0;
            let mut expected = Vec::new();
            for (index, (gap, delay, jitter)) in sent.into_iter().enumerate() {
                departure += gap;
                line.push(departure, delay, jitter, &mut random, index);
                expected.push(departure + delay);
            }
            let mut last = 0;
            for (index, earliest) in expected.into_iter().enumerate() {
                let due = line.next_due().unwrap();
                prop_assert!(line.pop_due(due - u64::from(due > 0)).is_none() || due == 0);
                if let Some((at, item)) = line.pop_due(due) {
                    prop_assert_eq!(item, index);
                    prop_assert!(at >= earliest && at >= last);
                    last = at;
                }
            }
        }
    }

    #[test]
    fn a_shorter_delay_waits_for_what_is_in_flight() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut line = DelayLine::default();
        line.push(0, 500, 0, &mut random, 'a');
        line.push(10, 1, 0, &mut random, 'b');
        assert_eq!(line.pop_due(499), None);
        assert_eq!(line.pop_due(500), Some((500, 'a')));
        assert_eq!(line.pop_due(500), Some((500, 'b')));
    }
}
