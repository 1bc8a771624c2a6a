//! The clock: how dear it is to read, and whether it is right.

use std::time::{SystemTime, UNIX_EPOCH};

use super::Finding;

/// Clock sources that are read without leaving for the hypervisor or a slow bus.
const FAST: [&str; 5] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen"];
/// 2025-01-01 UTC: this program did not exist before.
const EARLIEST: u64 = 1_735_689_600;

/// Every check of the clock.
pub(super) fn findings() -> Vec<Finding> {
    let place = "/sys/devices/system/clocksource/clocksource0/";
    let read = |name: &str| std::fs::read_to_string(format!("{place}{name}")).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (current, available) = (read("current_clocksource"), read("available_clocksource"));
    vec![source(current.trim(), available.trim()), time(now, unsynchronised())]
}

fn source(current: &str, available: &str) -> Finding {
    let check = "clock-source";
    if current.is_empty() || FAST.contains(&current) {
        let shown = if current.is_empty() { "unknown" } else { current };
        return Finding::ok(check, shown);
    }
    let found = format!("{current}: slow to read, which costs speed");
    let better = FAST.iter().find(|fast| available.split(' ').any(|name| name == **fast));
    match better {
        Some(better) => Finding::warning(check, found).mend(format!(
            "echo {better} > /sys/devices/system/clocksource/clocksource0/current_clocksource"
        )),
        None => Finding::warning(check, format!("{found}; no faster one is available")),
    }
}

/// No proof depends on the time; logs and times of files do.
fn time(now: u64, unsynchronised: Option<bool>) -> Finding {
    let set = "timedatectl set-ntp true";
    match unsynchronised {
        _ if now < EARLIEST => Finding::warning("clock", "set to a time in the past").mend(set),
        Some(true) => {
            Finding::warning("clock", "not synchronized: times in logs may be wrong").mend(set)
        }
        Some(false) => Finding::ok("clock", "synchronized"),
        None => Finding::ok("clock", "set; unknown whether it is synchronized"),
    }
}

/// Whether the kernel says that nobody keeps the clock right.
#[allow(unsafe_code)] // no crate here offers adjtimex(2)
fn unsynchronised() -> Option<bool> {
    // SAFETY: all zero bytes are a `timex`, with `modes` 0: nothing is changed.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole `timex` that outlives the call.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    (result >= 0).then_some(state.status & libc::STA_UNSYNC != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn slow_sources_and_wrong_times() {
        let slow = source("hpet", "tsc hpet acpi_pm");
        assert_eq!(slow.level, Level::Warning);
        assert!(slow.mend.unwrap().starts_with("echo tsc > "));
        assert_eq!(source("acpi_pm", "acpi_pm").mend, None);
        assert_eq!(source("tsc", "tsc").level, Level::Ok);
        assert_eq!(time(5, Some(false)).level, Level::Warning);
        assert_eq!(time(EARLIEST, Some(true)).level, Level::Warning);
        assert_eq!(time(EARLIEST, Some(false)).level, Level::Ok);
        assert_eq!(time(EARLIEST, None).level, Level::Ok);
        assert!(unsynchronised().is_some());
    }
}
