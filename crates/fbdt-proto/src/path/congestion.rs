//! Which congestion control a path's measured loss suggests.
//!
//! Rule: F14.

/// Loss at which `cubic`, which takes every loss for a full queue, starves, and silence is mostly TCP's timer.
pub(super) const LOSSY: f64 = 0.01;

/// The algorithm for a path whose smoothed share of retransmitted bytes is
/// `loss` and that runs `current`.
pub(crate) fn suggested_congestion_control(loss: f64, current: &'static str) -> &'static str {
    if loss > LOSSY {
        "bbr"
    } else if loss < LOSSY / 10.0 {
        "cubic"
    } else {
        current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f14_a_lossy_path_gets_bbr_and_keeps_it_until_it_is_clean() {
        assert_eq!(suggested_congestion_control(0.005, "cubic"), "cubic");
        assert_eq!(suggested_congestion_control(0.02, "cubic"), "bbr");
        assert_eq!(suggested_congestion_control(0.005, "bbr"), "bbr");
        assert_eq!(suggested_congestion_control(0.0001, "bbr"), "cubic");
    }
}
