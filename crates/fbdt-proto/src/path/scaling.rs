//! The thesis's coupled mode: send windows scaled by alpha and beta.
//!
//! Rule: F14.

/// The factor of every path of a shared bottleneck, 0 < factor <= 1: together they take what the
/// fastest of them would alone (RFC 6356, goal 2). The thesis leaves the formula open; this is
/// max(x) / sum(x), x = window / RTT in bytes per second (equation 4.2).
pub(crate) fn window_factor(rates: impl Iterator<Item = f64>) -> f64 {
    let (most, sum) = rates.fold((0.0_f64, 0.0), |(most, sum), x| (most.max(x), sum + x));
    if sum > 0.0 { most / sum } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f14_paths_of_one_bottleneck_take_what_the_fastest_would() {
        let close = |rates: &[f64], expected: f64| {
            let got = window_factor(rates.iter().copied());
            assert!((got - expected).abs() < 1e-12, "{got}");
        };
        close(&[], 1.0);
        close(&[0.0], 1.0);
        close(&[5e6], 1.0);
        close(&[5e6, 5e6], 0.5);
        close(&[9e6, 3e6], 0.75);
        close(&[1.0, 1.0, 1.0, 1.0], 0.25);
    }
}
