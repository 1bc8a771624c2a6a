//! How a user wants a path to be used.
//!
//! Rule: F15.

use alloc::format;
use alloc::string::String;
use core::num::{NonZeroU8, NonZeroU32};

use fbdt_units::{Classes, Priority};

/// Wishes for one path. `Default` is a path like any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathPolicy {
    /// Whether it carries bytes or stands by.
    pub priority: Priority,
    /// Its share of new bytes beside other paths that have a weight.
    pub weight: Option<Weight>,
    /// Most that it may send.
    pub rate_cap: Option<RateCap>,
    /// Its bytes cost money: nothing is sent on it that is not needed.
    pub metered: bool,
    /// Streams of these classes, and their messages, stay off it, whatever else there is.
    pub never: Classes,
}

impl PathPolicy {
    /// A path of this priority, else like any other.
    #[must_use]
    pub fn of_priority(priority: Priority) -> Self {
        Self { priority, ..Self::default() }
    }
}

/// A path's share, relative to the other weights: 1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(NonZeroU8);

impl Weight {
    /// The largest weight.
    pub const MAX: u8 = 100;

    /// `None` for 0 and above [`Weight::MAX`].
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        match NonZeroU8::new(value) {
            Some(value) if value.get() <= Self::MAX => Some(Self(value)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0.get()
    }
}

/// A rate in whole kbit/s, up to 4 Tbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RateCap(NonZeroU32);

impl RateCap {
    /// Units of the text form, in kbit/s.
    const UNITS: [(char, u32); 3] = [('G', 1_000_000), ('M', 1_000), ('k', 1)];

    /// `None` for 0.
    #[must_use]
    pub const fn from_kilobits(kilobits_per_second: u32) -> Option<Self> {
        match NonZeroU32::new(kilobits_per_second) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// In kbit/s.
    #[must_use]
    pub const fn kilobits(self) -> u32 {
        self.0.get()
    }

    /// In bytes per second.
    #[must_use]
    pub fn bytes_per_second(self) -> f64 {
        f64::from(self.0.get()) * 125.0
    }

    /// As in `20M`: whole Gbit/s, Mbit/s or kbit/s, whichever is shortest.
    #[must_use]
    pub fn text(self) -> String {
        let kilobits = self.0.get();
        let (unit, size) = Self::UNITS
            .into_iter()
            .find(|(_, size)| kilobits.is_multiple_of(*size))
            .unwrap_or(('k', 1));
        format!("{}{unit}", kilobits / size)
    }

    /// Reads what [`RateCap::text`] writes.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let unit = text.chars().next_back()?;
        let (_, size) = Self::UNITS.into_iter().find(|(known, _)| *known == unit)?;
        let number = text.strip_suffix(unit)?;
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u32 = number.parse().ok().filter(|_| digits)?;
        Self::from_kilobits(number.checked_mul(size)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn f15_weights_and_caps_have_bounds() {
        assert_eq!((Weight::new(0), Weight::new(101)), (None, None));
        assert_eq!(Weight::new(100).map(Weight::get), Some(100));
        assert_eq!(RateCap::from_kilobits(0), None);
        let cap = RateCap::from_kilobits(20_000).unwrap();
        assert!((cap.bytes_per_second() - 2.5e6).abs() < 1e-6);
        assert_eq!(cap.text(), "20M");
        assert_eq!(RateCap::from_kilobits(1_500).unwrap().text(), "1500k");
        assert_eq!(RateCap::from_kilobits(3_000_000).unwrap().text(), "3G");
        for bad in ["", "M", "20", "20m", "-1M", "+1M", "1.5M", "0k", "5000G", "é"] {
            assert_eq!(RateCap::from_text(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn f15_caps_survive_their_text(kilobits in 1..=u32::MAX) {
            let cap = RateCap::from_kilobits(kilobits);
            prop_assert_eq!(RateCap::from_text(&cap.unwrap().text()), cap);
        }
    }
}
