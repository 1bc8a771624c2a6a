//! How much memory there is for clients.

use std::fs;
use std::path::Path;

/// The kernel's files of available memory, and of the limits of a process's control groups.
const MEMORY: &str = "/proc/meminfo";
const OWN_GROUPS: &str = "/proc/self/cgroup";
const GROUPS: &str = "/sys/fs/cgroup";

/// Half of the memory that is available to this process now, in bytes: of the machine's, or of what its
/// control groups allow, whichever is less.
pub fn half() -> u64 {
    let machine = fs::read_to_string(MEMORY).ok().and_then(|text| available(&text));
    let machine = machine.unwrap_or_else(|| {
        let system = rustix::system::sysinfo();
        system.totalram.saturating_mul(u64::from(system.mem_unit))
    });
    let groups = fs::read_to_string(OWN_GROUPS).unwrap_or_default();
    let group = least_of_groups(&groups, Path::new(GROUPS)).unwrap_or(u64::MAX);
    machine.min(group) / 2
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// The least limit of the process's group and of those around it, in both versions of control groups.
fn least_of_groups(own: &str, mount: &Path) -> Option<u64> {
    let limits = own.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (root, file) = match fields.next()? {
            "" => (mount.to_owned(), "memory.max"),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                (mount.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let path = fields.next()?.trim_start_matches('/').to_owned();
        let groups = Path::new(&path).ancestors().map(Path::to_owned).collect::<Vec<_>>();
        let limit = |group: &std::path::PathBuf| {
            fs::read_to_string(root.join(group).join(file)).ok()?.trim().parse::<u64>().ok()
        };
        groups.iter().filter_map(limit).min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_read_from_the_kernels_words() {
        let text = "MemTotal:       16 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n";
        assert_eq!(available(text), Some(2 << 20));
        for bad in ["", "MemAvailable: x kB", "MemAvailable: 5", "MemTotal: 5 kB"] {
            assert_eq!(available(bad), None, "{bad}");
        }
        assert!(half() > 1 << 20);
    }

    #[test]
    fn the_least_limit_of_the_groups_around_counts() {
        let mount = tempfile::tempdir().unwrap();
        let limit = |path: &str, text: &str| {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        limit("a/memory.max", "300\n");
        limit("a/b/memory.max", "max\n");
        limit("memory/old/memory.limit_in_bytes", "200\n");
        let least = |own: &str| least_of_groups(own, mount.path());
        assert_eq!(least("0::/a/b\n"), Some(300));
        assert_eq!(least("4:cpu,memory:/old/x\n2:pids:/old\n0::/\n"), Some(200));
        assert_eq!(least("0::/\n"), None);
        assert_eq!(least("nonsense"), None);
    }
}
