//! What the kernel can do, and its limits.

use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};

use super::{Finding, sysctl};
use crate::files::{Root, RootError};
use crate::socket::{CongestionRefusal, check_congestion_control};

/// The first Linux where sockets are bound to interfaces without privileges.
const OLDEST: (u32, u32) = (5, 7);
/// A TCP buffer that holds 1 Gbit/s over 30 ms.
const BUFFER: u64 = 4 << 20;
/// Descriptors for a thousand proxied connections and the paths.
const DESCRIPTORS: u64 = 4096;

/// Every check of the kernel.
pub(super) fn findings() -> Vec<Finding> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut findings = vec![version(release.trim()), confinement(), congestion_control()];
    findings.extend(
        ["rmem", "wmem"]
            .into_iter()
            .filter_map(|which| buffers(which, &sysctl::read(&format!("ipv4.tcp_{which}"))?)),
    );
    findings.extend(sysctl::read("ipv4.tcp_mtu_probing").map(|value| probing(&value)));
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        findings.push(descriptors(hard));
    }
    findings
}

fn version(release: &str) -> Finding {
    let mut parts = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST => Finding::problem(
            "kernel",
            format!("Linux {release}: paths bound to an interface need 5.7 or newer"),
        )
        .mend("apt-get install linux-image-amd64"),
        (Some(_), Some(_)) => Finding::ok("kernel", format!("Linux {release}")),
        _ => Finding::warning("kernel", format!("unknown kernel version `{release}`")),
    }
}

fn confinement() -> Finding {
    match Root::open(Path::new("/")) {
        Err(RootError::NoOpenat2) => {
            Finding::warning("openat2", "missing (needs Linux 5.6): `sumrate cp` cannot be used")
        }
        _ => Finding::ok("openat2", "available; `sumrate cp` can be used"),
    }
}

fn congestion_control() -> Finding {
    let check = "congestion-control";
    match (check_congestion_control("cubic"), check_congestion_control("bbr")) {
        (Ok(()), Ok(())) => Finding::ok(check, "cubic and bbr are available"),
        (Ok(()), Err(CongestionRefusal::Unknown(_))) => {
            Finding::warning(check, "bbr is not loaded: --cc bbr and auto cannot be used")
                .mend("modprobe tcp_bbr")
        }
        (Ok(()), Err(CongestionRefusal::NotPermitted(allowed))) => {
            Finding::warning(check, "bbr is for root only: --cc bbr and auto need CAP_NET_ADMIN")
                .mend(sysctl::set("ipv4.tcp_allowed_congestion_control", &format!("{allowed} bbr")))
        }
        (Err(CongestionRefusal::NotPermitted(allowed)), _) => {
            Finding::warning(check, "cubic is for root only: the kernel's default is used").mend(
                sysctl::set("ipv4.tcp_allowed_congestion_control", &format!("{allowed} cubic")),
            )
        }
        (Err(CongestionRefusal::Unknown(_)), _) => {
            Finding::warning(check, "cubic is not available: the kernel's default is used")
                .mend("modprobe tcp_cubic")
        }
    }
}

fn buffers(which: &str, setting: &str) -> Option<Finding> {
    let most: u64 = setting.split_whitespace().nth(2)?.parse().ok()?;
    let check = "tcp-buffers";
    let said = format!("tcp_{which} grows to {most} bytes");
    if most >= BUFFER {
        return Some(Finding::ok(check, said));
    }
    let first: Vec<&str> = setting.split_whitespace().take(2).collect();
    let wanted = format!("{} {}", first.join(" "), 4 * BUFFER);
    let found = format!("{said}: too little for a fast link with a long RTT");
    Some(Finding::warning(check, found).mend(sysctl::set(&format!("ipv4.tcp_{which}"), &wanted)))
}

fn probing(setting: &str) -> Finding {
    let check = "mtu-probing";
    match setting {
        "0" => Finding::warning(check, "off: a link with a small MTU hangs")
            .mend(sysctl::set("ipv4.tcp_mtu_probing", "1")),
        _ => Finding::ok(check, "on: TCP finds the largest packet size that passes"),
    }
}

fn descriptors(hard: u64) -> Finding {
    let found = format!("a process may open {hard} files");
    match hard < DESCRIPTORS {
        true => Finding::warning("descriptors", format!("{found}: too few for many connections"))
            .mend("prlimit --pid $$ --nofile=65536:65536"),
        false => Finding::ok("descriptors", found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn versions() {
        assert_eq!(version("6.18.44-generic").level, Level::Ok);
        assert_eq!(version("5.7.0").level, Level::Ok);
        assert_eq!(version("5.6.19").level, Level::Problem);
        assert_eq!(version("5.10").level, Level::Ok);
        assert_eq!(version("what").level, Level::Warning);
    }

    #[test]
    fn small_buffers_are_raised_and_the_rest_kept() {
        let finding = buffers("rmem", "4096\t131072\t1048576").unwrap();
        assert_eq!(
            finding.mend.as_deref(),
            Some("sysctl -w net.ipv4.tcp_rmem='4096 131072 16777216'")
        );
        assert_eq!(buffers("wmem", "4096 16384 4194304").unwrap().level, Level::Ok);
        assert_eq!(buffers("wmem", "what"), None);
    }

    #[test]
    fn limits() {
        assert_eq!((probing("0").level, probing("1").level), (Level::Warning, Level::Ok));
        assert_eq!(
            (descriptors(1024).level, descriptors(65536).level),
            (Level::Warning, Level::Ok)
        );
    }
}
