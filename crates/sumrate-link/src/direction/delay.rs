//! Propagation: packets on their way to the other end, in order or overtaking each other.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use rand_core::RngCore;

use super::loss::uniform;
use crate::config::Jitter;
use crate::config::parameters::Parameters;
use crate::packet::{Frame, Packet};
use crate::time::Nanos;

/// Items in flight, each with the time at which it is due at the other end.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    /// In order of their times.
    items: VecDeque<(Nanos, T)>,
    /// Items that may overtake others.
    overtaking: BinaryHeap<Overtaking<T>>,
    /// Latest time of any item so far.
    last_due: Nanos,
    /// Overtaking items so far.
    pushed: u64,
}

impl<T> Default for DelayLine<T> {
    fn default() -> Self {
        DelayLine { items: VecDeque::new(), overtaking: BinaryHeap::new(), last_due: 0, pushed: 0 }
    }
}

impl<T> DelayLine<T> {
    /// Adds an item that is due at `due`, but not before any earlier item.
    pub fn push(&mut self, due: Nanos, item: T) {
        self.last_due = self.last_due.max(due);
        self.items.push_back((self.last_due, item));
    }

    /// Adds an item that is due at `due`, whatever else is in flight.
    pub fn push_overtaking(&mut self, due: Nanos, item: T) {
        self.last_due = self.last_due.max(due);
        self.pushed += 1;
        self.overtaking.push(Overtaking { due, number: self.pushed, item });
    }

    /// When the first item is due.
    pub fn next_due(&self) -> Option<Nanos> {
        let ordered = self.items.front().map(|(due, _)| *due);
        match self.overtaking.peek() {
            None => ordered,
            Some(first) => Some(ordered.map_or(first.due, |due| due.min(first.due))),
        }
    }

    /// Takes the first item if it is due at `now`, with the time at which it was.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        let next = self.next_due().filter(|due| *due <= now)?;
        if self.overtaking.peek().is_some_and(|first| first.due == next) {
            return self.overtaking.pop().map(|first| (first.due, first.item));
        }
        self.items.pop_front()
    }
}

impl DelayLine<Frame> {
    /// Sends segments of `packet` off at `departure`. Neighbours that are due at the same time stay in one frame.
    pub(super) fn carry(
        &mut self,
        departure: Nanos,
        parameters: &Parameters,
        random: &mut impl RngCore,
        packet: &Packet,
        segments: Range<usize>,
    ) {
        let Parameters { delay, jitter, reorder, gather, .. } = *parameters;
        let departure = gathered(departure, gather);
        if jitter.is_none() {
            self.add(departure.saturating_add(delay), reorder, packet.frame(segments));
            return;
        }
        let mut first = segments.start;
        let mut frame_due = None;
        for segment in segments.clone() {
            let mut due = departure.saturating_add(draw(delay, jitter, random));
            if !reorder {
                due = due.max(frame_due.unwrap_or(self.last_due));
            }
            if let Some(before) = frame_due.filter(|before| *before != due) {
                self.add(before, reorder, packet.frame(first..segment));
                first = segment;
            }
            frame_due = Some(due);
        }
        if let Some(due) = frame_due {
            self.add(due, reorder, packet.frame(first..segments.end));
        }
    }

    fn add(&mut self, due: Nanos, reorder: bool, frame: Frame) {
        if reorder { self.push_overtaking(due, frame) } else { self.push(due, frame) }
    }
}

/// The next multiple of `gather`; 0 gathers nothing.
fn gathered(departure: Nanos, gather: Nanos) -> Nanos {
    if gather == 0 { departure } else { departure.div_ceil(gather).saturating_mul(gather) }
}

/// A packet's delay.
fn draw(delay: Nanos, jitter: Jitter, random: &mut impl RngCore) -> Nanos {
    match jitter {
        Jitter::Uniform(most) => delay.saturating_add((uniform(random) * most as f64) as Nanos),
        // The conversion of a number below 0 gives 0.
        Jitter::Normal(deviation) => (delay as f64 + normal(random) * deviation as f64) as Nanos,
    }
}

