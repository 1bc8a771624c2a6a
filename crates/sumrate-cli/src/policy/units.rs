//! Rates and quantities as users write them, in powers of ten.

use fbdt_proto::RateCap;

/// Bits per second with a suffix k, M or G, as in `20M` or `1.5G`: at least 1 kbit/s.
///
/// # Errors
/// What to write instead.
pub fn rate(text: &str) -> Result<RateCap, String> {
    let advice = || {
        format!(
            "`{text}` is no rate; write bits per second, as in 500k, 20M or 1.5G (k, M and G mean \
             powers of 1000)"
        )
    };
    let bits = scaled(text, &['k', 'M', 'G']).ok_or_else(advice)?;
    let kilobits = (bits / 1e3).round();
    if !(1.0..=f64::from(u32::MAX)).contains(&kilobits) {
        return Err(advice());
    }
    RateCap::from_kilobits(kilobits as u32).ok_or_else(advice)
}

/// Bytes with a suffix k, M, G or T, as in `10G`: at least one.
///
/// # Errors
/// What to write instead.
pub fn quantity(text: &str) -> Result<u64, String> {
    let bytes = scaled(text, &['k', 'M', 'G', 'T']).filter(|bytes| (1.0..=1e18).contains(bytes));
    let advice = || {
        format!(
            "`{text}` is no number of bytes; write for example 500M, 1.5G or 1T (k, M, G and T mean \
             powers of 1000)"
        )
    };
    bytes.map(|bytes| bytes.round() as u64).ok_or_else(advice)
}

/// A decimal number, times a thousand for each place of its suffix.
fn scaled(text: &str, suffixes: &[char]) -> Option<f64> {
    // Others of the family write the thousand as K.
    let is = |suffix: char| text.ends_with(suffix) || (suffix == 'k' && text.ends_with('K'));
    let place = suffixes.iter().position(|suffix| is(*suffix));
    let number = if place.is_some() { text.get(..text.len() - 1)? } else { text };
    if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    let factor = place.map_or(1.0, |place| 1e3f64.powi(i32::try_from(place).unwrap_or(0) + 1));
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_users_write() {
        assert_eq!(rate("20M").unwrap().kilobits(), 20_000);
        assert_eq!(rate("1.5G").unwrap().kilobits(), 1_500_000);
        assert_eq!(rate("64000").unwrap().kilobits(), 64);
        assert_eq!(quantity("10G"), Ok(10_000_000_000));
        assert_eq!((quantity("1.5k"), quantity("1K")), (Ok(1500), Ok(1000)));
        for bad in ["", "M", "0", "0M", "-1M", "20m", "20 M", "1e9", "nan", "20Mbit", "9999999G"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "-1", "1P", "é", "1..5"] {
            assert!(quantity(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,20}") {
            let _ = (rate(&text), quantity(&text));
        }
    }
}
