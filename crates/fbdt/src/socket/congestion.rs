//! Choice of TCP's congestion control (F14).

use std::fmt;
use std::fs;
use std::str::FromStr;

use fbdt_proto::WindowGrowth;

/// Which congestion control every socket gets, before it connects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// `cubic`.
    #[default]
    Cubic,
    /// `bbr`.
    Bbr,
    /// Starts with `cubic`; each subflow changes when its measured loss suggests another.
    Auto,
    /// Any other algorithm of the kernel, by its name.
    Named(String),
}

impl CongestionControl {
    /// The algorithm's name for TCP_CONGESTION.
    pub fn algorithm(&self) -> &str {
        match self {
            Self::Cubic | Self::Auto => "cubic",
            Self::Bbr => "bbr",
            Self::Named(name) => name,
        }
    }

    /// How its windows move, as far as coupling has to know (F17). Of an algorithm that is not
    /// known here nothing is assumed.
    pub(crate) fn window_growth(&self) -> WindowGrowth {
        match self {
            Self::Cubic => WindowGrowth::Cubic,
            Self::Auto => WindowGrowth::Auto,
            Self::Named(name) if name == "reno" => WindowGrowth::Reno,
            Self::Bbr | Self::Named(_) => WindowGrowth::Other,
        }
    }
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            other => other.algorithm(),
        })
    }
}

/// The text cannot be the name of a congestion control.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be a congestion control; use cubic, bbr, auto, or a name of net.ipv4.tcp_available_congestion_control"
)]
pub struct ParseCongestionControlError(String);

impl FromStr for CongestionControl {
    type Err = ParseCongestionControlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        match text {
            "cubic" => Ok(Self::Cubic),
            "bbr" => Ok(Self::Bbr),
            "auto" => Ok(Self::Auto),
            // TCP_CA_NAME_MAX of linux/tcp.h is 16, with the terminating zero.
            name if (1..16).contains(&name.len()) && name.bytes().all(is_name) => {
                Ok(Self::Named(name.to_owned()))
            }
            other => Err(ParseCongestionControlError(other.to_owned())),
        }
    }
}

/// What the kernel offers, for error messages.
pub(super) fn offered() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_or_else(|_| "unknown to this process".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["cubic", "bbr", "auto", "reno", "sumrate_lia"] {
            let parsed: CongestionControl = name.parse().unwrap();
            assert_eq!(parsed.to_string(), name);
        }
        assert_eq!(CongestionControl::Auto.algorithm(), "cubic");
    }

    #[test]
    fn f14_f17_only_windows_that_fall_by_loss_are_coupled() {
        let growth = |name: &str| name.parse::<CongestionControl>().unwrap().window_growth();
        assert_eq!(growth("cubic"), WindowGrowth::Cubic);
        assert_eq!(growth("reno"), WindowGrowth::Reno);
        assert_eq!(growth("auto"), WindowGrowth::Auto);
        assert_eq!(growth("bbr"), WindowGrowth::Other);
        assert_eq!(growth("sumrate_lia"), WindowGrowth::Other);
    }

    #[test]
    fn what_no_kernel_would_take_is_refused() {
        for wrong in ["", "no such name", "a-name-that-is-too-long"] {
            assert!(wrong.parse::<CongestionControl>().is_err());
        }
    }
}