/// A standard normal number (Box and Muller 1958).
fn normal(random: &mut impl RngCore) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

/// An item that is compared by its time only: the earliest is the greatest; of equal times, the one pushed first.
#[derive(Clone, Debug)]
struct Overtaking<T> {
    due: Nanos,
    number: u64,
    item: T,
}

impl<T> Ord for Overtaking<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl<T> PartialOrd for Overtaking<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Overtaking<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Overtaking<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    /// Everything in flight, as (time, item).
    fn drain<T>(line: &mut DelayLine<T>) -> Vec<(Nanos, T)> {
        std::iter::from_fn(|| {
            let due = line.next_due()?;
            assert!(due == 0 || line.pop_due(due - 1).is_none(), "due too early");
            line.pop_due(due)
        })
        .collect()
    }

    proptest! {
        #[test]
        fn order_is_kept_and_nothing_is_early(sent in proptest::collection::vec(0_u64..5_000, 1..50)) {
            let mut line = DelayLine::default();
            for (index, due) in sent.iter().enumerate() {
                line.push(*due, index);
            }
            let mut last = 0;
            for (index, (due, item)) in drain(&mut line).into_iter().enumerate() {
                prop_assert_eq!(item, index);
                prop_assert!(due >= sent[item] && due >= last);
                last = due;
            }
        }

        #[test]
        fn overtaking_items_leave_at_their_own_times(sent in proptest::collection::vec((0_u64..500, any::<bool>()), 1..50)) {
            let mut line = DelayLine::default();
            for (index, (due, overtakes)) in sent.iter().enumerate() {
                if *overtakes { line.push_overtaking(*due, index) } else { line.push(*due, index) }
            }
            let drained = drain(&mut line);
            prop_assert_eq!(drained.len(), sent.len());
            prop_assert!(drained.is_sorted_by_key(|(due, _)| *due));
            for (due, item) in drained {
                let (own, overtakes) = sent[item];
                let earlier = sent[..=item].iter().map(|(due, _)| *due).max().unwrap();
                prop_assert_eq!(due, if overtakes { own } else { earlier });
            }
        }

        #[test]
        fn gathered_packets_leave_at_the_next_multiple(departure in 0_u64..1 << 50, gather in 1_u64..1 << 40) {
            let at = gathered(departure, gather);
            prop_assert!(at.is_multiple_of(gather) && at >= departure && at - departure < gather);
            prop_assert_eq!(gathered(departure, 0), departure);
        }
    }

    fn moments(delay: Nanos, jitter: Jitter) -> (f64, f64) {
        const DRAWS: usize = 200_000;
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let drawn: Vec<f64> = (0..DRAWS).map(|_| draw(delay, jitter, &mut random) as f64).collect();
        let mean = drawn.iter().sum::<f64>() / DRAWS as f64;
        let square = drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        (mean, (square / DRAWS as f64).sqrt())
    }

    #[test]
    fn delays_have_the_mean_and_deviation_that_were_set() {
        for (delay, jitter, wanted) in [
            (50_000, Jitter::Normal(8_000), (50_000.0, 8_000.0)),
            (50_000, Jitter::Uniform(12_000), (56_000.0, 12_000.0 / 12_f64.sqrt())),
            // Half of the draws are below 0 and become 0: the rest is a half-normal distribution.
            (0, Jitter::Normal(10_000), (3_989.4, 5_838.0)),
        ] {
            let (mean, deviation) = moments(delay, jitter);
            assert!((mean - wanted.0).abs() < 0.01 * wanted.0, "{jitter:?}: mean {mean}");
            assert!((deviation - wanted.1).abs() < 0.01 * wanted.1, "{jitter:?}: {deviation}");
        }
    }
}
