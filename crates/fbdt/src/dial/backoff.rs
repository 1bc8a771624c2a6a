//! When to try again.

use std::time::Duration;

use crate::identity::fill_random;

const FIRST: Duration = Duration::from_millis(50);
const LAST: Duration = Duration::from_secs(5);

/// Doubles from 50 ms to 5 s; each delay is spread by a quarter to both sides, so that clients of
/// a server that comes back do not come all at once.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: FIRST }
    }

    pub(super) fn reset(&mut self) {
        self.next = FIRST;
    }

    pub(super) fn next(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(LAST);
        // Without randomness the delay is its middle.
        let mut byte = [128];
        let _ = fill_random(&mut byte);
        delay * (384 + u32::from(byte[0])) / 512
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_five_seconds_and_vary_by_a_quarter() {
        let mut backoff = Backoff::new();
        for exponent in 0..12 {
            let middle = (FIRST * 2u32.pow(exponent)).min(LAST);
            let delay = backoff.next();
            assert!(delay >= middle * 3 / 4 && delay <= middle * 5 / 4, "{delay:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= FIRST * 5 / 4);
    }
}
