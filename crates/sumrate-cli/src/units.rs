//! Sizes and rates as users write them: K, M, G and T are powers of 1000; Ki, Mi, Gi and Ti of 1024.

use fbdt_proto::RateCap;

/// Largest number that is accepted.
const MOST: f64 = 1e18;
/// What to write, for messages.
const SUFFIXES: &str = "K, M, G and T mean powers of 1000; Ki, Mi, Gi and Ti powers of 1024";

/// A number of bytes, as in `500M`, `1.5G` or `64Ki`: at least one.
///
/// # Errors
/// What to write instead.
pub fn bytes(text: &str) -> Result<u64, String> {
    let bytes = number(text).map(f64::round).filter(|bytes| (1.0..=MOST).contains(bytes));
    bytes.map(|bytes| bytes as u64).ok_or_else(|| {
        format!(
            "`{text}` is not a number of bytes; write for example 500M, 1.5G or 64Ki ({SUFFIXES})"
        )
    })
}

/// Bits per second, as in `20M` or `1.5G`: at least 1 kbit/s.
///
/// # Errors
/// What to write instead.
pub fn rate(text: &str) -> Result<RateCap, String> {
    let kilobits = number(text).map(|bits| (bits / 1e3).round());
    let kilobits = kilobits.filter(|rate| (1.0..=f64::from(u32::MAX)).contains(rate));
    kilobits.and_then(|kilobits| RateCap::from_kilobits(kilobits as u32)).ok_or_else(|| {
        format!(
            "`{text}` is not a rate; write bits per second, for example 500k, 20M or 1.5G ({SUFFIXES})"
        )
    })
}

/// A decimal number times its suffix, in small or capital letters.
fn number(text: &str) -> Option<f64> {
    let (rest, base) = match text.strip_suffix(['i', 'I']) {
        Some(rest) => (rest, 1024.0_f64),
        None => (text, 1000.0),
    };
    let letter = rest.chars().last()?.to_ascii_uppercase();
    let power = ['K', 'M', 'G', 'T'].iter().position(|known| *known == letter);
    let (digits, factor) = match power {
        Some(power) => (rest.get(..rest.len() - 1)?, base.powi(i32::try_from(power).ok()? + 1)),
        // `3i` has no letter that says which power.
        None if base == 1000.0 => (rest, 1.0),
        None => return None,
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    digits.parse::<f64>().ok().map(|number| number * factor)
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
        assert_eq!((bytes("10G"), bytes("10Gi")), (Ok(10_000_000_000), Ok(10 << 30)));
        assert_eq!((bytes("1.5k"), bytes("1.5Ki"), bytes("64K")), (Ok(1500), Ok(1536), Ok(64_000)));
        for bad in ["", "M", "0", "0M", "-1M", "20 M", "1e9", "nan", "20Mbit", "9999999G", "20Mb"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "-1", "1P", "é", "1..5", "3i", "i", "3MB", "3MiB", "Ki", "1€"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,20}") {
            let _ = (rate(&text), bytes(&text));
        }
    }
}
