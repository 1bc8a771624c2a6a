//! The algorithms and their names.

use std::fmt;
use std::fs;
use std::str::FromStr;

/// A congestion control of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Linked Increases Algorithm, RFC 6356.
    Lia,
    /// Opportunistic LIA (Khalili et al., 2012).
    Olia,
    /// Balanced LIA (Peng et al., 2016).
    Balia,
    /// Reno on each subflow by itself, by the same programs: for comparison.
    Reno,
}

/// There is no such algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no coupled congestion control; there are lia, olia, balia, and reno as their control"
)]
pub struct UnknownAlgorithmError(String);

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Lia, Self::Olia, Self::Balia, Self::Reno];
    /// Those that couple.
    pub const COUPLED: [Self; 3] = [Self::Lia, Self::Olia, Self::Balia];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lia => "lia",
            Self::Olia => "olia",
            Self::Balia => "balia",
            Self::Reno => "reno",
        }
    }

    /// The name for TCP_CONGESTION, and in `ss -ti`.
    pub const fn kernel_name(self) -> &'static str {
        match self {
            Self::Lia => "sumrate_lia",
            Self::Olia => "sumrate_olia",
            Self::Balia => "sumrate_balia",
            Self::Reno => "sumrate_reno",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithmError;

    /// Takes both names.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|algorithm| [algorithm.name(), algorithm.kernel_name()].contains(&text))
            .ok_or_else(|| UnknownAlgorithmError(text.to_owned()))
    }
}

/// Those that the kernel has now, whoever loaded them.
pub fn loaded() -> Vec<Algorithm> {
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.unwrap_or_default();
    let has = |name| known.split_whitespace().any(|known| known == name);
    Algorithm::ALL.into_iter().filter(|algorithm| has(algorithm.kernel_name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_fit_into_the_kernels_16_bytes() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            assert_eq!(algorithm.kernel_name().parse(), Ok(algorithm));
            assert!(algorithm.kernel_name().len() < 16);
        }
        let error = "cubic".parse::<Algorithm>().unwrap_err().to_string();
        assert!(Algorithm::ALL.iter().all(|a| error.contains(a.name())), "{error}");
    }

    #[test]
    fn the_page_lists_them_with_their_names() {
        let page = include_str!("../../../docs/congestion-control.md");
        for algorithm in Algorithm::ALL {
            let names = (algorithm.name(), algorithm.kernel_name());
            let flag = if algorithm == Algorithm::Reno { names.1 } else { names.0 };
            let row = format!("\n| `{flag}` | `{}` | ", names.1);
            assert!(page.contains(&row), "{row}");
        }
    }
}
