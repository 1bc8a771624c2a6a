//! Random loss, one decision per segment.

use rand_core::RngCore;

/// Independent or Gilbert-Elliott losses.
#[derive(Clone, Debug)]
pub struct Loss {
    share: f64,
    burst: f64,
    bad: bool,
    until_next: Option<u64>,
}

impl Loss {
    /// `share` of segments lost (0 to 1), in bursts of `burst` segments on average; at most 1 means independently.
    ///
    /// With bursts the chain has two states; every segment in the bad one is lost. It is left with probability
    /// 1 / burst and entered with share / (1 - share) / burst (Gilbert 1960).
    pub fn new(share: f64, burst: f64) -> Loss {
        Loss { share, burst, bad: false, until_next: None }
    }

    /// Decides about the next segment.
    pub fn is_lost(&mut self, random: &mut impl RngCore) -> bool {
        if self.share <= 0.0 {
            return false;
        }
        if self.share >= 1.0 {
            return true;
        }
        if self.burst > 1.0 { self.bursty(random) } else { self.independent(random) }
    }

    fn bursty(&mut self, random: &mut impl RngCore) -> bool {
        let draw = uniform(random);
        self.bad = if self.bad {
            draw >= 1.0 / self.burst
        } else {
            draw < self.share / (1.0 - self.share) / self.burst
        };
        self.bad
    }

    /// Draws how many segments survive until the next loss (geometric), so most decisions cost nothing.
    fn independent(&mut self, random: &mut impl RngCore) -> bool {
        let left = match self.until_next {
            Some(left) => left,
            None => (uniform(random).ln() / (1.0 - self.share).ln()).floor() as u64,
        };
        self.until_next = left.checked_sub(1);
        left == 0
    }
}

/// A number in (0, 1), never 0.
pub fn uniform(random: &mut impl RngCore) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    const DRAWS: usize = 400_000;

    fn draw(share: f64, burst: f64) -> Vec<bool> {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut loss = Loss::new(share, burst);
        (0..DRAWS).map(|_| loss.is_lost(&mut random)).collect()
    }

    fn share(drawn: &[bool]) -> f64 {
        drawn.iter().filter(|lost| **lost).count() as f64 / drawn.len() as f64
    }

    fn mean_burst(drawn: &[bool]) -> f64 {
        let bursts = drawn.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        drawn.iter().filter(|lost| **lost).count() as f64 / bursts as f64
    }

    #[test]
    fn independent_share() {
        for wanted in [0.001, 0.05, 0.5] {
            let found = share(&draw(wanted, 1.0));
            assert!((found - wanted).abs() < 0.003, "{found} for {wanted}");
        }
    }

    #[test]
    fn independent_losses_do_not_cluster() {
        let found = mean_burst(&draw(0.1, 1.0));
        assert!((found - 1.0 / 0.9).abs() < 0.02, "{found}");
    }

    #[test]
    fn bursts_have_the_mean_length_and_share() {
        let drawn = draw(0.05, 8.0);
        let (burst, lost) = (mean_burst(&drawn), share(&drawn));
        assert!((burst - 8.0).abs() < 0.4, "{burst}");
        assert!((lost - 0.05).abs() < 0.005, "{lost}");
    }

    #[test]
    fn none_and_all() {
        assert_eq!(share(&draw(0.0, 1.0)), 0.0);
        assert_eq!(share(&draw(1.0, 4.0)), 1.0);
    }

    #[test]
    fn a_seed_decides_everything() {
        assert_eq!(draw(0.05, 4.0), draw(0.05, 4.0));
    }
}
