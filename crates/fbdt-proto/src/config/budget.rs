//! What second copies may cost each class (F11).
//!
//! See also F6.

use fbdt_units::Class;

/// Bytes of a class that may be sent twice by choice: a share of what it has sent, and an
/// allowance so that a short exchange has a budget too. Copies of what a suspect or lost path
/// owes are repairs and have no budget (F6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Share of the class's new bytes, 0 to 1.
    pub share: f64,
    /// Bytes on top.
    pub allowance: u64,
}

impl Budget {
    /// The budgets of all classes, in their order: two-way traffic may be sent twice as a whole,
    /// large transfers at most once in a hundred times, counted over 64 MiB or more: until then
    /// their allowance of a frame, and the frame that goes beyond it, weigh more.
    pub const DEFAULT: [Self; Class::ALL.len()] = [
        Self { share: 1.0, allowance: 4 << 20 },
        Self { share: 0.5, allowance: 4 << 20 },
        Self { share: 0.1, allowance: 1 << 20 },
        Self { share: 0.008, allowance: 64 << 10 },
    ];

    /// Whether a class that has sent `new` bytes and `spent` copies may send more copies.
    #[must_use]
    pub fn admits(&self, new: u64, spent: u64) -> bool {
        (spent as f64) < self.share * new as f64 + self.allowance as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f11_budgets_fall_with_the_classes() {
        let budgets = Budget::DEFAULT;
        assert!(budgets.is_sorted_by(|a, b| a.share > b.share && a.allowance >= b.allowance));
        let background = budgets[Class::Background as usize];
        assert!(background.share < 0.01);
        assert!(background.admits(0, (64 << 10) - 1));
        assert!(!background.admits(0, 64 << 10));
        assert!(background.admits(1 << 30, 8 << 20) && !background.admits(1 << 30, 9 << 20));
        let (new, frame) = (64 << 20, 64 << 10);
        assert!(!background.admits(new, new / 100 - frame), "with one more frame at most 1 %");
    }
}
